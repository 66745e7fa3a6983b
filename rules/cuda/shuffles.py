"""Shuffles: lanes of a warp read each other's numbers; cotangents go back where the numbers came from.

    y_i = x_{s(i)}            x̄_j += Σ ȳ_i over the lanes i with s(i) = j

The sum is a run-time function of the lanes that take part, the cotangent and what says where the lane read
(`irad/backend/cuda/warps.ll`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from irad.ir import types
from irad.ir.instructions import CallSite
from irad.ir.types import function_type
from irad.ir.values import Value
from irad.ruleset.define import inactive
from irad.ruleset.interface import CallRule, Effects, ReverseContext, Rule, TangentContext

PREFIX: Final = "irad.cuda.shfl."
ADJOINT: Final = "irad.cuda.shfl.adjoint."
_CONVERGENT: Final = ("convergent", "nounwind")
_KINDS: Final = ("idx", "up", "down", "bfly")


def _reverse(context: ReverseContext, call: CallSite, saved: Sequence[Value]) -> None:
    mask, value, where = call.arguments
    cotangent = context.cotangent(call)
    if not context.is_active(value):
        return
    name = str(call.callee.name).replace(PREFIX, ADJOINT)
    type_ = function_type(value.type, [types.I32, value.type, types.I32])
    adjoint = context.declare(name, type_, _CONVERGENT)
    returned = context.builder.call(adjoint, [context.value(mask), cotangent, context.value(where)])
    context.accumulate(value, returned)


def _tangent(context: TangentContext, call: CallSite) -> None:
    mask, value, where = call.arguments
    if context.is_active(value):
        given = [context.value(mask), context.tangent(value), context.value(where)]
        context.set_tangent(context.after.call(call.callee, given, call.function_type))


RULES: Final[tuple[Rule, ...]] = (
    CallRule(
        tuple(f"{PREFIX}{kind}.{number}" for kind in _KINDS for number in ("f32", "f64")),
        Effects(),
        _reverse,
        tangent=_tangent,
        series=_tangent,
    ),
    inactive(
        tuple(f"{PREFIX}{kind}.{number}" for kind in _KINDS for number in ("i32", "i64")),
        "an integer that another thread of the warp has",
        Effects(),
    ),
)
