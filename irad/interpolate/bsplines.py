"""B-splines of any degree, in one variable and on grids.

`_basis` evaluates the basis functions that are not zero at a point; a spline is their sum, and the coefficients that
interpolate solve a banded system of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numba.core import types
from numba.extending import overload, register_jitable

from irad.frontend.custom.targets import inactive_in_irad
from irad.frontend.formatted import FormattedValueError
from irad.frontend.operands import floats, inexact, require_axes, whole
from irad.interpolate.cubics import points_and_shape
from irad.interpolate.grids import check_grid, check_order, float_axes, refuse_order

_CUBIC = 3


@register_jitable
def _interval(x, knots, degree):  # type: ignore[no-untyped-def]
    """The number of the interval, of those where all basis functions are there, that a point lies in or beside."""
    low, high = degree, knots.size - degree - 1
    last = high
    while high - low > 1:
        middle = (low + high) // 2
        if x < knots[middle]:
            high = middle
        else:
            low = middle
    while low > degree and knots[low] == knots[low + 1]:  # at the end, where knots may be equal
        low -= 1
    while low < last - 1 and knots[low] == knots[low + 1]:
        low += 1
    return low


@register_jitable
def _basis(x, knots, degree, i, found):  # type: ignore[no-untyped-def]
    """The ``degree + 1`` basis functions that are not zero in interval i, by the recurrence of Cox and de Boor."""
    for k in range(i - degree + 1, i + degree):
        if not knots[k] <= knots[k + 1] or (k == i and knots[k] == knots[k + 1]):
            refuse_order(k)
    found[0] = 1.0
    for d in range(1, degree + 1):
        saved = 0.0
        for r in range(d):
            left, right = np.float64(knots[i + 1 - d + r]), np.float64(knots[i + r + 1])
            share = found[r] / (right - left)
            found[r] = saved + (right - x) * share
            saved = (x - left) * share
        found[d] = saved


@inactive_in_irad
@njit
def _check_degree(name: str, knots: Any, count: int, degree: int) -> None:
    if degree < 0:
        raise FormattedValueError("{}: degree {}", name, degree)
    if count < degree + 1 or knots.size != count + degree + 1:
        text = "{}: {} knots for {} coefficients of degree {}; there must be {}"
        raise FormattedValueError(text, name, knots.size, count, degree, count + degree + 1)
    if not knots[degree] < knots[count]:
        raise FormattedValueError("{}: there is no interval between the knots", name)


@njit
def bspline(x: Any, knots: Any, coefficients: Any, degree: Any) -> Any:
    """A spline as the sum of B-splines, as SciPy's ``BSpline``; beyond the ends, the end pieces continue.

    Args:
        x: a number, or an array.
        knots: in ascending order, ``degree + 1`` more than coefficients; inner knots may be equal.
        coefficients: one for each B-spline, or an array with a row for each; real or complex.
        degree: of the polynomials, at least 0; an int.

    Returns:
        A number, or an array with the axes of ``x`` and then those of a row of coefficients.

    Raises:
        ValueError: the number of knots does not fit, or knots descend.

    Source:
        de Boor: A Practical Guide to Splines, Springer 1978.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from irad.interpolate import bspline
        >>> knots = np.array([0.0, 0.0, 0.0, 1.0, 2.0, 2.0, 2.0])
        >>> irad.value_and_grad(bspline)(0.5, knots, np.array([0.0, 1.0, 3.0, 2.0]), 2)
        (1.0, 2.0)
    """
    knots, coefficients = floats("bspline", knots), inexact("bspline", coefficients)
    require_axes("bspline", 1, knots)
    degree = whole("bspline", degree)
    _check_degree("bspline", knots, coefficients.shape[0], degree)
    return _evaluated(x, knots, coefficients, degree)


def _evaluated(x: Any, knots: Any, coefficients: Any, degree: Any) -> Any:
    """Values at a number, or at each number of an array."""
    raise NotImplementedError("for compiled code")


@overload(_evaluated)
def _evaluated_typed(x, knots, coefficients, degree):  # type: ignore[no-untyped-def]
    points_of, shape_of = points_and_shape("bspline", x)
    if not isinstance(x, types.Array) and coefficients.ndim == 1:

        def one(x, knots, coefficients, degree):  # type: ignore[no-untyped-def]
            return _at_points(points_of(x), knots, coefficients.reshape((-1, 1)), degree)[0, 0]

        return one

    def each(x, knots, coefficients, degree):  # type: ignore[no-untyped-def]
        check_order(knots, False)
        n = coefficients.shape[0]
        flat = coefficients.reshape((n, coefficients.size // n))
        found = _at_points(points_of(x), knots, flat, degree)
        return found.reshape(shape_of(x) + coefficients.shape[1:])

    return each


@register_jitable
def _at_points(points, knots, flat, degree):  # type: ignore[no-untyped-def]
    found, basis = np.full((points.size, flat.shape[1]), flat.dtype.type(0) * 0.0), np.empty(degree + 1)
    for p in range(points.size):
        x = np.float64(points[p])
        i = _interval(x, knots, degree)
        _basis(x, knots, degree, i, basis)
        for k in range(degree + 1):
            for c in range(flat.shape[1]):
                found[p, c] += basis[k] * flat[i - degree + k, c]
    return found


@njit
def bspline_knots(x: Any, degree: Any) -> Any:
    """Knots of a spline that interpolates at given points, chosen as in SciPy's ``make_interp_spline`` (not-a-knot).

    Args:
        x: points in ascending order, more than ``degree``.
        degree: of the polynomials, at least 1; an int.

    Returns:
        A new array with ``degree + 1`` more knots than points.

    Raises:
        ValueError: there are too few points, or they do not ascend.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> irad.interpolate.bspline_knots(np.arange(5.0), 3)
        array([0., 0., 0., 0., 2., 4., 4., 4., 4.])
    """
    points, degree = floats("bspline_knots", x), whole("bspline_knots", degree)
    require_axes("bspline_knots", 1, points)
    n = points.size
    if degree < 1 or n < degree + 1:
        raise FormattedValueError("bspline_knots: {} points for degree {}", n, degree)
    check_order(points, True)
    knots = np.empty(n + degree + 1)
    knots[: degree + 1], knots[n:] = points[0], points[n - 1]
    half = (degree + 1) // 2
    for j in range(n - degree - 1):
        if degree % 2 == 1:
            knots[degree + 1 + j] = points[half + j]
        else:
            knots[degree + 1 + j] = 0.5 * (np.float64(points[half + j]) + points[half + j + 1])
    return knots


@njit
def bspline_coefficients(x: Any, values: Any, knots: Any, degree: Any) -> Any:
    """Coefficients of the spline with given knots through given points: for `bspline`.

    Args:
        x: points in ascending order.
        values: one for each point, or an array with a row for each; real or complex.
        knots: in ascending order, ``degree + 1`` more than points, such as those of `bspline_knots`. Each B-spline has
            to have a point inside the interval where it is not zero (the conditions of Schoenberg and Whitney).
        degree: of the polynomials, at least 0; an int.

    Returns:
        A new array like the values.

    Raises:
        ValueError: numbers do not fit, points or knots do not ascend, or the points do not determine the spline.

    Source:
        de Boor: A Practical Guide to Splines, chapter XIII: elimination without pivoting is stable.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from irad.interpolate import bspline, bspline_coefficients, bspline_knots
        >>> x = np.arange(6.0)
        >>> knots = bspline_knots(x, 3)
        >>> round(bspline(2.5, knots, bspline_coefficients(x, x**3, knots, 3), 3), 9)
        15.625
    """
    points, values = floats("bspline_coefficients", x), inexact("bspline_coefficients", values)
    knots, degree = floats("bspline_coefficients", knots), whole("bspline_coefficients", degree)
    require_axes("bspline_coefficients", 1, points, knots)
    n = points.size
    if values.shape[0] != n:
        raise FormattedValueError("bspline_coefficients: {} values for {} points", values.shape[0], n)
    _check_degree("bspline_coefficients", knots, n, degree)
    check_order(knots, False)
    check_order(points, True)
    found = np.full((1, n, values.size // n), values.dtype.type(0) * 0.0)
    found += values.reshape(found.shape)
    _solve_band(_collocation(points, knots, degree), found, degree)
    return found.reshape(values.shape)


@register_jitable
def _collocation(points, knots, degree):  # type: ignore[no-untyped-def]
    """The B-splines at the points: row p has those of numbers ``p - degree`` to ``p + degree``."""
    n = points.size
    band, basis = np.zeros((n, 2 * degree + 1)), np.empty(degree + 1)
    for p in range(n):
        i = _interval(np.float64(points[p]), knots, degree)
        _basis(np.float64(points[p]), knots, degree, i, basis)
        for k in range(degree + 1):
            place = i + k - p
            if 0 <= place <= 2 * degree:
                band[p, place] = basis[k]
            elif basis[k] != 0.0:
                _refuse_points(p)
    return band


@register_jitable
def _solve_band(band, right, degree):  # type: ignore[no-untyped-def]
    """Solves a banded system in place, along the second of three axes."""
    n = right.shape[1]
    for p in range(n):
        if not abs(band[p, degree]) > 0.0:
            _refuse_points(p)
        for below in range(p + 1, min(p + degree + 1, n)):
            first = degree - (below - p)
            factor = band[below, first] / band[p, degree]
            for k in range(1, degree + 1):
                band[below, first + k] -= factor * band[p, degree + k]
            for a in range(right.shape[0]):
                for c in range(right.shape[2]):
                    right[a, below, c] -= factor * right[a, p, c]
    for p in range(n - 1, -1, -1):
        for a in range(right.shape[0]):
            for c in range(right.shape[2]):
                for k in range(1, min(degree + 1, n - p)):
                    right[a, p, c] -= band[p, degree + k] * right[a, p + k, c]
                right[a, p, c] /= band[p, degree]


@inactive_in_irad
@njit
def _refuse_points(p: int) -> None:
    raise FormattedValueError("bspline_coefficients: the points do not determine the spline, as point {} shows", p)


# ------------------------------------------------------------------------------------------------ grids


@njit
def grid_coefficients(axes: Any, values: Any) -> Any:
    """Coefficients of the cubic spline through values on a grid: for `cubic_grid`.

    Along each axis the spline is that of `cubic` (not-a-knot).

    Args:
        axes: a tuple of arrays with the knots of each axis, in ascending order, at least four.
        values: an array with as many axes as the grid; real or complex.

    Returns:
        A new array with the shape of the values.

    Raises:
        ValueError: the values have another shape than the knots say, or knots do not ascend.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> axes = np.arange(4.0), np.arange(5.0)
        >>> irad.interpolate.grid_coefficients(axes, np.ones((4, 5)))[0].round(12)
        array([1., 1., 1., 1., 1.])
    """
    axes, values = float_axes(axes), inexact("grid_coefficients", values)
    check_grid("grid_coefficients", values.ndim, axes, values.shape, _CUBIC + 1, True)
    found = np.full(values.size, values.dtype.type(0) * 0.0)
    found += values.reshape(values.size)
    inside = values.size
    for d in range(len(axes)):
        n = axes[d].size
        inside //= n  # numbers of the axes after this one
        blocks = found.reshape((values.size // (n * inside), n, inside))
        _solve_band(_collocation(axes[d], bspline_knots(axes[d], _CUBIC), _CUBIC), blocks, _CUBIC)
    return found.reshape(values.shape)


def _knots_of(axes: Any) -> Any:
    """Knots of the cubic splines along the axes."""
    raise NotImplementedError("for compiled code")


@overload(_knots_of)
def _knots_of_typed(axes):  # type: ignore[no-untyped-def]
    if len(axes) == 0:
        return lambda axes: ()
    return lambda axes: (bspline_knots(axes[0], _CUBIC), *_knots_of(axes[1:]))


@njit
def cubic_grid(points: Any, axes: Any, coefficients: Any, fill_value: Any = None) -> Any:
    """The cubic spline on a grid, as SciPy's ``RegularGridInterpolator`` with ``method="cubic"``.

    Args:
        points: a row for each point, a column for each axis.
        axes: a tuple of arrays with the knots of each axis, in ascending order, at least four.
        coefficients: from `irad.interpolate.grid_coefficients`: computed once for many points.
        fill_value: the result beyond the grid, a number; None: the pieces at the boundary continue.

    Returns:
        An array with a number for each point.

    Raises:
        ValueError: the coefficients have another shape than the knots say, or knots do not ascend.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from irad.interpolate import cubic_grid, grid_coefficients
        >>> axes = np.arange(4.0), np.arange(5.0)
        >>> coefficients = grid_coefficients(axes, axes[0].reshape(-1, 1) ** 3 * axes[1])
        >>> cubic_grid(np.array([[1.5, 2.0], [1.5, 9.0]]), axes, coefficients, np.nan).round(9)
        array([6.75,  nan])
    """
    points, axes = floats("cubic_grid", points), float_axes(axes)
    coefficients = inexact("cubic_grid", coefficients)
    require_axes("cubic_grid", 2, points)
    dimensions = points.shape[1]
    check_grid("cubic_grid", dimensions, axes, coefficients.shape, _CUBIC + 1, True)
    flat, knots = coefficients.reshape(coefficients.size), _knots_of(axes)
    found = np.full(points.shape[0], coefficients.dtype.type(0) * 0.0)
    places, weights = np.empty(dimensions, np.int64), np.empty((dimensions, _CUBIC + 1))
    for p in range(points.shape[0]):
        is_inside = True  # also of NaN, which stays NaN
        for d in range(dimensions):
            x = np.float64(points[p, d])
            if x < axes[d][0] or x > axes[d][-1]:
                is_inside = False
            i = _interval(x, knots[d], _CUBIC)
            _basis(x, knots[d], _CUBIC, i, weights[d])
            places[d] = i - _CUBIC
        # Numba decides the outer condition when it compiles, only as one of its own
        if fill_value is not None:  # noqa: SIM102
            if not is_inside:
                found[p] = fill_value
                continue
        for corner in range(1 << (2 * dimensions)):
            weight, at = 1.0, 0
            for d in range(dimensions):
                k = (corner >> (2 * d)) & 3
                weight *= weights[d, k]
                at = at * axes[d].size + places[d] + k
            found[p] += weight * flat[at]
    return found
