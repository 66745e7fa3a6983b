"""The solution within a step, a polynomial of the share of the step: 0 is its beginning, 1 its end.

y + θ (Δ + (1 - θ) (B + θ (C + (1 - θ) D))),   Δ = y1 - y;   B, C, D are the rows that a step gives
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.core import types

from irad.api.forward import pushforward
from irad.errors import SignatureError, SourceLocation
from irad.frontend.inner import inner_jitable, inner_overload
from irad.frontend.numba.messages import described

# of [0, 1], which leave less than the distance between two floats
_HALVINGS = 60


def check_values(values: Any) -> None:
    """Refuses what is not a state's derivative when it is typed; nothing in plain Python."""


@inner_overload(check_values, strict=False)
def _check_values_typed(values: Any) -> Any:
    is_array = isinstance(values, types.Array) and values.ndim == 1
    if not (is_array and isinstance(values.dtype, types.Float | types.Integer | types.Boolean)):
        raise SignatureError(
            f"the right-hand side of a differential equation returns {described(values)}",
            "return an array of real numbers with one axis, as long as the state",
            "it is the derivative of the state",
            SourceLocation.here(),
        )
    return lambda values: None


@inner_jitable
def put(out, values):  # type: ignore[no-untyped-def]
    """Copies the values of a right-hand side."""
    check_values(values)
    if values.size != out.size:
        raise ValueError("the right-hand side of a differential equation and its state differ in length")
    for j in range(out.size):
        out[j] = values[j]


@inner_jitable
def add_to(out, values):  # type: ignore[no-untyped-def]
    """Adds the values of one array to another."""
    for j in range(out.size):
        out[j] += values[j]


@inner_jitable
def put_between(out, y, y1, dense, share):  # type: ignore[no-untyped-def]
    """Writes the solution within a step."""
    rest = 1.0 - share
    for j in range(y.size):
        inner = dense[0, j] + share * (dense[1, j] + rest * dense[2, j])
        out[j] = y[j] + share * (y1[j] - y[j] + rest * inner)


@inner_jitable
def slope_between(y, y1, dense, share):  # type: ignore[no-untyped-def]
    """The derivative of the solution within a step by the share of the step."""
    out, rest = np.empty(y.size), 1.0 - share
    for j in range(y.size):
        last = dense[1, j] + rest * dense[2, j]
        inner = dense[0, j] + share * last
        d_inner = last - share * dense[2, j]
        out[j] = y1[j] - y[j] + (rest - share) * inner + share * rest * d_inner
    return out


def crossing(event: Any) -> Any:
    """A function that finds where an event changes its sign within a step.

    Returns:
        ``(t, h, y, y1, dense, before, after, direction, args) -> share``, negative if it does not.
    """
    if event is None:
        return inner_jitable(lambda t, h, y, y1, dense, before, after, direction, args: -1.0)

    @inner_jitable
    def found(t, h, y, y1, dense, before, after, direction, args):  # type: ignore[no-untyped-def]
        rises = before < 0.0 <= after and direction >= 0
        if not rises and not (before > 0.0 >= after and direction <= 0):
            return -1.0
        low, high, point = 0.0, 1.0, np.empty(y.size)
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            put_between(point, y, y1, dense, middle)
            value = event(t + middle * h, point, *args)
            if value >= 0.0 if rises else value <= 0.0:
                high = middle
            else:
                low = middle
        return high

    return found


def refining(event: Any) -> Any:
    """A function that gives the share of an event its derivative, and the state there.

    Where a search ended is a constant. Two steps of Newton's method from there change nothing but that: their
    derivatives up to the third order are those of the implicit function theorem.

    Returns:
        ``(share, t, h, y, y1, dense, args) -> (time, state)``.
    """
    if event is None:
        return inner_jitable(lambda share, t, h, y, y1, dense, args: (t, y1))
    derivative = pushforward(event, (0, 1))

    @inner_jitable
    def refined(share, t, h, y, y1, dense, args):  # type: ignore[no-untyped-def]
        # The search ended in a constant: only these steps depend on the arguments, so they carry the derivative.
        for _ in range(2):
            point = np.empty(y.size)
            put_between(point, y, y1, dense, share)
            tangents = h, slope_between(y, y1, dense, share)
            value, slope = derivative(t + share * h, point, tangents, *args)
            share = share - value / slope
        state = np.empty(y.size)
        put_between(state, y, y1, dense, share)
        return t + share * h, state

    return refined
