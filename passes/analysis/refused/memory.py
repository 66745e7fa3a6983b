"""Refusals about memory: active values in memory that the caller declared constant, or that has no shadow."""

from __future__ import annotations

from typing import Final

from irad.errors import ActivityError, IradError, UnsupportedError
from irad.ir.instructions import Alloca, AtomicRMW, CallSite, CmpXchg, Instruction, Load, Store
from irad.ir.types import IntType, Type, address_spaces, holds_floats
from irad.ir.values import GlobalVariable, Parameter, Value
from irad.passes.analysis.integer_taint import meets_numbers
from irad.passes.callees import resolve
from irad.passes.memory.objects import MemoryObject, ObjectKind
from irad.passes.request import ParameterKind
from irad.passes.unit import Unit
from irad.ruleset.interface import CallRule, PairRule

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
    """True if a pointer may point to memory of unknown origin."""
    return any(item.kind is ObjectKind.UNKNOWN for item in unit.points_to.of(pointer))


def is_header(unit: Unit, item: MemoryObject) -> bool:
    """True if an object is the bookkeeping of an argument (its reference count, its owner), which holds no numbers.

    It shows up together with the argument's data where an array's descriptor went through local memory.
    """
    if item.kind is not ObjectKind.ARGUMENT or not isinstance(item.value, Parameter):
        return False
    memory = unit.variant.memory[unit.function.params.index(item.value)]
    return memory is None or not memory.fields


def scratch_error(unit: Unit, inst: Store) -> IradError | None:
    """Active values stored in memory that the caller declared constant: values read back would have no derivative."""
    return _stored_error(unit, inst.operands[1])


def written_error(unit: Unit, call: CallSite) -> IradError | None:
    """Refusal of a library function that reads active values and stores results in memory declared constant."""
    activity, access = unit.activity, unit.mod_ref.of(call)
    is_varied = access.numbers_from & activity.varied_objects or any(v in activity.varied for v in call.arguments)
    if not is_varied and call not in activity.remote_calls:
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
    """Refusal of moves of active elements between containers, of which one is constant or has no shadow."""
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
    """The refusal by `no_shadow`, reworded if active values in constant memory are the cause."""
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
    """True if elements are those of a container that the caller passed as constant."""
    if item.kind is not ObjectKind.REACHABLE or not isinstance(item.value, Parameter) or not unit.variant.is_entry:
        return False
    return unit.kind(item.value) is ParameterKind.CONST


def _is_constant_memory(unit: Unit, item: MemoryObject) -> bool:
    """True if memory is the caller's and has no derivative there."""
    is_active = bool(unit.activity.active_objects >> item.index & 1)
    if item.kind is ObjectKind.GLOBAL:
        return isinstance(item.value, GlobalVariable) and is_active
    if unit.variant.is_entry:
        return is_promised(unit, item)
    return is_active and is_promised(unit, item) and not is_header(unit, item)


def is_promised(unit: Unit, item: MemoryObject) -> bool:
    """True if memory is that of an argument that was passed as constant, and that may have no shadow."""
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


# Atomic updates of active memory: none of them has a derivative, but for sums that kernels do not use (`irad.kernel`).
#
# %old = atomicrmw fmax ptr %y, double %v monotonic        refused where y is active


def update_error(unit: Unit, update: AtomicRMW | CmpXchg) -> IradError | None:
    """The refusal of an atomic update; None where nothing active is touched."""
    if not (_updates_numbers(unit, update) or _updates_pointers(unit, update)):
        return None
    if unit.program.request.host.is_shared:
        return _update_by_threads(update)
    return UnsupportedError(
        "an atomic update of active memory has no derivative in irad yet",
        "use an ordinary update, x[i] += …",
        "the reverse sweep would have to read what other threads are writing",
    )


def _update_by_threads(update: AtomicRMW | CmpXchg) -> IradError:
    """The refusal of an update of memory that the threads of a kernel share."""
    name = _ATOMICS.get(update.opcode, "exch") if isinstance(update, AtomicRMW) else "cas"
    if name in ("add", "sub"):
        return UnsupportedError(
            f"the result of cuda.atomic.{name} on active memory is used",
            "use the operation for its effect only, and read the memory after a barrier or in another kernel",
            "what an element held before depends on the order of the threads, and so would the derivative",
        )
    return UnsupportedError(
        f"cuda.atomic.{name} on active memory has no derivative in irad",
        "(a) reduce in shared memory between barriers (x[t] = max(x[t], x[t + half])), or (b) do it on an array that "
        "has no derivative",
        "which thread wins is known only when all blocks are done, but a block is reversed before the others have run",
    )


_ATOMICS: Final = {
    "fadd": "add", "fsub": "sub", "fmax": "max", "fmin": "min", "max": "max", "min": "min", "umax": "max",
    "umin": "min", "add": "add", "sub": "sub", "and": "and_", "or": "or_", "xor": "xor", "xchg": "exch",
    "uinc_wrap": "inc", "udec_wrap": "dec",
}  # fmt: skip
"""Numba's names of atomic operations."""


def _updates_numbers(unit: Unit, inst: Instruction) -> bool:
    """True if an atomic update puts active numbers, or their bits, into memory, or meets some there."""
    pointer, *given = inst.operands
    if any(value in unit.activity.varied for value in given):
        return True
    moved, objects = given[-1].type, unit.activity.varied_objects | unit.activity.shadowed
    if holds_floats(moved):
        return bool(unit.points_to.mask(pointer) & objects)
    return isinstance(moved, IntType) and meets_numbers(unit, pointer, moved, objects)


def _updates_pointers(unit: Unit, inst: Instruction) -> bool:
    """True if an atomic update moves a pointer to active memory: its shadow would not move along."""
    given = inst.operands[1:]
    met = given if isinstance(given[-1].type, IntType) else (inst, *given)
    return any(map(unit.activity.has_shadow, met))


# Refuses what a shadow in the address space of its memory cannot follow.
#
# A pointer's shadow is a pointer into the same address space: parameters, globals, addresses computed from them and
# casts between spaces have theirs. What irad makes itself, the frame and the arena, is generic memory, so memory that
# the function makes elsewhere has no place for its shadow; and a pointer that was stored may be read back as bytes,
# which only tell generic addresses.


def space_error(unit: Unit, inst: Instruction) -> UnsupportedError | None:
    """Problem of an instruction on pointers into an address space other than the generic one."""
    match inst:
        case Load():
            return _stored(inst.type, "read from")
        case Store(operands=[value, _]):
            return _stored(value.type, "stored in")
        case Alloca() if _named(inst.type) and unit.activity.has_shadow(inst):
            return UnsupportedError(
                f"local memory in {_named(inst.type)} takes active values",
                "keep them in ordinary local memory, or in memory that is passed as an argument",
                "irad makes shadows of local memory in the generic address space, and there may be no cast back",
            )
        case CallSite():
            return _call_error(unit, inst)
        case _:
            return None


def _named(type_: Type) -> str:
    """The address spaces of the pointers in a type, in words; empty if they are all generic."""
    found = sorted(address_spaces(type_) - {0})
    return " and ".join(f"address space {space}" for space in found)


def _stored(type_: Type, what: str) -> UnsupportedError | None:
    if not _named(type_):
        return None
    return UnsupportedError(
        f"a pointer to {_named(type_)} is {what} memory",
        "pass it as an argument of its own, or cast it to a generic pointer before it is stored",
        "irad follows such pointers from argument to use only",
    )


def _call_error(unit: Unit, call: CallSite) -> UnsupportedError | None:
    named = next((name for argument in call.arguments if (name := _named(argument.type))), "")
    if not named or not isinstance(resolve(call, unit.registry), CallRule | PairRule):
        return None
    if not any(unit.activity.has_shadow(argument) for argument in call.arguments):
        return None
    return UnsupportedError(
        f"a function with a rule is given a pointer to {named}",
        "cast the pointer to a generic one where it is passed",
        "rules are written for generic pointers",
    )
