"""Values that lead to the start of an object: what positions are counted from.

Input   a function, what its parameters' memory holds (`declared_starts`); where its pointers may point
        (`loaded_starts`).
Output  the values, loads for the most part. The function is not changed.
Method  what the request declares: from parameters on, a load at a constant offset where the memory is declared to hold
        the address of something single gives an address that is known as well.
        What the function itself stores: an address of memory that is made here, and that no callee gets hold of, is
        loaded as it was stored. All such loads are assumed to be starts at first; an object of which another address is
        then stored is given up, with the loads that may give it, until nothing changes.
        Where a pointer points in memory that a loop descends to, and what is stored there, depend on each other: so all
        loads of pointers are assumed to give starts before anything is known of pointers (`solve_with_starts`). What is
        found then is checked; without the assumptions that do not hold, it is found again. Those that are left confirm
        each other: the first load that gave something else would read what was stored while all of them held.
Limit   declared addresses that went through phis or selects are not followed.

    %data = load ptr, ptr (%header + 24)      a start: the header of %header is declared to lead to fields
    %x = load ptr, ptr (%data + 32)           the address of an array's elements: these may be the middle of an array
    store ptr %data, ptr %next                a loop reads it back from a list, a field, a node: a start
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from typing import Final

from irad.ir.instructions import CallSite, GetElementPtr, Instruction, Load, accessed, stored
from irad.ir.module import Function
from irad.ir.types import PointerType
from irad.ir.values import Parameter, Value
from irad.passes.analysis.callees import effects_of, resolve
from irad.passes.memory.addresses import ANYWHERE, START, Position, Positions, offset_modulo, position
from irad.passes.memory.objects import SEPARATE, PointsTo, indices, reached_by, union
from irad.passes.memory.returned_addresses import may_store_address
from irad.passes.memory.signatures import BOOKKEEPING, kind_of
from irad.passes.request import MemoryType
from irad.ruleset.interface import Effects, Origin
from irad.ruleset.registry import Registry

_MOST_ROUNDS: Final = 8  # in which assumptions are given up


def declared_starts(function: Function, memory: Mapping[Parameter, MemoryType | None]) -> Set[Value]:
    """The loads whose results point to the start of an object, by what the request states."""
    known: dict[Value, MemoryType] = {p: holds for p, holds in memory.items() if holds is not None and holds.single}
    if not known:
        return frozenset()
    loads = _pointer_loads(function)
    found = -1
    while found != len(known):
        found = len(known)
        for load in loads:
            behind = _declared_behind(load, known)
            if behind is not None and behind.single:
                known[load] = behind
    return known.keys() - memory.keys()


def _pointer_loads(function: Function) -> list[Load]:
    return [i for i in function.instructions() if isinstance(i, Load) and isinstance(i.type, PointerType)]


def _declared_behind(load: Load, known: Mapping[Value, MemoryType]) -> MemoryType | None:
    """What is declared of the memory that a loaded address leads to."""
    pointer = load.operands[0]
    root = pointer
    while isinstance(root, GetElementPtr):
        root = root.operands[0]
    if root not in known:
        return None
    offset = offset_modulo(pointer, None, known)
    return None if offset is None else dict(known[root].declared).get(offset)


def data_of_headers(
    instructions: Iterable[Instruction],
    bases: Set[Value],
    pointees: Mapping[Value, int],
    contents: Sequence[Mapping[Position, int]],
    headers: int,
) -> Set[Value]:
    """Loads of the address of data from a header as it was made: known before it is known where pointers point."""
    found: set[Value] = set()
    for inst in instructions:
        if isinstance(inst, Load) and isinstance(inst.type, PointerType):
            root = inst.operands[0]
            while isinstance(root, GetElementPtr):
                root = root.operands[0]
            made = pointees.get(root, 0) if root in bases else 0
            if made & headers and not made & ~headers:
                place = position(inst.operands[0], bases)
                if all(contents[index].keys() == {place} for index in indices(made)):
                    found.add(inst)
    return found


def solve_with_starts(
    function: Function, registry: Registry, solve: Callable[[frozenset[Value]], tuple[PointsTo, Positions]]
) -> PointsTo:
    """Where pointers point, with the starts among loaded ones that can be found.

    Args:
        function: the function.
        registry: the rules.
        solve: finds where pointers point, by values that are assumed to be starts; of these, it gives back as bases
            those that are if all assumptions hold. It also returns the positions that it used.
    """
    found, used = solve(frozenset())
    places = [place for inst in function.instructions() if (place := _place_of_pointer(inst)) is not None]
    if all(used.of(place) != ANYWHERE for place in places):
        return found
    assumed = frozenset[Value](_pointer_loads(function)) | _data_of_callees(function, registry)
    proven = assumed & found.bases
    for _ in range(_MOST_ROUNDS):
        found, _ = solve(assumed)
        if assumed <= found.bases:
            return found
        assumed &= found.bases
    return solve(proven)[0]


def _place_of_pointer(inst: Instruction) -> Value | None:
    """From where a pointer is loaded, or to where it is stored."""
    moved = stored(inst) or inst
    return accessed(inst) if isinstance(moved.type, PointerType) else None


def loaded_starts(
    function: Function,
    points_to: PointsTo,
    headers: int,
    registry: Registry,
    storing: dict[Function, bool],
    assumed: frozenset[Value],
) -> frozenset[Value]:
    """Those of ``points_to``, pointers to headers (none lead into them), and data pointers that are read.

    Args:
        function: the function.
        points_to: of it, with the bases that are known without this.
        headers: the objects that hold the address of data and no other pointer.
        registry: the rules.
        storing: the functions that are known to store addresses, or not to; grows.
        assumed: the bases of ``points_to`` that are to be checked: they are among the result if they hold.
    """
    loads = _pointer_loads(function)
    bookkeeping = union(1 << item.index for item in points_to.objects if kind_of(item.holds) == BOOKKEEPING)
    whole = headers | bookkeeping
    found = set(points_to.bases - assumed)
    found |= {load for load in loads if points_to.mask(load) and not points_to.mask(load) & ~whole}
    positions = Positions(found | assumed)
    found |= {load for load in loads if _is_data_pointer(load, points_to, headers, positions)}
    found |= _data_of_callees(function, registry)
    return _read_back(function, points_to, frozenset(found), loads, registry, storing)


def _is_data_pointer(load: Load, points_to: PointsTo, headers: int, positions: Positions) -> bool:
    """Whether a load reads the address of an allocation's data from its header."""
    owners = [index for index in indices(points_to.mask(load.operands[0])) if points_to.parts[index]]
    if not owners or any(not headers >> index & 1 for index in owners):
        return False
    place = positions.of(load.operands[0])
    return place.exact is not None and all(points_to.parts[index].keys() == {place} for index in owners)


def _data_of_callees(function: Function, registry: Registry) -> frozenset[Value]:
    """The calls that return the address of data that is in the header that they are given."""
    return frozenset(
        call
        for call, effects in _calls(function, registry)
        if effects is not None and effects.result is Origin.ARGUMENT and effects.header is not None
    )


def _calls(function: Function, registry: Registry) -> Iterator[tuple[CallSite, Effects | None]]:
    for inst in function.instructions():
        if isinstance(inst, CallSite):
            yield inst, effects_of(resolve(inst, registry))


def _read_back(
    function: Function,
    points_to: PointsTo,
    known: frozenset[Value],
    loads: Sequence[Load],
    registry: Registry,
    storing: dict[Function, bool],
) -> frozenset[Value]:
    """Adds the loads that read what the function stored, where it stores addresses of starts only."""
    values = list(_stored(function, points_to, registry))
    lost = _not_followed(function, points_to, registry, storing)
    while True:
        starts = known | {load for load in loads if (mask := points_to.mask(load)) and not mask & lost}
        positions = Positions(starts)
        inside = union(points_to.mask(value) for value in values if positions.of(value) != START)
        if not inside & ~lost:
            return starts
        lost |= inside


def _stored(function: Function, points_to: PointsTo, registry: Registry) -> Iterator[Value]:
    """What the function puts into memory, of what leads to memory, by itself or through callees."""
    for inst in function.instructions():
        value = stored(inst)
        if value is not None and points_to.mask(value):
            yield value
    for call, effects in _calls(function, registry):
        if effects is not None and effects.captures_into:
            yield from (call.arguments[i] for i in sorted(effects.captures))


def _not_followed(function: Function, points_to: PointsTo, registry: Registry, storing: dict[Function, bool]) -> int:
    """Objects whose addresses the function did not make, or that other code may have stored."""
    elsewhere = union(1 << item.index for item in points_to.objects if item.kind not in SEPARATE)
    lost, escaped = elsewhere, 0
    for call, effects in _calls(function, registry):
        if effects is None:
            if may_store_address(call.callee, registry, storing):
                escaped |= elsewhere | reached_by(call, points_to)
        else:
            lost |= union(points_to.place(call, place) for _, place in effects.links)
    return lost | points_to.reachable(escaped)
