"""Places of numbers among other bytes, for memory without a declared layout, as far as one function accesses it.

Input   `MemoryTypes`, a pointer.
Output  a `MemoryType` as seen from the pointer on, or None where the places are not certain.
Method  accesses at constant offsets are fields of memory that does not repeat; with others, a record layout.
Limit   memory that callees change has no such places: they may access other numbers in it. Nor has memory of the
        caller's where the function does not access all of the bytes that it asks for: others may lie there.
"""

from __future__ import annotations

from typing import Final

from irad.ir import types
from irad.ir.types import FloatType
from irad.ir.values import Value
from irad.passes.memory.addresses import Position
from irad.passes.memory.memory_types import MemoryTypes
from irad.passes.memory.objects import ObjectKind
from irad.passes.memory.record_layouts import FloatAccess, record_layout
from irad.passes.request import MemoryType

_ENDLESS: Final = 1 << 40  # a stride that no memory reaches
_CALLERS: Final = (ObjectKind.ARGUMENT, ObjectKind.REACHABLE, ObjectKind.GLOBAL, ObjectKind.UNKNOWN)


def number_places(memory: MemoryTypes, pointer: Value, size: int | None = None) -> MemoryType | None:
    """Places of the numbers that the function may access at a pointer, within ``size`` bytes if that is given."""
    found = {_places(memory, item.index) for item in memory.points_to.of(pointer)}
    layout = found.pop() if len(found) == 1 else None
    if layout is None or not layout.floats():
        return layout
    if layout.stride == _ENDLESS:
        offset = memory.points_to.position(pointer).exact
        if size is not None and offset is not None and not _accesses_all(memory, pointer, offset, size):
            return None
    else:
        offset = memory.points_to.record_position(pointer).modulo(layout.stride)
    return None if offset is None else layout.seen_from(offset)


def _accesses_all(memory: MemoryTypes, pointer: Value, offset: int, size: int) -> bool:
    """True if the function knows the contents of each of ``size`` bytes of the caller's memory."""
    callers = [item.index for item in memory.points_to.of(pointer) if item.kind in _CALLERS]
    wanted = set(range(offset, offset + size))
    return all(
        wanted
        <= {
            byte
            for start, kinds in memory.accesses.get(index, {}).items()
            for kind in kinds
            for byte in range(start, start + types.size_of(kind))
        }
        for index in callers
    )


def is_made_here(memory: MemoryTypes, pointer: Value) -> bool:
    """True if a pointer points to memory of the function's own: its shadow cannot hold cotangents beforehand."""
    return not any(item.kind in _CALLERS for item in memory.points_to.of(pointer))


def _places(memory: MemoryTypes, index: int) -> MemoryType | None:
    if memory.layouts[index] is not None or memory.opaque >> index & 1:
        return memory.layouts[index]
    known = [
        (offset, kind)
        for offset, kinds in memory.accesses.get(index, {}).items()
        for kind in kinds
        if isinstance(kind, FloatType) and kind in (types.DOUBLE, types.FLOAT)
    ]
    if index not in memory.spread:
        return MemoryType(_ENDLESS, tuple(sorted((offset % _ENDLESS, str(kind)) for offset, kind in known)))
    places = [(Position(offset, 0), kind) for offset, kind in known] + list(memory.spread[index])
    return record_layout([FloatAccess(place, kind, kind.bits // 8) for place, kind in places])
