"""Whether anything needs the primal value that a function with a rule returns.

Input   a `Unit`, a call in it of a function whose pair comes from outside.
Output  `result_is_needed`. Where it is false the augmented primal may return anything for the value.
Method  the value is followed through linear operations, whose adjoints do not read it. It is needed as soon as anything
        else uses it: a product with what is active, a comparison, a call, memory that is read.
Limit   only numbers are followed, and only up to the memory for the result of the program; what a structure holds
        (an array has a size) is needed where it is read.
"""

from __future__ import annotations

from irad.ir.instructions import Alloca, Binary, CallSite, Cast, Instruction, Load, Phi, Select, Store, Unary
from irad.ir.module import Function
from irad.ir.types import FloatType
from irad.ir.values import Parameter, Value
from irad.ir.worklist import reachable
from irad.passes.unit import Unit


def result_is_needed(unit: Unit, call: CallSite) -> bool:
    """Whether the value is used other than linearly: that of a C function, or what Numba returns in memory."""
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
    """Whether a number, or what is computed from it, is used other than linearly."""
    if unit.everything:
        return bool(value.users)
    followed = reachable([value], lambda each: (user for user in each.users if not isinstance(user, Store)))
    return any(not _is_linear(unit, user, each) for each in followed for user in each.users)


def _is_linear(unit: Unit, user: Instruction, value: Value) -> bool:
    """Whether neither the adjoint of an instruction nor what is left in memory that is read asks for a value."""
    active = unit.activity.active
    match user:
        case Unary(opcode="fneg") | Phi() | Binary(opcode="fadd" | "fsub") | Cast(opcode="fpext" | "fptrunc"):
            return True
        case Select(operands=[condition, _, _]):
            return condition is not value
        case Binary(opcode="fmul", operands=[lhs, rhs]):
            return (rhs if lhs is value else lhs) not in active
        case Binary(opcode="fdiv", operands=[_, divisor]):
            return divisor is not value and divisor not in active
        case Store(operands=[stored, pointer]):
            is_dropped = stored is value and isinstance(pointer, Parameter) and pointer in unit.unneeded
            return is_dropped and not readers_elsewhere(unit, user, unit.points_to.mask(pointer))
        case _:
            return False
