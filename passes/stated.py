"""Loads of addresses that lead to the start of an object, by what the request states of arguments.

Input   a function, what its parameters' memory holds.
Output  the loads. The function is not changed.
Method  from parameters on: a load at a constant offset where the memory is stated to hold the address of something
        single gives an address that is known in turn.
Limit   addresses that went through phis or selects are not followed.

    %data = load ptr, ptr (%header + 24)      a start: the header of %header is stated to lead to fields there
    %x = load ptr, ptr (%data + 32)           the address of an array's elements: these may be the middle of an array
"""

from __future__ import annotations

from collections.abc import Mapping, Set

from irad.ir.instructions import GetElementPtr, Load
from irad.ir.module import Function
from irad.ir.types import PointerType
from irad.ir.values import Parameter, Value
from irad.passes.addresses import offset_modulo
from irad.passes.request import MemoryType


def stated_starts(function: Function, memory: Mapping[Parameter, MemoryType | None]) -> Set[Value]:
    """The loads whose results point to the start of an object."""
    known: dict[Value, MemoryType] = {p: holds for p, holds in memory.items() if holds is not None and holds.single}
    if not known:
        return frozenset()
    loads = [i for i in function.instructions() if isinstance(i, Load) and isinstance(i.type, PointerType)]
    found = -1
    while found != len(known):
        found = len(known)
        for load in loads:
            behind = _stated_behind(load, known)
            if behind is not None and behind.single:
                known[load] = behind
    return known.keys() - memory.keys()


def _stated_behind(load: Load, known: Mapping[Value, MemoryType]) -> MemoryType | None:
    """What is stated of the memory that a loaded address leads to."""
    pointer = load.operands[0]
    root = pointer
    while isinstance(root, GetElementPtr):
        root = root.operands[0]
    if root not in known:
        return None
    offset = offset_modulo(pointer, None, known)
    return None if offset is None else dict(known[root].stated).get(offset)
