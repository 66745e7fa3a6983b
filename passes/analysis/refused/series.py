"""Calls through which a Taylor series cannot pass: the callee has a rule that tells first derivatives only."""

from __future__ import annotations

from typing import Final

from irad.errors import NoRuleError
from irad.ir.instructions import CallSite
from irad.ir.module import Function
from irad.passes.unit import Unit
from irad.ruleset import special
from irad.ruleset.expr import applied, symbols_of
from irad.ruleset.interface import CallRule, Elementwise, PairRule
from irad.ruleset.python_names import python_name
from irad.ruleset.registry import Registry

_NESTED: Final = "derive it several times: irad.pushforward of a function that calls irad.pushforward(…)"


def lacks_series(unit: Unit, call: CallSite) -> NoRuleError | None:
    """Why the series of a call is not known; None if it is."""
    callee = call.callee
    rule = unit.registry.lookup(str(callee.name)) if isinstance(callee, Function) else None
    match rule:
        case PairRule(name=name):
            return NoRuleError(
                f"{name} has a rule of its own: a Taylor series cannot pass through it",
                f"(a) call a function with the same body and no rule or (b) {_NESTED}",
                "the rule says how first derivatives pass, and stands for the body",
                focus=name,
            )
        case CallRule(series=None, moves=False):
            name = python_name(str(callee.name))
            return NoRuleError(
                f"irad knows no Taylor series of {name}",
                f"(a) write it as loops over numbers or (b) {_NESTED}",
                "the rule of this function tells first derivatives only",
                focus=name,
            )
        case Elementwise():
            varying = frozenset(i for i, argument in enumerate(call.arguments) if unit.activity.is_active(argument))
            lacking = _without_derivative(unit.registry, rule, varying, unit.program.request.mode.width)
            if lacking is None:
                return None
            name = python_name(str(callee.name))
            return NoRuleError(
                f"irad knows no Taylor series of {name} of order {unit.program.request.mode.width}",
                "(a) keep its arguments constant or (b) ask for a lower order",
                f"in its derivatives is {lacking}, whose derivative is not known",
                focus=name,
            )
        case _:
            return None


def _without_derivative(registry: Registry, rule: Elementwise, varying: frozenset[int], order: int) -> str | None:
    """A function in the derivatives of another one, below an order, that cannot be differentiated as often; or None."""
    pending = [(rule, varying)]
    for _ in range(order - 1):
        found: dict[tuple[str, frozenset[int]], Elementwise] = {}
        for each, arguments in pending:
            changing = {"y"} | {f"x{i}" for i in arguments}
            for part in applied(each.partials[i] for i in arguments):
                inner = frozenset(i for i, given in enumerate(part.arguments) if changing & symbols_of(given))
                known = registry.function(part.function)
                if inner and known is None and part.function not in special.BODIES:
                    return part.function
                if inner and known is not None:
                    if known.refused & inner:
                        return part.function
                    found[part.function, inner] = known
        pending = [(known, inner) for (_, inner), known in found.items()]
    return None
