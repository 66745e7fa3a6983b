"""A number whose partial derivatives a user gives: what a device function with an easy rule becomes.

    double @irad.cuda.linear.2.f64(double %v, double %x0, double %p0, double %x1, double %p1)        the value v
    x̄0 += v̄·p0, x̄1 += v̄·p1
    double @irad.cuda.stop.f64(double %v)        v, through which no derivative flows

Of v and the partials it is known that no derivative flows through them, since they are passed through `stop`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from irad.ir.builder import Builder
from irad.ir.instructions import CallSite
from irad.ir.values import Value
from irad.ruleset.define import inactive
from irad.ruleset.guards import partial_zero, strong_zero
from irad.ruleset.interface import PURE, CallRule, ReverseContext, Rule, TangentContext

LINEAR: Final = "irad.cuda.linear"
STOP: Final = "irad.cuda.stop"
MOST_ARGUMENTS: Final = 16


def _slopes(call: CallSite) -> Iterator[tuple[Value, Value]]:
    """Arguments and their partials."""
    _, *rest = call.arguments
    return zip(rest[::2], rest[1::2], strict=True)


def _product(build: Builder, derivative: Value, partial: Value, *, zero_wins: bool) -> Value:
    product = build.fmul(derivative, partial)
    if zero_wins:
        product = partial_zero(build, derivative, partial, product)
    return strong_zero(build, derivative, product)


def _reverse(context: ReverseContext, call: CallSite, saved: Sequence[Value]) -> None:
    cotangent = context.cotangent(call)
    for argument, partial in _slopes(call):
        if context.is_active(argument):
            slope = context.value(partial)
            scaled = _product(context.builder, cotangent, slope, zero_wins=context.zero_wins)
            context.accumulate(argument, scaled)


def _tangent(context: TangentContext, call: CallSite) -> None:
    build, total = context.after, None
    for argument, partial in _slopes(call):
        if context.is_active(argument):
            slope = context.value(partial)
            term = _product(build, context.tangent(argument), slope, zero_wins=context.zero_wins)
            total = term if total is None else build.fadd(total, term)
    if total is not None:
        context.set_tangent(total)


RULES: Final[tuple[Rule, ...]] = (
    CallRule(
        tuple(f"{LINEAR}.{n}.{kind}" for n in range(MOST_ARGUMENTS + 1) for kind in ("f32", "f64")),
        PURE,
        _reverse,
        tangent=_tangent,
    ),
    inactive(f"{STOP}.f32 {STOP}.f64", "what a rule computes has the derivative that the rule says", PURE),
)
