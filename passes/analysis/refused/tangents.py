"""Calls through which forward mode cannot pass: the callee has a rule without the tangents that are needed.

Nor can sets of inputs, where a rule computes with numbers in memory: see `irad.passes.forward.dependence`.
"""

from __future__ import annotations

from typing import Final

from irad.errors import NoRuleError
from irad.ir.instructions import CallSite
from irad.ir.module import Function
from irad.passes.memory.objects import union
from irad.passes.mode import Algebra
from irad.passes.unit import Unit
from irad.ruleset import special
from irad.ruleset.expr import applied, symbols_of
from irad.ruleset.interface import PURE, CallRule, Elementwise, PairRule
from irad.ruleset.python_names import python_name
from irad.ruleset.registry import Registry

# Calls through which a Taylor series cannot pass: the callee has a rule that tells first derivatives only.

_NESTED: Final = "derive it several times: irad.pushforward of a function that calls irad.pushforward(…)"


def lacks_series(unit: Unit, call: CallSite) -> NoRuleError | None:
    """Error that the series of a call is not known; None if it is."""
    callee = call.callee
    rule = unit.registry.lookup(str(callee.name)) if isinstance(callee, Function) else None
    match rule:
        case PairRule(name=name):
            return NoRuleError(
                f"{name} has a rule of its own: a Taylor series cannot pass through it",
                f"(a) call a function with the same body and no rule or (b) {_NESTED}",
                "the rule gives first derivatives only, and replaces the body",
                focus=name,
            )
        case CallRule(series=None, moves=False):
            name = python_name(str(callee.name))
            return NoRuleError(
                f"irad has no Taylor series of {name}",
                f"(a) write it as loops over numbers or (b) {_NESTED}",
                "the rule of this function gives first derivatives only",
                focus=name,
            )
        case Elementwise():
            varying = frozenset(i for i, argument in enumerate(call.arguments) if unit.activity.is_active(argument))
            lacking = _without_derivative(unit.registry, rule, varying, unit.program.request.mode.width)
            if lacking is None:
                return None
            name = python_name(str(callee.name))
            return NoRuleError(
                f"irad has no Taylor series of {name} of order {unit.program.request.mode.width}",
                "(a) keep its arguments constant or (b) ask for a lower order",
                f"its derivatives contain {lacking}, whose derivative is not known",
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


def lacks_tangent(unit: Unit, call: CallSite) -> NoRuleError | None:
    """Error for a callee with a rule that forward mode cannot pass through; None if it can."""
    if unit.program.request.mode.algebra is Algebra.TAYLOR:
        return lacks_series(unit, call)
    if unit.program.request.mode.algebra is Algebra.SETS:
        return _lacks_dependence(unit, call)
    match unit.registry.lookup(str(call.callee.name)) if isinstance(call.callee, Function) else None:
        case PairRule(name=name, has_tangent=False, forward_remedy=its_own):
            usual = (
                f"(a) write a rule for forward mode, too: irad.rules.forward({name}) or (b) have its body "
                f"differentiated: irad.rules.forward_from_body({name}) or (c) use reverse mode: irad.grad, irad.vjp or "
                "irad.autodiff(irad.Reverse, …)"
            )
            return NoRuleError(
                f"{name} has a rule for reverse mode only: forward mode cannot pass through it",
                its_own or usual,
                "its rule propagates cotangents, from which no tangent follows, and the rule replaces the body",
                focus=name,
            )
        case PairRule(takes_lanes=False, repeats=False) as rule if _is_repeated(unit, call):
            return _not_repeatable(rule.name, f"irad.rules.forward({rule.name}, batched=True)")
        case CallRule(tangent=None):
            return no_tangent(call)
        case _:
            return None


def _lacks_dependence(unit: Unit, call: CallSite) -> NoRuleError | None:
    match unit.registry.lookup(str(call.callee.name)) if isinstance(call.callee, Function) else None:
        case CallRule(moves=True):
            return None
        case CallRule(effects=effects) if effects == PURE and all(a.type is call.type for a in call.arguments):
            return None
        case CallRule(symbols=(symbol, *_)) | PairRule(name=symbol):
            name = python_name(symbol)
            return NoRuleError(
                f"irad does not know on which numbers the results of {name} depend",
                'irad.sparse_jacobian(f, pattern="probe")',
                "its rule gives the derivative, but not which parts of it are zero",
                focus=name,
            )
        case _:
            return None


def lacks_cotangent(unit: Unit, call: CallSite) -> NoRuleError | None:
    """Error for a callee with a rule that reverse mode cannot pass through; None if it can."""
    match unit.registry.lookup(str(call.callee.name)) if isinstance(call.callee, Function) else None:
        case PairRule(name=name, has_cotangent=False):
            return NoRuleError(
                f"{name} has no rule for reverse mode, and its body is not to be differentiated",
                f"(a) give it one: {name}.defvjp(forward, backward) or (b) irad.rules.forward({name}) in place of "
                "irad.custom_jvp, after which reverse mode differentiates the body or (c) use forward mode: irad.jvp, "
                "irad.pushforward or irad.autodiff(irad.Forward, …)",
                "a rule for forward mode propagates tangents; it does not say how to propagate cotangents",
                focus=name,
            )
        case PairRule(takes_lanes=False, repeats=False) as rule if _is_repeated(unit, call):
            batched = (f"irad.rules.{kind}({rule.name}, batched=True)" for kind in ("augmented_primal", "reverse"))
            return _not_repeatable(rule.name, " and ".join(batched))
        case _:
            return None


def _not_repeatable(name: str, batched: str) -> NoRuleError:
    return NoRuleError(
        f"the rule for {name} cannot be called once for each of several directions",
        f"(a) let the rule take all of them at once: {batched} or (b) differentiate in one direction at a time: "
        "irad.Duplicated in place of irad.BatchDuplicated",
        "it may change what its caller sees, memory or random numbers, and would do so several times",
        focus=name,
    )


def _is_repeated(unit: Unit, call: CallSite) -> bool:
    """True if a rule that takes one direction would be called several times, and must not be."""
    return unit.program.request.mode.width > 1 and not _can_be_repeated(unit, call)


def _can_be_repeated(unit: Unit, call: CallSite) -> bool:
    """True if all that a function with a rule writes to is its result, its exception and new memory."""
    points_to, access, request = unit.points_to, unit.mod_ref.of(call), unit.program.request
    if access.is_opaque or call.callee.name not in dict(request.ruled):  # C functions write where nobody sees
        return False
    own = union(points_to.mask(argument) for argument in call.arguments[: request.host.result + 2])
    own |= union(1 << item.index for item in points_to.objects if item.value is call)
    return not access.writes & ~own


def no_tangent(call: CallSite) -> NoRuleError:
    """The refusal of a callee whose rule is for reverse mode only."""
    name = python_name(str(call.callee.name))
    return NoRuleError(
        f"irad has no tangent of {name} yet: forward mode cannot pass through it",
        "use reverse mode: irad.grad, irad.vjp or irad.autodiff(irad.Reverse, …)",
        "the rule of this function has an adjoint only",
        focus=name,
    )
