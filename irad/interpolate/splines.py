"""Cubic splines by their second derivatives at the knots, the moments."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numba.extending import register_jitable

from irad.frontend.operands import floats, inexact, require, require_axes
from irad.interpolate.grids import check_knots, check_order, each_of, interval_of, refuse_order


@njit
def moments(knots: Any, values: Any, natural: Any = False) -> Any:
    """The second derivatives at the knots of the cubic spline through given values.

    Args:
        knots: in ascending order, at least two.
        values: one for each knot.
        natural: the second derivative is zero at both ends; otherwise the first two pieces, and the last two, are one
            polynomial (not-a-knot, as SciPy's ``CubicSpline``).

    Returns:
        A new array with one for each knot, for `irad.interpolate.cubic`.

    Raises:
        ValueError: there are not as many values as knots, or knots do not ascend.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> knots = np.arange(4.0)
        >>> irad.interpolate.moments(knots, knots**2).round(12)
        array([2., 2., 2., 2.])
    """
    knots, values = floats("moments", knots), inexact("moments", values)
    require_axes("moments", 1, knots, values)
    check_knots("moments", knots, values)
    check_order(knots, True)
    n = knots.size
    found = np.full(n, values.dtype.type(0) * 0.0)  # double precision, but complex for complex values
    if n == 2:
        return found
    h = np.float64(1.0) * knots[1:] - knots[:-1]
    slopes = (values[1:] - values[:-1]) / h
    right = 6.0 * (slopes[1:] - slopes[:-1])
    if n == 3 and not natural:
        found[:] = right[0] / (3.0 * (h[0] + h[1]))
        return found
    diagonal, below, above = 2.0 * (h[1:] + h[:-1]), h[:-1].copy(), h[1:].copy()
    if not natural:
        diagonal[0] += h[0] * (h[0] + h[1]) / h[1]
        above[0] -= h[0] * h[0] / h[1]
        diagonal[-1] += h[-1] * (h[-1] + h[-2]) / h[-2]
        below[-1] -= h[-1] * h[-1] / h[-2]
    found[1:-1] = tridiagonal(below, diagonal, above, right)
    if not natural:
        found[0] = ((h[0] + h[1]) * found[1] - h[0] * found[2]) / h[1]
        found[-1] = ((h[-1] + h[-2]) * found[-2] - h[-1] * found[-3]) / h[-2]
    return found


@register_jitable
def tridiagonal(below, diagonal, above, right):  # type: ignore[no-untyped-def]
    """Thomas's algorithm; ``below[0]`` and the last of ``above`` are not used."""
    n = diagonal.size
    pivots, x = diagonal.copy(), right.copy()
    for i in range(1, n):
        factor = below[i] / pivots[i - 1]
        pivots[i] -= factor * above[i - 1]
        x[i] -= factor * x[i - 1]
    x[n - 1] /= pivots[n - 1]
    for i in range(n - 2, -1, -1):
        x[i] = (x[i] - above[i] * x[i + 1]) / pivots[i]
    return x


@register_jitable
def _cubic_at(x, knots, values, second):  # type: ignore[no-untyped-def]
    i = interval_of(knots, x)
    h = np.float64(knots[i + 1]) - knots[i]
    if not h > 0.0:
        refuse_order(i)
    a, b = (knots[i + 1] - x) / h, (x - knots[i]) / h
    bend = (a * a * a - a) * second[i] + (b * b * b - b) * second[i + 1]
    return a * values[i] + b * values[i + 1] + bend * h * h / 6.0


@njit
def cubic(x: Any, knots: Any, values: Any, second: Any) -> Any:
    """The cubic spline with given values and second derivatives at its knots; beyond the ends, the end pieces continue.

    Args:
        x: a number, or an array.
        knots: in ascending order, at least two.
        values: one for each knot.
        second: second derivatives at the knots, from `irad.interpolate.moments`: computed once for many points.

    Returns:
        A number, or an array like ``x``.

    Raises:
        ValueError: there are not as many values, or second derivatives, as knots, or knots do not ascend.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from irad.interpolate import cubic, moments
        >>> from numba import njit
        >>> @njit
        ... def curve(x, knots, values):
        ...     return cubic(x, knots, values, moments(knots, values))
        >>> knots = np.arange(5.0)
        >>> round(irad.grad(curve)(2.5, knots, knots**3), 9)
        18.75
    """
    require("cubic", "biuf", knots)
    require("cubic", "biufc", values, second)
    require_axes("cubic", 1, knots, values, second)
    check_knots("cubic", knots, second)
    return each_of("cubic", _cubic_at, x, knots, values, second)
