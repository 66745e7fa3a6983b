"""Record layouts: where the numbers are in memory, by the type of a variable or as far as its accesses show.

Input   a structure as a compiler declared it (`record_of`), or the float accesses of one object (`record_layout`).
Output  a `MemoryType`, or None.
Method  an array of records is accessed at ``base + index * stride + field``; the strides of all accesses have to agree.
Limit   a field that is itself an array of numbers has a second index; its stride has to divide everything else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import gcd
from typing import assert_never, cast

from irad.ir import types
from irad.ir.types import (
    ArrayType,
    FloatType,
    NamedStructType,
    PointerType,
    StructType,
    Type,
    VectorType,
    element_types,
)
from irad.passes.memory.addresses import Position
from irad.passes.request import MemoryType
from irad.records import dataclass


@dataclass(frozen=True, slots=True)
class FloatAccess:
    """One load or store of a number.

    Attributes:
        place: where in an array.
        kind: its type.
        align: alignment of the address according to the instruction.
    """

    place: Position
    kind: FloatType
    align: int

    @property
    def size(self) -> int:
        """Bytes of the number."""
        return self.kind.bits // 8

    def is_skewed(self) -> bool:
        """True if the number may lie elsewhere than in an array of its own type."""
        return self.align % self.size != 0 and (self.place.offset % self.size, self.place.period % self.size) != (0, 0)


def record_layout(accesses: Sequence[FloatAccess]) -> MemoryType | None:
    """The records that all these accesses go to."""
    stride = gcd(*(access.place.period for access in accesses))
    if stride < max(access.size for access in accesses):
        return None
    fields = sorted({(access.place.offset % stride, access.size, str(access.kind)) for access in accesses})
    following = [start for start, _, _ in fields[1:]] + [stride]
    if any(start + size > end for (start, size, _), end in zip(fields, following, strict=True)):
        return None  # two numbers in one place, or one across the end of the record
    return MemoryType(stride, tuple((start, text) for start, _, text in fields))


def record_of(type_: Type) -> MemoryType | None:
    """The scalars of a structure as a compiler declared it; None if it has pointers, unions, or an end that is open."""
    if not _is_plain(type_):
        return None
    return MemoryType(types.size_of(type_), tuple((offset, str(kind)) for offset, kind in scalars(type_)))


def _is_plain(type_: Type) -> bool:
    match cast("types.AnyType", type_):
        case NamedStructType(name=name) if name.startswith(("union.", "class.std::", "struct.std::")):
            return False
        case NamedStructType() | StructType():
            return all(_is_plain(element) for element in element_types(type_))
        case ArrayType(count=count, element=element) | VectorType(count=count, element=element):
            return count > 0 and _is_plain(element)
        case types.FloatType() | types.IntType():
            return True
        case PointerType() | types.TargetExtType() | types.SimpleType() | types.FunctionType():
            return False
        case kind:
            assert_never(kind)


def scalars(type_: Type) -> Iterator[tuple[int, Type]]:
    """The scalars of a type with their byte offsets."""
    match type_:
        case VectorType(count=count, element=element) | ArrayType(count=count, element=element):
            for position in range(count):
                for offset, scalar in scalars(element):
                    yield position * types.size_of(element) + offset, scalar
        case StructType() | NamedStructType():
            for start, element in zip(types.field_offsets(type_), types.element_types(type_), strict=True):
                for offset, scalar in scalars(element):
                    yield start + offset, scalar
        case _:
            yield 0, type_
