"""Explicit Runge–Kutta steps: the classical one of order 4, and Dormand and Prince's of order 5.

A step takes the state and its slope at the beginning, and gives both at the end, the error, and what is needed in
between: see `irad.ode.dense`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from irad.frontend.inner import inner_jitable
from irad.ode.dense import put

# Dormand, Prince: J. Comput. Appl. Math. 6 (1980) 19-26; the last line is what makes the next state
_NODES = np.array([0.0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0])
_STAGES = np.zeros((7, 6))
for _i, _line in enumerate(
    (
        (1 / 5,),
        (3 / 40, 9 / 40),
        (44 / 45, -56 / 15, 32 / 9),
        (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
        (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
        (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
    )
):
    _STAGES[_i + 1, : len(_line)] = _line
_ERROR = np.array([71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40])
# Hairer, Nørsett, Wanner: Solving Ordinary Differential Equations I, II.6
_DENSE = np.array(
    [
        -12715105075 / 11282082432,
        0.0,
        87487479700 / 32700410799,
        -10690763975 / 1880347072,
        701980252875 / 199316789632,
        -1453857185 / 822651844,
        69997945 / 29380423,
    ]
)
_CLASSICAL = np.array([0.0, 0.5, 0.5, 1.0])


@inner_jitable
def _combined(out, y, h, weights, slopes, count):  # type: ignore[no-untyped-def]
    for j in range(y.size):
        total = 0.0
        for i in range(count):
            total += weights[i] * slopes[i, j]
        out[j] = y[j] + h * total


@inner_jitable
def _between(y, y1, h, slope, slope1, rest):  # type: ignore[no-untyped-def]
    """Interpolant within a step: a cubic with the slopes at both ends, and what is added to it."""
    dense = np.empty((3, y.size))
    for j in range(y.size):
        change = y1[j] - y[j]
        dense[0, j] = h * slope[j] - change
        dense[1, j] = change - h * slope1[j] - dense[0, j]
        dense[2, j] = rest[j]
    return dense


def dormand_prince(f: Any) -> Any:
    """A step of order 5 for a right-hand side."""

    @inner_jitable
    def step(t, h, y, slope, args):  # type: ignore[no-untyped-def]
        points, slopes = np.empty((7, y.size)), np.empty((7, y.size))
        put(slopes[0], slope)
        for i in range(1, 7):
            _combined(points[i], y, h, _STAGES[i], slopes, i)
            put(slopes[i], f(t + _NODES[i] * h, points[i], *args))
        error, rest = np.empty(y.size), np.empty(y.size)
        for j in range(y.size):
            wrong = more = 0.0
            for i in range(7):
                wrong += _ERROR[i] * slopes[i, j]
                more += _DENSE[i] * slopes[i, j]
            error[j], rest[j] = h * wrong, h * more
        return points[6], slopes[6], error, _between(y, points[6], h, slope, slopes[6], rest)

    return step


def classical(f: Any) -> Any:
    """A step of order 4 for a right-hand side; its error is not estimated."""

    @inner_jitable
    def step(t, h, y, slope, args):  # type: ignore[no-untyped-def]
        points, slopes = np.empty((5, y.size)), np.empty((5, y.size))
        put(slopes[0], slope)
        for i in range(1, 4):
            for j in range(y.size):
                points[i, j] = y[j] + _CLASSICAL[i] * h * slopes[i - 1, j]
            put(slopes[i], f(t + _CLASSICAL[i] * h, points[i], *args))
        for j in range(y.size):
            points[4, j] = y[j] + h / 6.0 * (slopes[0, j] + 2.0 * (slopes[1, j] + slopes[2, j]) + slopes[3, j])
        put(slopes[4], f(t + h, points[4], *args))
        zero = np.zeros(y.size)
        return points[4], slopes[4], zero, _between(y, points[4], h, slope, slopes[4], zero)

    return step
