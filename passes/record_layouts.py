"""Record layouts: where the numbers are in memory without a declared layout, as far as its accesses show.

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
from irad.passes.addresses import Position
from irad.passes.request import MemoryType


@dataclass(frozen=True, slots=True)
class FloatAccess:
    """One load or store of a number.

    Attributes:
        place: where in an array.
        kind: its type.
        align: what the instruction says of the address.
    """

    place: Position
    kind: FloatType
    align: int

    @property
    def size(self) -> int:
        """Bytes of the number."""
        return self.kind.bits // 8

    def is_skewed(self) -> bool:
        """Whether the number may lie elsewhere than in an array of its own type."""
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
