"""Record layouts: where in memory that nobody has described the numbers lie, as far as its accesses tell.

Input   the float accesses of one object.
Output  a `MemoryType`, or None.
Method  an array of records is accessed at ``base + index * stride + field``; the strides of all accesses have to agree.
Limit   a field that is itself an array of numbers has a second index; its stride has to divide everything else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd

from irad.ir.types import FloatType
from irad.ir.values import Value
from irad.passes.addresses import offset_modulo, stride_of
from irad.passes.request import MemoryType


@dataclass(frozen=True, slots=True)
class FloatAccess:
    """One load or store of a number.

    Attributes:
        pointer: what the instruction takes.
        inner: bytes from there to the number.
        kind: its type.
        align: what is known of the address.
    """

    pointer: Value
    inner: int
    kind: FloatType
    align: int

    @property
    def size(self) -> int:
        """Bytes of the number."""
        return self.kind.bits // 8

    def is_skewed(self) -> bool:
        """Whether the number may lie elsewhere than in an array of its own type."""
        if self.align % self.size == 0:
            return False
        offset = offset_modulo(self.pointer, self.size)
        return offset is None or (offset + self.inner) % self.size != 0


def record_layout(accesses: Sequence[FloatAccess]) -> MemoryType | None:
    """The records that all these accesses go to."""
    stride = 0
    for access in accesses:
        stride = gcd(stride, stride_of(access.pointer))
    if stride < max(access.size for access in accesses):
        return None
    fields: set[tuple[int, str]] = set()
    for access in accesses:
        offset = offset_modulo(access.pointer, stride)
        if offset is None or (offset + access.inner) % stride + access.size > stride:
            return None
        fields.add(((offset + access.inner) % stride, str(access.kind)))
    ordered = tuple(sorted(fields))
    starts = [offset for offset, _ in ordered]
    return MemoryType(stride, ordered) if len(starts) == len(set(starts)) else None
