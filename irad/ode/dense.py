"""The solution within a step, a polynomial of the share θ of the step: 0 is its beginning, 1 its end.

y + θ (Δ + (1 - θ) (B + θ (C + (1 - θ) (D + …)))),   Δ = y1 - y;   B, C, D, … are the rows that a step gives
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba.core import types

from irad.errors import SignatureError, SourceLocation
from irad.frontend.custom.targets import inactive_in_irad
from irad.frontend.inner import inner_jitable, inner_njit, inner_overload
from irad.frontend.numba.messages import described

_ROUNDING = 8.0 * np.finfo(np.float64).eps


class Steps(NamedTuple):
    """A method for a right-hand side.

    Attributes:
        step: ``(t, h, y, slope, args) -> (y1, slope1, kept)`` from a state and its slope to those at the end of a step.
        errors: the weights of the rows of what is kept in estimates of the error; see `irad.ode.march.error_size`.
        is_scaled: whether the step multiplies them.
        dense: ``(t, h, y, y1, kept, args) -> rows`` of the solution within the step.
    """

    step: Any
    errors: Any
    is_scaled: bool
    dense: Any


class Dense(NamedTuple):
    """A solution within all of its steps.

    Attributes:
        times: where steps begin, and where the last one ends.
        lengths: of the steps; one that an effect ends is cut off before.
        pieces: the solution within each step; see `irad.ode.dense.piece_of`.
        slope: the derivative of the state at the beginning.
        end: the last time of the solution, which a terminal event may put within the last step.
        like: a state whose structure the solution has; an empty tuple for vectors.
    """

    times: Any
    lengths: Any
    pieces: Any
    slope: Any
    end: Any
    like: Any


def _check_vector(values: Any, source: str, meaning: str) -> None:
    is_array = isinstance(values, types.Array) and values.ndim == 1
    if not (is_array and isinstance(values.dtype, types.Float | types.Integer | types.Boolean)):
        raise SignatureError(
            f"{source} of a differential equation returns {described(values)}",
            "return an array of real numbers with one axis, as long as the state",
            meaning,
            SourceLocation.here(),
        )


def check_values(values: Any) -> None:
    """Refuses what is not a state's derivative when it is typed; nothing in plain Python."""


@inner_overload(check_values, strict=False)
def _check_values_typed(values: Any) -> Any:
    _check_vector(values, "the right-hand side", "it is the derivative of the state")
    return lambda values: None


@inner_jitable
def put(out, values):  # type: ignore[no-untyped-def]
    """Copies the values of a right-hand side."""
    check_values(values)
    if values.size != out.size:
        raise ValueError("the right-hand side of a differential equation and its state differ in length")
    for j in range(out.size):
        out[j] = values[j]


def check_effect(values: Any) -> None:
    """Refuses what is not a state after an event when it is typed; nothing in plain Python."""


@inner_overload(check_effect, strict=False)
def _check_effect_typed(values: Any) -> Any:
    _check_vector(values, "the effect of an event", "it is the state after the event")
    return lambda values: None


@inner_jitable
def put_effect(out, values):  # type: ignore[no-untyped-def]
    """Copies the state that an effect gives."""
    check_effect(values)
    if values.size != out.size:
        raise ValueError("the effect of an event of a differential equation changes the length of the state")
    for j in range(out.size):
        out[j] = values[j]


@inner_jitable
def add_to(out, values):  # type: ignore[no-untyped-def]
    """Adds the values of one array to another."""
    for j in range(out.size):
        out[j] += values[j]


@inner_jitable
def with_slopes(y, y1, h, slope, slope1, more):  # type: ignore[no-untyped-def]
    """Rows of the cubic polynomial that has the slopes at both ends, and room for more."""
    dense = np.zeros((2 + more, y.size))
    for j in range(y.size):
        change = y1[j] - y[j]
        dense[0, j] = h * slope[j] - change
        dense[1, j] = change - h * slope1[j] - dense[0, j]
    return dense


@inner_jitable
def put_between(out, y, y1, dense, share):  # type: ignore[no-untyped-def]
    """Writes the solution within a step."""
    rest, count = 1.0 - share, dense.shape[0]
    for j in range(y.size):
        inner = dense[count - 1, j]
        for k in range(count - 2, -1, -1):
            inner = dense[k, j] + (share if k % 2 == 0 else rest) * inner
        out[j] = y[j] + share * (y1[j] - y[j] + rest * inner)


@inner_jitable
def piece_of(y, y1, dense):  # type: ignore[no-untyped-def]
    """All that gives the solution within a step as rows: the states at its ends, then the polynomial's."""
    piece = np.empty((2 + dense.shape[0], y.size))
    put(piece[0], y)
    put(piece[1], y1)
    for k in range(dense.shape[0]):
        put(piece[2 + k], dense[k])
    return piece


@inactive_in_irad
@inner_njit
def just_after(t, t0, t1):  # type: ignore[no-untyped-def]
    """A time after another one by no more than rounding: what is before it counts as not after the other."""
    return t + np.copysign(_ROUNDING * max(abs(t0), abs(t1)), t1 - t0)


@inner_jitable
def slope_between(y, y1, dense, share):  # type: ignore[no-untyped-def]
    """The derivative of the solution within a step by the share of the step."""
    out, rest, count = np.empty(y.size), 1.0 - share, dense.shape[0]
    for j in range(y.size):
        inner, d_inner = dense[count - 1, j], 0.0
        for k in range(count - 2, -1, -1):
            if k % 2 == 0:
                inner, d_inner = dense[k, j] + share * inner, inner + share * d_inner
            else:
                inner, d_inner = dense[k, j] + rest * inner, rest * d_inner - inner
        out[j] = y1[j] - y[j] + (rest - share) * inner + share * rest * d_inner
    return out
