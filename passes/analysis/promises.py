"""The promise that constant arguments take no active values, checked in the functions that the entry calls.

Input   the finished units of a program, the entry's first.
Output  nothing; `ActivityError` where a callee stores an active value in memory that the caller of the entry declared
        constant.
Method  `refusals` sees the entry's own stores. Here its calls are followed, parallel loops too, with that memory taken
        as constant: what a callee stores there, if it depends on what is active in the call, breaks the promise. What
        the entry was asked for decides, not what the plan treats as active.
        Constant containers are followed like arrays, to the memory that they point to.
Limit   a call in which nothing is active has no unit, and is not followed.

    call void @loop(ptr %x, ptr %work)        x has a shadow, work was passed as constant
    store double %square, ptr %element        in the loop, of work; %square depends on x: refused
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Final

from irad.ir.instructions import CallSite, Instruction, Store
from irad.ir.module import Function
from irad.ir.types import PointerType, holds_floats
from irad.ir.values import Parameter, Value
from irad.passes.analysis.activity import Activity, find_activity
from irad.passes.analysis.refused.memory import is_constant_container, is_promised, stored_in_constant
from irad.passes.callees import resolve
from irad.passes.memory.objects import MemoryObject, ObjectKind, indices, union
from irad.passes.request import ParameterKind
from irad.passes.unit import Unit
from irad.records import dataclass
from irad.ruleset.interface import CallRule

Promised = Mapping[tuple[int, ObjectKind], MemoryObject]
"""Memory declared constant, as a function sees it: by the number of a parameter, and whether it is what the parameter
points to or what is reached from there, the entry's object."""

_CALLERS: Final = (ObjectKind.ARGUMENT, ObjectKind.REACHABLE)


def check_promises(entry: Unit, units: Mapping[Function, Unit]) -> None:
    """Checks the callees of an entry.

    Args:
        entry: the unit of what is differentiated.
        units: of its callees, one for each function.

    Raises:
        ActivityError: a callee breaks the promise.
    """
    promised = {
        place: item
        for item in entry.points_to.objects
        if (place := _place(entry, item)) is not None and _is_constant(entry, item)
    }
    if promised:
        _Search(units).follow(entry, entry.variant.kinds, promised, is_entry=True)


def _is_constant(entry: Unit, item: MemoryObject) -> bool:
    if is_constant_container(entry, item):
        return True
    return is_promised(entry, item) and entry.memory_types.holds_floats(1 << item.index)


def _place(unit: Unit, item: MemoryObject) -> tuple[int, ObjectKind] | None:
    """Parameter and kind by which a function sees an object of the caller's; None for other objects."""
    if item.kind not in _CALLERS or not isinstance(item.value, Parameter):
        return None
    return unit.function.params.index(item.value), item.kind


@dataclass(eq=False, slots=True)
class _Search:
    units: Mapping[Function, Unit]
    seen: set[tuple[Function, tuple[ParameterKind, ...], frozenset[object]]] = field(default_factory=set)

    def follow(
        self, unit: Unit, kinds: tuple[ParameterKind, ...], promised: Promised, *, is_entry: bool = False
    ) -> None:
        """Looks at a function whose parameters take part as ``kinds`` say."""
        key = unit.function, kinds, frozenset(promised)
        if key in self.seen:
            return
        self.seen.add(key)
        constants = _constants(unit, promised)
        by_param = dict(zip(unit.function.params, kinds, strict=True))
        constant = union(1 << index for index in constants)
        activity = find_activity(unit.function, by_param, unit.mod_ref, frozenset(), constant=constant)
        for block in unit.cfg.order:
            for inst in block.instructions if block in unit.live else ():
                if not is_entry:
                    _check(unit, activity, inst, constants)
                if isinstance(inst, CallSite) and isinstance(callee := resolve(inst, unit.registry), Function):
                    self.call(unit, activity, inst, callee, constants)

    def call(
        self, unit: Unit, activity: Activity, call: CallSite, callee: Function, constants: Mapping[int, MemoryObject]
    ) -> None:
        """Follows a call that is passed memory declared constant."""
        handed: dict[tuple[int, ObjectKind], MemoryObject] = {}
        for number, argument in enumerate(call.arguments):
            given = unit.points_to.mask(argument) if isinstance(argument.type, PointerType) else 0
            behind = unit.points_to.reachable(union(unit.points_to.contents[index] for index in indices(given)))
            for kind, mask in zip(_CALLERS, (given, behind), strict=True):
                found = next((constants[index] for index in indices(mask) if index in constants), None)
                if found is not None:
                    handed[number, kind] = found
        if handed and callee in self.units:
            kinds = tuple(
                ParameterKind.CONST if (number, ObjectKind.ARGUMENT) in handed else _kind(activity, argument)
                for number, argument in enumerate(call.arguments)
            )
            self.follow(self.units[callee], kinds, handed)


def _constants(unit: Unit, promised: Promised) -> dict[int, MemoryObject]:
    """Memory declared constant, by the numbers of a function's own objects."""
    places = ((item.index, _place(unit, item)) for item in unit.points_to.objects)
    return {index: promised[place] for index, place in places if place is not None and place in promised}


def _check(unit: Unit, activity: Activity, inst: Instruction, constants: Mapping[int, MemoryObject]) -> None:
    """Refuses an instruction that stores an active value where none may be."""
    for index in indices(_filled(unit, activity, inst)):
        if index in constants:
            error = stored_in_constant(constants[index])
            error.instruction = inst
            raise error


def _kind(activity: Activity, argument: Value) -> ParameterKind:
    if isinstance(argument.type, PointerType):
        is_varied = activity.points_to.mask(argument) & activity.varied_objects
        return ParameterKind.SHADOW if is_varied else ParameterKind.CONST
    return ParameterKind.ACTIVE if holds_floats(argument.type) and argument in activity.varied else ParameterKind.CONST


def _filled(unit: Unit, activity: Activity, inst: Instruction) -> int:
    """Objects in which an instruction stores values that depend on active values."""
    match inst:
        case Store(operands=[value, pointer]) if value in activity.varied:
            return unit.points_to.mask(pointer)
        case CallSite() if isinstance(unit.mod_ref.callee(inst), CallRule):
            access = unit.mod_ref.of(inst)
            moved = union(to for to, origin in access.moves if origin & activity.varied_objects)
            is_varied = access.numbers_from & activity.varied_objects or any(
                v in activity.varied for v in inst.arguments
            )
            if is_varied or inst in activity.remote_calls:
                return moved | union(unit.points_to.mask(inst.arguments[index]) for index in access.targets)
            return moved
        case _:
            return 0
