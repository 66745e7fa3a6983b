"""Linearity: refuses a function whose results are not linear in its active inputs.

A derivative of such a function in reverse mode is its transpose, and depends on no active value. irad transposes rules
for tangents in this way, at tangents of zero, where a product of two tangents, say, would count for nothing.

Input   a `Unit`.
Output  none; `UnsupportedProgram`, or its only error, names what is not linear.
Method  instruction by instruction. Sums, moves, and products and quotients whose other operand is constant are linear;
        so are functions of the registry whose partial derivatives do not depend on active arguments, and library
        routines that say so (`CallRule.factors`). Everything else that takes a number that depends on an active input
        is refused, comparisons and conversions to integers included.
Limit   that constants are added is not seen. Memory is active as a whole: a number from an array that tangents are
        also stored in counts as one.

    %m = fmul double %a, %t          a constant, t active → linear
    %s = fmul double %t, %t          refused
    %c = fcmp ogt double %t, 0.0     refused
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from irad.errors import IradError, UnsupportedError, UnsupportedProgram
from irad.ir.instructions import (
    Alloca,
    Binary,
    CallSite,
    Cast,
    CondBr,
    ExtractElement,
    ExtractValue,
    FCmp,
    Freeze,
    GetElementPtr,
    ICmp,
    InsertElement,
    InsertValue,
    Instruction,
    Load,
    Phi,
    Select,
    ShuffleVector,
    Store,
    Terminator,
    Unary,
)
from irad.ir.module import Function
from irad.ir.types import holds_floats
from irad.ir.values import Value
from irad.passes.callees import is_from_outside, resolve
from irad.passes.unit import Unit
from irad.ruleset.expr import symbols_of
from irad.ruleset.interface import CallRule, Elementwise, Inactive

_SUMS: Final = frozenset({"fadd", "fsub"})
_LINEAR: Final = (
    *(Binary, FCmp, Cast),  # but for those that have a case of their own
    *(Unary, Select, Phi, Freeze, ICmp, Alloca, Load, Store, GetElementPtr, Terminator),
    *(ExtractValue, InsertValue, ExtractElement, InsertElement, ShuffleVector),
)


def check_linearity(unit: Unit) -> None:
    """Raises the errors of a function that is to be transposed."""
    errors = list(_errors(unit))
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise UnsupportedProgram(errors)


def _errors(unit: Unit) -> Iterator[IradError]:
    for block in unit.cfg.order:
        if block not in unit.live:
            continue
        for inst in block.instructions:
            found = _fault(unit, inst)
            if found is not None:
                error = UnsupportedError(
                    f"a function that is to be transposed is not linear: {found}",
                    "(a) change the rule so that its tangent is a linear function of the tangents of the arguments or "
                    "(b) give the function a rule for reverse mode as well (defvjp)",
                    "reverse mode of a function with only a rule for tangents is the transpose of that rule",
                )
                error.instruction = inst
                yield error


def _fault(unit: Unit, inst: Instruction) -> str | None:
    """Description of how the result of an instruction depends on active values other than linearly, or None."""
    varies = unit.activity.depends_on_input
    match inst:
        case Binary(opcode=opcode, operands=[first, second]) if holds_floats(inst.type) and opcode not in _SUMS:
            return _product_fault(opcode, varies(first), varies(second))
        case FCmp() if any(map(varies, inst.operands)) and not _only_raises(unit, inst):
            return "it compares numbers that depend on tangents"
        case Cast() if varies(inst.operands[0]) and not holds_floats(inst.type):
            return "it converts a number that depends on tangents to an integer"
        case CallSite():
            return _call_fault(unit, inst)
        case _ if isinstance(inst, _LINEAR) or not any(map(varies, inst.operands)):
            return None
        case _:
            return "it takes numbers that depend on tangents by an instruction that is not known to be linear"


def _only_raises(unit: Unit, test: Instruction) -> bool:
    """True if a test decides nothing but whether an error is raised, like those for NaN in `np.linalg`."""
    pending: list[Instruction] = [test]
    while pending:
        for user in pending.pop().users:
            match user:
                case Binary() | Freeze():
                    pending.append(user)
                case CondBr(targets=targets) if not all(target in unit.live for target in targets):
                    pass
                case _:
                    return False
    return True


def _product_fault(opcode: str, first: bool, second: bool) -> str | None:
    match opcode:
        case "fmul" if first and second:
            return "it multiplies two numbers that depend on tangents"
        case "fdiv" if second:
            return "it divides by a number that depends on tangents"
        case "frem" if first or second:
            return "it takes the remainder of numbers that depend on tangents"
        case _:
            return None


def _call_fault(unit: Unit, call: CallSite) -> str | None:
    match resolve(call, unit.registry):
        case Elementwise() as rule:
            return (
                None if _is_linear(unit, call, rule) else f"it takes {rule.name} of a number that depends on tangents"
            )
        case Inactive(why=why):
            is_hidden = holds_floats(call.type) and any(map(unit.activity.depends_on_input, call.arguments))
            return f"it calls a function without a derivative ({why}) with tangents" if is_hidden else None
        case CallRule() as rule:
            return None if _is_linear_call(unit, call, rule) else f"it calls '{_name(call)}' with tangents"
        case Function() as callee if not is_from_outside(callee, unit.registry):
            return None  # its own instructions are looked at
        case _:
            takes_part = unit.activity.takes_part(call)
            return f"it calls {_name(call)}, which has a derivative of its own, with tangents" if takes_part else None


def _is_linear(unit: Unit, call: CallSite, rule: Elementwise) -> bool:
    """True if no partial derivative with respect to an argument that varies depends on one that does."""
    varying = [i for i, argument in enumerate(call.arguments) if unit.activity.depends_on_input(argument)]
    hidden = {"y", *(f"x{i}" for i in varying)}
    partials = [rule.partials[i] if i < len(rule.partials) else None for i in varying]
    return all(each is not None and not (symbols_of(each) & hidden) for each in partials)


def _is_linear_call(unit: Unit, call: CallSite, rule: CallRule) -> bool:
    """True if the rule moves numbers, or if at most one of the factors in what the call computes is active."""

    def is_active(position: int) -> bool:
        return unit.activity.is_active(call.arguments[position])

    if rule.moves or not unit.activity.takes_part(call):
        return True
    return rule.factors is not None and sum(any(map(is_active, each)) for each in rule.factors) <= 1


def _name(call: CallSite) -> str:
    callee: Value = call.callee
    return callee.name or "a function"
