"""The promise that constant arguments take no active values, checked in the functions that the entry calls.

Input   the finished units of a program, the entry's first.
Output  nothing; `ActivityError` where a callee stores an active value in memory that the caller of the entry declared
        constant.
Method  `refusals` sees the entry's own stores. Here its calls are followed, parallel loops too, with that memory taken
        as constant: what a callee stores there, if it depends on what is active in the call, breaks the promise. What
        the entry was asked for decides, not what the plan treats as active.
Limit   a call in which nothing is active has no unit, and is not followed; nor is memory behind pointers in memory.

    call void @loop(ptr %x, ptr %work)        x has a shadow, work was passed as constant
    store double %square, ptr %element        in the loop, of work; %square depends on x: refused
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from irad.ir.instructions import CallSite, Instruction, Store
from irad.ir.module import Function
from irad.ir.types import PointerType, holds_floats
from irad.ir.values import Parameter, Value
from irad.passes.analysis.activity import Activity, find_activity
from irad.passes.analysis.callees import resolve
from irad.passes.analysis.refused_memory import is_promised, stored_in_constant
from irad.passes.memory.objects import MemoryObject, ObjectKind
from irad.passes.request import ParameterKind
from irad.passes.unit import Unit
from irad.ruleset.interface import CallRule

Promised = Mapping[int, MemoryObject]
"""Parameters of a function that may lead to memory declared constant: by number the entry's object."""


def check_promises(entry: Unit, units: Mapping[Function, Unit]) -> None:
    """Checks the callees of an entry.

    Args:
        entry: the unit of what is differentiated.
        units: of its callees, one for each function.

    Raises:
        ActivityError: a callee breaks the promise.
    """
    promised = {
        number: item
        for number, param in enumerate(entry.function.params)
        if isinstance(param.type, PointerType)
        for item in entry.points_to.of(param)
        if is_promised(entry, item) and entry.memory_types.holds_floats(1 << item.index)
    }
    if promised:
        _Search(units).follow(entry, entry.variant.kinds, promised, is_entry=True)


@dataclass(eq=False, slots=True)
class _Search:
    units: Mapping[Function, Unit]
    seen: set[tuple[Function, tuple[ParameterKind, ...], frozenset[int]]] = field(default_factory=set)

    def follow(
        self, unit: Unit, kinds: tuple[ParameterKind, ...], promised: Promised, *, is_entry: bool = False
    ) -> None:
        """Looks at a function whose parameters take part as ``kinds`` say."""
        key = unit.function, kinds, frozenset(promised)
        if key in self.seen:
            return
        self.seen.add(key)
        activity = _activity(unit, kinds, promised)
        for block in unit.cfg.order:
            for inst in block.instructions if block in unit.live else ():
                if not is_entry:
                    self.check(unit, activity, inst, promised)
                if isinstance(inst, CallSite) and isinstance(callee := resolve(inst, unit.registry), Function):
                    self.call(unit, activity, inst, callee, promised)

    def check(self, unit: Unit, activity: Activity, inst: Instruction, promised: Promised) -> None:
        """Refuses an instruction that stores an active value where none may be."""
        for pointer in _filled(unit, activity, inst):
            for number in _parameters(unit, pointer):
                if number in promised:
                    error = stored_in_constant(promised[number])
                    error.instruction = inst
                    raise error

    def call(self, unit: Unit, activity: Activity, call: CallSite, callee: Function, promised: Promised) -> None:
        """Follows a call that is passed memory declared constant."""
        handed = {
            number: promised[found]
            for number, argument in enumerate(call.arguments)
            for found in _parameters(unit, argument)
            if found in promised
        }
        if handed and callee in self.units:
            kinds = tuple(
                ParameterKind.CONST if number in handed else _kind(activity, argument)
                for number, argument in enumerate(call.arguments)
            )
            self.follow(self.units[callee], kinds, handed)


def _activity(unit: Unit, kinds: tuple[ParameterKind, ...], promised: Promised) -> Activity:
    """What is active if parameters take part as ``kinds`` say, and promises are kept."""
    by_param = dict(zip(unit.function.params, kinds, strict=True))
    constant = 0
    for number in promised:
        constant |= unit.points_to.mask(unit.function.params[number])
    return find_activity(unit.function, by_param, unit.mod_ref, frozenset(), constant=constant)


def _kind(activity: Activity, argument: Value) -> ParameterKind:
    if isinstance(argument.type, PointerType):
        is_varied = activity.points_to.mask(argument) & activity.varied_objects
        return ParameterKind.SHADOW if is_varied else ParameterKind.CONST
    return ParameterKind.ACTIVE if holds_floats(argument.type) and argument in activity.varied else ParameterKind.CONST


def _filled(unit: Unit, activity: Activity, inst: Instruction) -> Iterator[Value]:
    """The pointers through which an instruction stores what depends on active values."""
    match inst:
        case Store(operands=[value, pointer]) if value in activity.varied:
            yield pointer
        case CallSite() if isinstance(unit.mod_ref.callee(inst), CallRule):
            access = unit.mod_ref.of(inst)
            if access.numbers_from & activity.varied_objects or any(v in activity.varied for v in inst.arguments):
                yield from (inst.arguments[index] for index in access.targets)
        case _:
            pass


def _parameters(unit: Unit, pointer: Value) -> Iterator[int]:
    """The numbers of the parameters whose memory a pointer may lead to."""
    if not isinstance(pointer.type, PointerType):
        return
    for item in unit.points_to.of(pointer):
        if item.kind is ObjectKind.ARGUMENT and isinstance(item.value, Parameter):
            yield unit.function.params.index(item.value)
