"""Piecewise linear interpolation, on one axis and on grids.

This is plain compiled code, which irad differentiates: by points, knots and values, in all modes and orders. At a knot
the derivative with respect to the point is that of the interval to the right, at the last knot that of the interval to
the left.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numba.core import types
from numba.extending import overload, register_jitable


@register_jitable
def interval_of(knots, x):  # type: ignore[no-untyped-def]
    """The number of the interval that a point lies in; of the first or last one beyond the ends."""
    low, high = 0, knots.size - 1
    if high < 1:
        raise ValueError("interpolation needs at least two knots")
    while high - low > 1:
        middle = (low + high) // 2
        if x < knots[middle]:
            high = middle
        else:
            low = middle
    return low


@register_jitable
def share_of(knots, i, x):  # type: ignore[no-untyped-def]
    """How far a point is on its way through an interval; 0 or 1 beyond the ends."""
    if x < knots[0]:
        return 0.0
    if x > knots[-1]:
        return 1.0
    return (x - knots[i]) / (knots[i + 1] - knots[i])


@register_jitable
def _linear_at(x, knots, values):  # type: ignore[no-untyped-def]
    i = interval_of(knots, x)
    share = share_of(knots, i, x)
    return (1.0 - share) * values[i] + share * values[i + 1]


def each_of(function: object, x: object, *arguments: object) -> object:
    """What a function returns for a number, or for each number of an array."""
    raise NotImplementedError


@overload(each_of)
def _each_of_typed(function, x, *arguments):  # type: ignore[no-untyped-def]
    if not isinstance(x, types.Array):
        return lambda function, x, *arguments: function(x, *arguments)

    def each(function, x, *arguments):  # type: ignore[no-untyped-def]
        found = np.empty(x.size)
        for i in range(x.size):
            found[i] = function(x[i], *arguments)
        return found

    return each


@njit
def linear(x: Any, knots: Any, values: Any) -> Any:
    """Linear interpolation between values at knots; constant beyond the ends, as `np.interp`.

    Args:
        x: a number, or an array with one axis.
        knots: in ascending order, at least two.
        values: one for each knot.

    Returns:
        A number, or an array like ``x``.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> knots, values = np.array([0.0, 1.0, 3.0]), np.array([0.0, 2.0, 6.0])
        >>> irad.value_and_grad(irad.interpolate.linear, argnums=(0, 2))(0.25, knots, values)
        (0.5, (2.0, array([0.75, 0.25, 0.  ])))
    """
    return each_of(_linear_at, x, knots, values)


@njit
def grid(points: Any, axes: Any, values: Any) -> Any:
    """Linear interpolation along each axis of a grid; beyond the grid the values at its boundary.

    Args:
        points: a row for each point, a column for each axis.
        axes: a tuple of arrays with the knots of each axis, in ascending order, at least two.
        values: an array with as many axes as the grid.

    Returns:
        An array with a number for each point.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> axes = np.array([0.0, 1.0]), np.array([0.0, 2.0])
        >>> values = np.array([[0.0, 2.0], [1.0, 3.0]])
        >>> irad.interpolate.grid(np.array([[0.5, 0.5]]), axes, values)
        array([1.])
    """
    count, dimensions = points.shape
    if len(axes) != dimensions or values.ndim != dimensions:
        raise ValueError("interpolation needs an axis of the grid for each column of the points")
    flat = np.ascontiguousarray(values).reshape(-1)
    found = np.zeros(count)
    places, shares = np.empty(dimensions, np.int64), np.empty(dimensions)
    for n in range(count):
        for d in range(dimensions):
            places[d] = interval_of(axes[d], points[n, d])
            shares[d] = share_of(axes[d], places[d], points[n, d])
        for corner in range(1 << dimensions):
            weight, at = 1.0, 0
            for d in range(dimensions):
                upper = (corner >> d) & 1
                weight *= shares[d] if upper else 1.0 - shares[d]
                at = at * axes[d].size + places[d] + upper
            found[n] += weight * flat[at]
    return found
