"""Piecewise linear interpolation, on one axis and on grids.

This is plain compiled code, which irad differentiates: by points, knots and values, in all modes and orders. At a knot
the derivative with respect to the point is that of the interval to the right, at the last knot that of the interval to
the left.

All is computed in double precision, as in SciPy; values may be complex. Sizes are always checked, and so is the order
of knots: all of it for an array of points, at the interval where the point lies for a number, since a look at all knots
would cost more than the search.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numba.core import types
from numba.extending import overload, register_jitable

from irad.errors import HERE, SignatureError
from irad.frontend.custom.targets import inactive_in_irad
from irad.frontend.formatted import FormattedValueError
from irad.frontend.operands import floats, inexact, real, require, require_axes


@register_jitable
def interval_of(knots, x):  # type: ignore[no-untyped-def]
    """The number of the interval that a point lies in; of the first or last one beyond the ends."""
    low, high = 0, knots.size - 1
    while high - low > 1:
        middle = (low + high) // 2
        if x < knots[middle]:
            high = middle
        else:
            low = middle
    if not knots[low] <= knots[low + 1]:
        refuse_order(low)
    return low


@register_jitable
def share_of(knots, i, x):  # type: ignore[no-untyped-def]
    """Position of a point in an interval as a fraction of it; 0 or 1 beyond the ends."""
    if x < knots[0]:
        return 0.0
    if x > knots[-1] or knots[i] == knots[i + 1]:
        return 1.0
    return (x - knots[i]) / (np.float64(knots[i + 1]) - knots[i])


@register_jitable
def _linear_at(x, knots, values):  # type: ignore[no-untyped-def]
    i = interval_of(knots, x)
    share = share_of(knots, i, x)
    return (1.0 - share) * values[i] + share * values[i + 1]


@register_jitable
def check_knots(name, knots, values):  # type: ignore[no-untyped-def]
    """Refuses fewer than two knots, and values that are not one for each."""
    if knots.size < 2:
        raise FormattedValueError("{}: {} knots; there must be two or more", name, knots.size)
    if values.size != knots.size:
        raise FormattedValueError("{}: {} values for {} knots", name, values.size, knots.size)


@inactive_in_irad
@njit
def check_order(knots: Any, strictly: bool) -> None:
    """Refuses knots that do not ascend; neighbours may be equal unless they are to do so strictly."""
    for i in range(knots.size - 1):
        if not knots[i] <= knots[i + 1] or (strictly and knots[i] == knots[i + 1]):
            refuse_order(i)


@inactive_in_irad
@njit
def refuse_order(i: int) -> None:
    """Raises an error for knots i and i + 1."""
    raise FormattedValueError("knots must ascend, but knot {} does not lie after knot {}", i + 1, i)


def each_of(name: str, function: object, x: object, knots: object, values: object, *arguments: object) -> object:
    """Results of a function for a number, or for each number of an array, as a double or a complex number."""
    raise NotImplementedError


@overload(each_of, prefer_literal=True)
def _each_of_typed(name, function, x, knots, values, *arguments):  # type: ignore[no-untyped-def]
    if not isinstance(name, types.StringLiteral):
        return None
    if not isinstance(x, types.Array):

        def one(name, function, x, knots, values, *arguments):  # type: ignore[no-untyped-def]
            check_knots(name, knots, values)
            return function(np.float64(real(name, x)), knots, values, *arguments)

        return one

    def each(name, function, x, knots, values, *arguments):  # type: ignore[no-untyped-def]
        check_knots(name, knots, values)
        check_order(knots, False)
        points = floats(name, x).ravel()
        found = np.full(points.size, values.dtype.type(0) * 0.0)  # double precision, but complex for complex values
        for i in range(points.size):
            found[i] = function(np.float64(points[i]), knots, values, *arguments)
        return found.reshape(x.shape)

    return each


@njit
def linear(x: Any, knots: Any, values: Any) -> Any:
    """Linear interpolation between values at knots; constant beyond the ends, as `np.interp`.

    Args:
        x: a number, or an array.
        knots: in ascending order, at least two.
        values: one for each knot.

    Returns:
        A number, or an array like ``x``.

    Raises:
        ValueError: there are not as many values as knots, or knots descend.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> knots, values = np.array([0.0, 1.0, 3.0]), np.array([0.0, 2.0, 6.0])
        >>> irad.value_and_grad(irad.interpolate.linear, argnums=(0, 2))(0.25, knots, values)
        (0.5, (2.0, array([0.75, 0.25, 0.  ])))
    """
    require("linear", "biuf", knots)  # not converted, for a number needs few of them
    require("linear", "biufc", values)
    require_axes("linear", 1, knots, values)
    return each_of("linear", _linear_at, x, knots, values)


@njit
def grid(points: Any, axes: Any, values: Any) -> Any:
    """Linear interpolation along each axis of a grid; beyond the grid the values at its boundary.

    Args:
        points: a row for each point, a column for each axis.
        axes: a tuple of arrays with the knots of each axis, in ascending order, at least two.
        values: an array with as many axes as the grid.

    Returns:
        An array with a number for each point.

    Raises:
        ValueError: the values have another shape than the knots say, or knots descend.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> axes = np.array([0.0, 1.0]), np.array([0.0, 2.0])
        >>> values = np.array([[0.0, 2.0], [1.0, 3.0]])
        >>> irad.interpolate.grid(np.array([[0.5, 0.5]]), axes, values)
        array([1.])
    """
    points, values, axes = floats("grid", points), inexact("grid", values), float_axes(axes)
    require_axes("grid", 2, points)
    count, dimensions = points.shape
    check_grid("grid", dimensions, axes, values.shape, 2, False)
    flat = values.reshape(-1)
    found = np.full(count, values.dtype.type(0) * 0.0)
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


@inactive_in_irad
@njit
def check_grid(name: str, columns: int, axes: Any, shape: Any, least: int, strictly: bool) -> None:
    """Refuses axes other than those of an array with a shape, too few knots, and knots that do not ascend."""
    if len(axes) != columns or len(shape) != columns:
        raise FormattedValueError(
            "{}: points with {} columns, {} axes, and values with {} axes", name, columns, len(axes), len(shape)
        )
    for d in range(columns):
        if axes[d].size != shape[d] or axes[d].size < least:
            text = "{}: {} knots for axis {}, along which there are {} values; {} or more are needed"
            raise FormattedValueError(text, name, axes[d].size, d, shape[d], least)
        check_order(axes[d], strictly)


def float_axes(axes: Any) -> Any:
    """Arrays of one type, in double precision."""
    raise NotImplementedError("for compiled code")


@overload(float_axes)
def _compiled_float_axes(axes):  # type: ignore[no-untyped-def]
    if not isinstance(axes, types.BaseTuple):
        raise SignatureError(
            f"grid: axes are {axes}",
            "pass a tuple with an array of knots for each axis",
            "the number of axes is known when the function is compiled",
            HERE,
        )
    if len(axes) == 0:
        return lambda axes: ()
    return lambda axes: (_float_axis(axes[0]), *float_axes(axes[1:]))


@register_jitable
def _float_axis(knots):  # type: ignore[no-untyped-def]
    knots = floats("grid", knots)
    require_axes("grid", 1, knots)
    return knots.astype(np.float64)
