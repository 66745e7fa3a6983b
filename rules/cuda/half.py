"""Rounding to half precision: its slope is one, as that of the conversions between single and double precision."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from irad.ir import types
from irad.ir.instructions import CallSite
from irad.ir.values import Value
from irad.ruleset.interface import PURE, CallRule, ReverseContext, Rule, TangentContext

ROUND: Final = "irad.cuda.half"


def _reverse(context: ReverseContext, call: CallSite, saved: Sequence[Value]) -> None:
    (argument,) = call.arguments
    cotangent = context.cotangent(call)
    if argument.type is not cotangent.type:
        cotangent = context.builder.fpext(cotangent, argument.type)
    context.accumulate(argument, cotangent)


def _tangent(context: TangentContext, call: CallSite) -> None:
    (argument,) = call.arguments
    tangent = context.tangent(argument)
    context.set_tangent(tangent if tangent.type is types.FLOAT else context.after.fptrunc(tangent, types.FLOAT))


RULES: Final[tuple[Rule, ...]] = (
    CallRule(
        (f"{ROUND}.f32", f"{ROUND}.f64"),
        PURE,
        _reverse,
        policy="the slope of the rounding is one",
        tangent=_tangent,
        series=_tangent,
    ),
)
