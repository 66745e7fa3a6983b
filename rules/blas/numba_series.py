"""Taylor series of the products that Numba calls.

A product has the coefficient of order k

    A₀·Bₖ + Aₖ·B₀ + Σ Aⱼ·Bₖ₋ⱼ, j from 1 to k - 1

The first two are what its tangent is, with coefficients for tangents; each of the others is a call of the same entry
point, on the operands' coefficients.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from irad.ir.instructions import CallSite
from irad.ir.values import Value
from irad.rules.blas.numba_tangents import dot_tangent, gemm_tangent, gemv_tangent
from irad.rules.dense.elements import element_of
from irad.rules.dense.kernel import Kernel
from irad.ruleset.interface import TangentContext, TangentPart

Accumulate: TypeAlias = Callable[[Kernel, str, dict[int, Value], Value], None]
"""Emits a call with these arguments, by position, and adds what it computes to what is at an address."""


def _series(left: int, right: int, output: int, tangent: TangentPart, accumulate: Accumulate) -> TangentPart:
    """The part for a product; the arguments of its entry point are given by position."""

    def emit(context: TangentContext, call: CallSite) -> None:
        tangent(context, call)
        a, b, out = (call.arguments[index] for index in (left, right, output))
        if not (context.is_active(a) and context.is_active(b)):
            return
        k = Kernel(context.after, element_of(call.arguments[0], "np.dot"))
        for order in range(1, context.order):
            given = {number: context.value(each) for number, each in enumerate(call.arguments)}
            given[left], given[right] = (
                context.shadow_of_order(a, order),
                context.shadow_of_order(b, context.order - order),
            )
            accumulate(k, str(call.callee.name), given, context.shadow(out))

    return emit


def _add_scalar(k: Kernel, symbol: str, given: dict[int, Value], place: Value) -> None:
    """The product of two vectors overwrites its output."""
    given[5] = k.slot(k.element.type)
    _call(k, symbol, given)
    k.store(k.load(place) + k.load(given[5]), place)


def _add_array(keep: int, output: int) -> Accumulate:
    """Others multiply it by what is at the argument ``keep``, and add."""

    def add(k: Kernel, symbol: str, given: dict[int, Value], place: Value) -> None:
        given[keep], given[output] = k.constant(1.0), place
        _call(k, symbol, given)

    return add


def _call(k: Kernel, symbol: str, given: dict[int, Value]) -> None:
    k.entry(symbol, *(given[number] for number in range(1, len(given))))


dot_series: Final = _series(3, 4, 5, dot_tangent, _add_scalar)
gemv_series: Final = _series(5, 7, 9, gemv_tangent, _add_array(8, 9))
gemm_series: Final = _series(7, 9, 12, gemm_tangent, _add_array(11, 12))
