"""Atomic sums: `y[i] += v` by many threads at once, whose result nobody reads.

    void @irad.cuda.atomic.add.f64(ptr %y, double %v)        v̄ += ȳ[i]

The element keeps its cotangent, since what was there before is a term of the sum, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from irad.ir.instructions import CallSite
from irad.ir.values import Value
from irad.ruleset.interface import CallRule, Effects, ReverseContext, Rule, TangentContext

ADD: Final = "irad.cuda.atomic.add"
SUBTRACT: Final = "irad.cuda.atomic.sub"
_UPDATES: Final = Effects(reads=frozenset({0}), writes=frozenset({0}))


def is_subtraction(symbol: str) -> bool:
    """Whether an operation subtracts."""
    return symbol.startswith(SUBTRACT)


def _reverse(context: ReverseContext, call: CallSite, saved: Sequence[Value]) -> None:
    pointer, amount = call.arguments
    if not context.is_active(pointer) or not context.is_active(amount):
        return
    build = context.builder
    cotangent: Value = build.load(amount.type, context.shadow(pointer))
    context.accumulate(amount, build.fneg(cotangent) if is_subtraction(str(call.callee.name)) else cotangent)


def _tangent(context: TangentContext, call: CallSite) -> None:
    pointer, amount = call.arguments
    if context.is_active(pointer) and context.is_active(amount):
        opcode = "fsub" if is_subtraction(str(call.callee.name)) else "fadd"
        context.after.atomic(opcode, context.tangent(amount), context.shadow(pointer))


RULES: Final[tuple[Rule, ...]] = (
    CallRule(
        tuple(f"{name}.{kind}" for name in (ADD, SUBTRACT) for kind in ("f32", "f64")),
        _UPDATES,
        _reverse,
        tangent=_tangent,
        series=_tangent,
    ),
)
