"""The variant of its callee that a call needs: kinds of the parameters, and the contents of their memory.

Input   a `Unit`, a call in it.
Output  a `Variant`, or for a call through a pointer a `PointerVariant`; None when nothing about the call is active.
"""

from __future__ import annotations

from dataclasses import replace

from irad.ir.instructions import Alloca, Binary, CallSite, Cast, Instruction, Load, Phi, Select, Store, Unary
from irad.ir.module import Function
from irad.ir.types import FloatType, PointerType
from irad.ir.values import Parameter, Value
from irad.ir.worklist import reachable
from irad.passes.callees import Pointer, constant_parameters, effects_of, is_from_outside
from irad.passes.parallel.flatten import ParallelLoop
from irad.passes.request import MemoryType, ParameterKind
from irad.passes.unit import Unit
from irad.passes.variant import PointerVariant, Variant

# Whether anything needs the primal value that a function with a rule returns.
#
# Input   a `Unit`, a call in it of a function whose pair comes from outside.
# Output  `result_is_needed`. Where it is false the augmented primal may return anything for the value.
# Method  the value is followed through linear operations, whose adjoints do not read it. It is needed as soon as
#         anything else uses it: a product with what is active, a comparison, a call, memory that is read.
# Limit   only numbers are followed, and only up to the memory for the result of the program; what a structure holds
#         (an array has a size) is needed where it is read.


def result_is_needed(unit: Unit, call: CallSite) -> bool:
    """True if the value, of a C function or returned by Numba in memory, is used other than linearly."""
    if isinstance(call.callee, Function) and call.callee.is_declaration:
        return _is_needed(unit, call)
    place = call.arguments[0] if call.arguments else None
    if not (isinstance(place, Alloca) or (isinstance(place, Parameter) and place in unit.unneeded)):
        return True
    readers = list(readers_elsewhere(unit, call, unit.points_to.mask(place)))
    return any(not _is_number(reader) or _is_needed(unit, reader) for reader in readers)


def readers_elsewhere(unit: Unit, but: Instruction, mask: int) -> list[Instruction]:
    """The instructions but one that may read memory."""
    overlapping = unit.points_to.overlapping(mask)
    others = (inst for inst in unit.function.instructions() if inst is not but)
    return [inst for inst in others if unit.mod_ref.of(inst).reads & overlapping]


def _is_number(inst: Instruction) -> bool:
    return isinstance(inst, Load) and isinstance(inst.type, FloatType)


def _is_needed(unit: Unit, value: Instruction) -> bool:
    """True if a number, or a value computed from it, is used other than linearly."""
    if unit.everything:
        return bool(value.users)
    followed = reachable([value], lambda each: (user for user in each.users if not isinstance(user, Store)))
    return any(not _is_linear(unit, user, each) for each in followed for user in each.users)


def _is_linear(unit: Unit, user: Instruction, value: Value) -> bool:
    """True if neither the adjoint of an instruction nor memory that is read later needs a value."""
    active = unit.activity.active
    match user:
        case Unary(opcode="fneg") | Phi() | Binary(opcode="fadd" | "fsub") | Cast(opcode="fpext" | "fptrunc"):
            return True
        case Select(operands=[condition, _, _]):
            return condition is not value
        # The adjoint of the other factor reads this one, but only if that factor is active.
        case Binary(opcode="fmul", operands=[lhs, rhs]):
            return (rhs if lhs is value else lhs) not in active
        case Binary(opcode="fdiv", operands=[_, divisor]):
            return divisor is not value and divisor not in active
        case Store(operands=[stored, pointer]):
            is_dropped = stored is value and isinstance(pointer, Parameter) and pointer in unit.unneeded
            return is_dropped and not readers_elsewhere(unit, user, unit.points_to.mask(pointer))
        case _:
            return False


def takes_part(unit: Unit, call: CallSite) -> bool:
    """True if any argument or the result of a call is active."""
    return unit.activity.takes_part(call)


def callee_variant(unit: Unit, call: CallSite, callee: Function, loop: ParallelLoop | None = None) -> Variant | None:
    """The variant of a callee with a body that a call needs; None when nothing about the call is active.

    Of the function of a parallel loop (``loop``) more is known: what its arrays hold, and what becomes of them.
    """
    if not takes_part(unit, call):
        return None
    kinds, memory = _kinds(unit, call, loop)
    for number in constant_parameters(callee, unit.registry):
        kinds = (*kinds[:number], ParameterKind.CONST, *kinds[number + 1 :])
    variant = Variant(callee, kinds, memory, *_result_kinds(unit, call))
    # The functions of a rule by a user are compiled for each need, so the variant has to say what a call needs.
    if is_from_outside(callee, unit.registry):
        effects = effects_of(callee)
        return replace(
            variant,
            overwritten=_overwritten(unit, call),
            result_is_read=result_is_needed(unit, call),
            unneeded=_unneeded(unit, call),
            written=_parameters(call) if effects is None else effects.writes,
            returned=_parameters(call) if effects is None else effects.captures,
            is_seen=effects is not None,
        )
    if loop is None or unit.everything:
        return variant
    return replace(variant, stays=_staying(unit, call), noalias=_noalias(unit, call))


def pointer_variant(unit: Unit, call: CallSite, callee: Pointer) -> PointerVariant | None:
    """The pair for a callee that is known only when the call runs."""
    if not takes_part(unit, call):
        return None
    by_value = unit.activity.passes_by_value(call)
    return PointerVariant(callee.function_type, *_kinds(unit, call), *_result_kinds(unit, call), by_value)


def _kinds(
    unit: Unit, call: CallSite, loop: ParallelLoop | None = None
) -> tuple[tuple[ParameterKind, ...], tuple[MemoryType | None, ...]]:
    """Kinds of the parameters of a callee, and the contents of their memory."""
    kinds = tuple(_argument_kind(unit, a) for a in call.arguments)
    signature = unit.program.signatures.get(call.callee) if isinstance(call.callee, Function) else None
    declared = signature or (None,) * len(call.arguments)
    memory = tuple(
        declared[number] or _memory_of(unit, loop, number, a) if isinstance(a.type, PointerType) else None
        for number, a in enumerate(call.arguments)
    )
    return kinds, memory


def _result_kinds(unit: Unit, call: CallSite) -> tuple[bool, bool]:
    """Activity of the result: True if it is active, and True if it is a pointer with a shadow."""
    has_shadow = isinstance(call.type, PointerType) and unit.activity.has_shadow(call)
    return call in unit.activity.active, has_shadow


def _overwritten(unit: Unit, call: CallSite) -> frozenset[int]:
    """The arguments whose memory may change, or end, between the call and its reverse."""
    pointers = [(i, a) for i, a in enumerate(call.arguments) if isinstance(a.type, PointerType)]
    if unit.everything:
        return frozenset(i for i, _ in pointers)
    return frozenset(i for i, pointer in pointers if unit.effects.is_overwritten(pointer, call))


def _parameters(call: CallSite) -> frozenset[int]:
    """The parameters of a callee that are pointers."""
    return frozenset(i for i, argument in enumerate(call.arguments) if isinstance(argument.type, PointerType))


def _unneeded(unit: Unit, call: CallSite) -> frozenset[int]:
    """Arguments that the caller of the entry does not need afterwards, and that nothing else here reads."""
    wanted = [i for i, argument in enumerate(call.arguments) if argument in unit.unneeded]
    return frozenset(i for i in wanted if not readers_elsewhere(unit, call, unit.points_to.mask(call.arguments[i])))


def _staying(unit: Unit, call: CallSite) -> frozenset[int]:
    """Arguments of a loop function whose memory is unchanged when it is reversed, except for its own writes."""
    pointers = [(i, a) for i, a in enumerate(call.arguments) if isinstance(a.type, PointerType)]
    return frozenset(i for i, pointer in pointers if not unit.effects.is_overwritten(pointer, call))


def _noalias(unit: Unit, call: CallSite) -> frozenset[tuple[int, int]]:
    """The pairs of its pointers that point to memory that does not overlap."""
    points_to = unit.points_to
    masks = [(i, points_to.mask(a)) for i, a in enumerate(call.arguments) if isinstance(a.type, PointerType)]
    known = [(i, mask) for i, mask in masks if mask]
    return frozenset((i, j) for i, a in known for j, b in known if i < j and not points_to.may_overlap(a, b))


def _memory_of(unit: Unit, loop: ParallelLoop | None, number: int, argument: Value) -> MemoryType | None:
    """Memory an argument points to: as the front end knows it for the arrays of parallel loops, or as accesses show."""
    array = loop.array_of(number) if loop is not None else None
    if array is not None and array.memory is not None:
        return array.memory
    return unit.memory_types.common_layout(unit.points_to.mask(argument))


def _argument_kind(unit: Unit, argument: Value) -> ParameterKind:
    if argument in unit.activity.active:
        return ParameterKind.ACTIVE
    if isinstance(argument.type, PointerType) and unit.activity.has_shadow(argument):
        return ParameterKind.SHADOW
    return ParameterKind.CONST
