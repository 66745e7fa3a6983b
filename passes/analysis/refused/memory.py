"""Refusals about memory: active values in what the caller declared constant, or in what has no shadow."""

from __future__ import annotations

from irad.errors import ActivityError, IradError, UnsupportedError
from irad.ir.instructions import CallSite, Store
from irad.ir.values import GlobalVariable, Parameter, Value
from irad.passes.memory.objects import MemoryObject, ObjectKind
from irad.passes.request import ParameterKind
from irad.passes.unit import Unit

CONTAINER_REMEDY = (
    "(a) use irad.grad or irad.vjp, which create a shadow for it or (b) pass it as irad.Active or (c) create it inside "
    "the function"
)
ARRAY_REMEDY = (
    "(a) give it a shadow: irad.Duplicated(array, irad.shadow_like(array)) in irad.autodiff or (b) use irad.grad or "
    "irad.vjp, which create one or (c) create the array inside the function"
)
_LOST = "a constant argument has no shadow, so this derivative would be lost"


def may_be_anything(unit: Unit, pointer: Value) -> bool:
    """Whether a pointer may lead to memory of unknown origin."""
    return any(item.kind is ObjectKind.UNKNOWN for item in unit.points_to.of(pointer))


def is_header(unit: Unit, item: MemoryObject) -> bool:
    """Whether an object is the bookkeeping of an argument (its reference count, its owner), which holds no numbers.

    It shows up together with the argument's data where an array's descriptor went through local memory.
    """
    if item.kind is not ObjectKind.ARGUMENT or not isinstance(item.value, Parameter):
        return False
    memory = unit.variant.memory[unit.function.params.index(item.value)]
    return memory is None or not memory.fields


def scratch_error(unit: Unit, inst: Store) -> IradError | None:
    """Active values stored in memory that the caller declared constant: what is read back would have no derivative."""
    return _stored_error(unit, inst.operands[1])


def written_error(unit: Unit, call: CallSite) -> IradError | None:
    """The same where a library function stores them, which read what is active."""
    activity, access = unit.activity, unit.mod_ref.of(call)
    if not access.numbers_from & activity.varied_objects and not any(v in activity.varied for v in call.arguments):
        return None
    errors = (_stored_error(unit, call.arguments[i]) for i in access.targets)
    return next((error for error in errors if error is not None), None)


def _stored_error(unit: Unit, pointer: Value) -> IradError | None:
    for item in unit.points_to.of(pointer) if not unit.everything else ():
        if is_constant_container(unit, item):
            return stored_in_constant(item)
        if _is_constant_memory(unit, item):
            return stored_in_constant(item)
    return None


def move_error(unit: Unit, call: CallSite) -> IradError | None:
    """As `scratch_error` and `_access_error`, for the elements of containers."""
    access = unit.mod_ref.of(call)
    if not access.looks_inside:
        return None
    activity, points_to = unit.activity, unit.points_to
    for to, origin in access.moves:
        if not origin & activity.varied_objects:
            continue
        for item in points_to.members(to):
            if is_constant_container(unit, item):
                return stored_in_constant(item)
            lost = (activity.useful_objects & ~activity.shadowed) >> item.index & 1
            if lost and not is_header(unit, item):
                return no_shadow(item)
    for argument in call.arguments:
        for item in points_to.of(argument) if activity.has_shadow(argument) else ():
            if not activity.shadowed >> item.index & 1 and not is_header(unit, item):
                return no_shadow(item)
    return None


def stored_in_constant(item: MemoryObject) -> IradError:
    """The refusal of active values in memory that was passed as constant."""
    return _in_constant("an active value is stored in", item)


def broken_promise(unit: Unit, error: IradError) -> IradError:
    """What `no_shadow` refused, as a refusal of active values in constant memory if that is what it is."""
    item = error.memory
    if not isinstance(item, MemoryObject) or not unit.variant.is_entry:
        return error
    if not is_constant_container(unit, item) and not is_promised(unit, item):
        return error
    found = _in_constant("active values pass through", item)
    found.instruction = error.instruction
    return found


def _in_constant(problem: str, item: MemoryObject) -> IradError:
    is_array = item.kind is ObjectKind.ARGUMENT and item.holds is not None
    remedy = ARRAY_REMEDY if is_array else CONTAINER_REMEDY
    error = ActivityError(f"{problem} {describe_memory(item)}, which was passed as constant", remedy, _LOST)
    return _about(item, error)


def is_constant_container(unit: Unit, item: MemoryObject) -> bool:
    """Whether elements are those of a container that the caller passed as constant."""
    if item.kind is not ObjectKind.REACHABLE or not isinstance(item.value, Parameter) or not unit.variant.is_entry:
        return False
    return unit.kind(item.value) is ParameterKind.CONST


def _is_constant_memory(unit: Unit, item: MemoryObject) -> bool:
    """Whether memory is the caller's and has no derivative there."""
    is_active = bool(unit.activity.active_objects >> item.index & 1)
    if item.kind is ObjectKind.GLOBAL:
        return isinstance(item.value, GlobalVariable) and is_active
    if unit.variant.is_entry:
        return is_promised(unit, item)
    return is_active and is_promised(unit, item) and not is_header(unit, item)


def is_promised(unit: Unit, item: MemoryObject) -> bool:
    """Whether memory is that of an argument that was passed as constant, and that may have no shadow."""
    if item.kind is not ObjectKind.ARGUMENT or not isinstance(item.value, Parameter) or item.value in unit.workspace:
        return False
    if unit.variant.memory[unit.function.params.index(item.value)] is not None and is_header(unit, item):
        return False  # the caller states what is bookkeeping
    # the slot of a result without a cotangent is not one of the caller's arrays
    return unit.kind(item.value) is ParameterKind.CONST and "noalias" not in item.value.attributes


def no_shadow(item: MemoryObject) -> IradError:
    """The refusal of active values in memory that can have no shadow."""
    error = UnsupportedError(
        f"active values pass through {describe_memory(item)}, whose origin irad cannot trace",
        "keep them in arrays that are arguments or are created inside the function",
        "memory of unknown origin has no shadow, so their derivatives would be lost",
    )
    return _about(item, error)


def _about(item: MemoryObject, error: IradError) -> IradError:
    error.memory = item
    return error


def describe_memory(item: MemoryObject) -> str:
    """An object in the user's words."""
    name = item.value.name if item.value is not None else None
    if name and name.startswith("arg."):
        return f"the memory of argument {name.split('.')[1]!r}"
    return "memory"
