"""Piecewise cubics given by values and slopes at knots. What finds the slopes makes them PCHIP, Akima or splines.

Values may have further axes, which are interpolated side by side: each is a column of a matrix to the code here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numba.core import types
from numba.extending import overload, register_jitable

from irad.frontend.custom.targets import inactive_in_irad
from irad.frontend.formatted import FormattedValueError
from irad.frontend.operands import floats, inexact, real, require, require_axes
from irad.interpolate.grids import check_order, interval_of, refuse_order
from irad.interpolate.splines import moments, tridiagonal

_UNDEFINED = 1e-9  # relative size of the weights below which Akima's slope is that of SciPy: the mean of the outer ones


@inactive_in_irad
@njit
def check_rows(name: str, knots: Any, values: Any) -> None:
    """Refuses fewer than two knots, knots that do not ascend, and values that are not one row for each."""
    if knots.size < 2:
        raise FormattedValueError("{}: {} knots; there must be two or more", name, knots.size)
    if values.shape[0] != knots.size:
        raise FormattedValueError("{}: {} values for {} knots", name, values.shape[0], knots.size)
    check_order(knots, True)


@register_jitable
def _steps(knots):  # type: ignore[no-untyped-def]
    return np.float64(1.0) * knots[1:] - knots[:-1]


@register_jitable
def _secants(flat, h):  # type: ignore[no-untyped-def]
    """Slopes of the straight lines between knots, a column for each of ``flat``."""
    found = np.full((h.size, flat.shape[1]), flat.dtype.type(0) * 0.0)
    for i in range(h.size):
        for c in range(flat.shape[1]):
            found[i, c] = (flat[i + 1, c] - flat[i, c]) / h[i]
    return found


# ------------------------------------------------------------------------------------------------ slopes


@njit
def pchip_slopes(knots: Any, values: Any) -> Any:
    """Slopes at the knots that keep the shape of the data, as SciPy's ``PchipInterpolator``: for `hermite`.

    Between two knots the cubic is monotonic. Where the data turn, the slope is zero, and so is its derivative.

    Args:
        knots: in ascending order, at least two.
        values: one for each knot, or an array with a row for each; real.

    Returns:
        A new array of slopes with the shape of the values.

    Raises:
        ValueError: there are not as many values as knots, or knots do not ascend.

    Source:
        Fritsch, Butland: SIAM J. Sci. Stat. Comput. 5 (1984) 300-304.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> irad.interpolate.pchip_slopes(np.arange(4.0), np.array([0.0, 1.0, 3.0, 3.0])).round(6)
        array([0.5     , 1.333333, 0.      , 0.      ])
    """
    knots, values = floats("pchip_slopes", knots), floats("pchip_slopes", values)
    require_axes("pchip_slopes", 1, knots)
    check_rows("pchip_slopes", knots, values)
    n, h = knots.size, _steps(knots)
    m = _secants(values.reshape((n, values.size // n)), h)
    found = np.empty((n, m.shape[1]))
    for c in range(m.shape[1]):
        for i in range(1, n - 1):
            found[i, c] = _harmonic_mean(h[i - 1], h[i], m[i - 1, c], m[i, c])
        if n == 2:
            found[0, c] = found[1, c] = m[0, c]
        else:
            found[0, c] = _pchip_end(h[0], h[1], m[0, c], m[1, c])
            found[n - 1, c] = _pchip_end(h[n - 2], h[n - 3], m[n - 2, c], m[n - 3, c])
    return found.reshape(values.shape)


@register_jitable
def _turns(a, b):  # type: ignore[no-untyped-def]
    """True if two slopes differ in sign, or one is zero; not if one is NaN."""
    return a <= 0.0 <= b or b <= 0.0 <= a


@register_jitable
def _harmonic_mean(before, after, a, b):  # type: ignore[no-untyped-def]
    """The weighted harmonic mean of two slopes with the same sign, else zero."""
    if _turns(a, b):
        return 0.0
    first, second = 2.0 * after + before, after + 2.0 * before
    if abs(a) > abs(b):
        first, second, a, b = second, first, b, a
    return a * (first + second) / (first + second * (a / b))  # 1 / a has infinite derivatives where a is tiny


@register_jitable
def _pchip_end(near, far, a, b):  # type: ignore[no-untyped-def]
    """The slope of the parabola through three points at its end, but for what would change the shape of the data."""
    slope = ((2.0 * near + far) * a - near * b) / (near + far)
    if _turns(slope, a):
        return 0.0
    if _turns(a, b) and abs(slope) > 3.0 * abs(a):
        return 3.0 * a
    return slope


@njit
def akima_slopes(knots: Any, values: Any, modified: Any = False) -> Any:
    """Akima's slopes at the knots, which overshoot little, as SciPy's ``Akima1DInterpolator``: for `hermite`.

    The slope at a knot depends on two knots to either side of it. At the corner of two straight lines it is their mean.

    Args:
        knots: in ascending order, at least two.
        values: one for each knot, or an array with a row for each; real.
        modified: whether to weigh as MATLAB's ``makima``, which overshoots less where data are constant.

    Returns:
        A new array of slopes with the shape of the values.

    Raises:
        ValueError: there are not as many values as knots, or knots do not ascend.

    Source:
        Akima: J. ACM 17 (1970) 589-602.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> irad.interpolate.akima_slopes(np.arange(5.0), np.array([0.0, 0.0, 0.0, 1.0, 2.0]))
        array([0. , 0. , 0.5, 1. , 1. ])
    """
    knots, values = floats("akima_slopes", knots), floats("akima_slopes", values)
    require_axes("akima_slopes", 1, knots)
    check_rows("akima_slopes", knots, values)
    n = knots.size
    inner = _secants(values.reshape((n, values.size // n)), _steps(knots))
    columns = inner.shape[1]
    found = np.empty((n, columns))
    if n == 2:
        for c in range(columns):
            found[0, c] = found[1, c] = inner[0, c]
        return found.reshape(values.shape)
    m = np.empty((n + 3, columns))
    m[2:-2] = inner
    for c in range(columns):  # two more at either end, by a parabola through the last three points
        m[1, c] = 2.0 * m[2, c] - m[3, c]
        m[0, c] = 2.0 * m[1, c] - m[2, c]
        m[n + 1, c] = 2.0 * m[n, c] - m[n - 1, c]
        m[n + 2, c] = 2.0 * m[n + 1, c] - m[n, c]
    largest = 0.0
    for i in range(n):
        for c in range(columns):
            before, after = _akima_weights(m, i, c, modified)
            if before + after > largest:  # not max, which may keep a NaN
                largest = before + after
    for i in range(n):
        for c in range(columns):
            before, after = _akima_weights(m, i, c, modified)
            if not before + after <= _UNDEFINED * largest:  # also of NaN, which stays NaN
                found[i, c] = m[i + 1, c] + after / (before + after) * (m[i + 2, c] - m[i + 1, c])
            else:
                found[i, c] = 0.5 * (m[i, c] + m[i + 3, c])
    return found.reshape(values.shape)


@register_jitable
def _akima_weights(m, i, c, modified):  # type: ignore[no-untyped-def]
    """Weights of the slopes before and after a knot."""
    before, after = abs(m[i + 3, c] - m[i + 2, c]), abs(m[i + 1, c] - m[i, c])
    if modified:
        before += 0.5 * abs(m[i + 3, c] + m[i + 2, c])
        after += 0.5 * abs(m[i + 1, c] + m[i, c])
    return before, after


@njit
def spline_slopes(knots: Any, values: Any, natural: Any = False) -> Any:
    """Slopes at the knots of the cubic spline through given values: for `hermite`.

    Args:
        knots: in ascending order, at least two.
        values: one for each knot, or an array with a row for each; real or complex.
        natural: the second derivative is zero at both ends; otherwise the first two pieces, and the last two, are one
            polynomial (not-a-knot, as SciPy's ``CubicSpline``).

    Returns:
        A new array of slopes with the shape of the values.

    Raises:
        ValueError: there are not as many values as knots, or knots do not ascend.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> knots = np.arange(4.0)
        >>> irad.interpolate.spline_slopes(knots, knots**2).round(12)
        array([0., 2., 4., 6.])
    """
    knots, values = floats("spline_slopes", knots), inexact("spline_slopes", values)
    require_axes("spline_slopes", 1, knots)
    check_rows("spline_slopes", knots, values)
    n, h = knots.size, _steps(knots)
    flat = values.reshape((n, values.size // n))
    found = np.full(flat.shape, values.dtype.type(0) * 0.0)
    for c in range(flat.shape[1]):
        second = moments(knots, flat[:, c].copy(), natural)
        for i in range(n):
            k = min(i, n - 2)  # at the last knot, the interval before it
            bend = 2.0 * second[k] + second[k + 1] if i == k else -second[k] - 2.0 * second[k + 1]
            found[i, c] = (flat[k + 1, c] - flat[k, c]) / h[k] - h[k] / 6.0 * bend
    return found.reshape(values.shape)


@njit
def clamped_slopes(knots: Any, values: Any, first: Any, last: Any) -> Any:
    """Slopes at the knots of the cubic spline with given values, and with given slopes at both ends: for `hermite`.

    Args:
        knots: in ascending order, at least two.
        values: one for each knot, or an array with a row for each; real or complex.
        first: the slope at the first knot, a real number, the same for all columns.
        last: the slope at the last knot.

    Returns:
        A new array of slopes with the shape of the values.

    Raises:
        ValueError: there are not as many values as knots, or knots do not ascend.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> knots = np.arange(4.0)
        >>> irad.interpolate.clamped_slopes(knots, knots**2, 0.0, 6.0).round(12)
        array([0., 2., 4., 6.])
    """
    knots, values = floats("clamped_slopes", knots), inexact("clamped_slopes", values)
    require_axes("clamped_slopes", 1, knots)
    check_rows("clamped_slopes", knots, values)
    n, h = knots.size, _steps(knots)
    below, diagonal, above, right = _equations(h, _secants(values.reshape((n, values.size // n)), h))
    found = np.empty((n, right.shape[1]), right.dtype)
    found[0], found[-1] = real("clamped_slopes", first), real("clamped_slopes", last)
    if n > 2:
        right[1] -= below[1] * found[0]
        right[-1] -= above[-1] * found[-1]
        for c in range(right.shape[1]):
            found[1:-1, c] = tridiagonal(below[1:], diagonal[1:], above[1:], right[1:, c])
    return found.reshape(values.shape)


@njit
def periodic_slopes(knots: Any, values: Any) -> Any:
    """Slopes at the knots of the periodic cubic spline through given values: for `hermite` with ``periodic=True``.

    Args:
        knots: in ascending order, at least two; the last is the first of the next period.
        values: one for each knot, or an array with a row for each; real or complex, with equal first and last rows.

    Returns:
        A new array of slopes with the shape of the values.

    Raises:
        ValueError: there are not as many values as knots, knots do not ascend, or the last value differs from the
            first.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> irad.interpolate.periodic_slopes(np.arange(5.0), np.array([0.0, 1.0, 0.0, -1.0, 0.0])).round(12)
        array([ 1.5,  0. , -1.5,  0. ,  1.5])
    """
    knots, values = floats("periodic_slopes", knots), inexact("periodic_slopes", values)
    require_axes("periodic_slopes", 1, knots)
    check_rows("periodic_slopes", knots, values)
    n, h = knots.size, _steps(knots)
    flat = values.reshape((n, values.size // n))
    for c in range(flat.shape[1]):
        if abs(flat[n - 1, c] - flat[0, c]) > 1e-15 * (1.0 + abs(flat[0, c])):
            raise ValueError("periodic_slopes: the last value differs from the first")
    m = _secants(flat, h)
    found = np.full(flat.shape, values.dtype.type(0) * 0.0)
    if n == 3:
        for c in range(flat.shape[1]):
            found[:, c] = (m[0, c] / h[0] + m[1, c] / h[1]) / (1.0 / h[0] + 1.0 / h[1])
    elif n > 3:
        found[:-1] = _cyclic(h, m)
        found[-1] = found[0]
    return found.reshape(values.shape)


@register_jitable
def _equations(h, m):  # type: ignore[no-untyped-def]
    """The equations for slopes that make second derivatives continuous, one for the first knot of each interval.

    The first is that of a period, at whose start the last interval comes before.
    """
    n = h.size
    below, diagonal, above = np.empty(n), np.empty(n), np.empty(n)
    right = np.full((n, m.shape[1]), m.dtype.type(0) * 0.0)
    for i in range(n):
        below[i], diagonal[i], above[i] = h[i], 2.0 * (h[i - 1] + h[i]), h[i - 1]
        for c in range(m.shape[1]):
            right[i, c] = 3.0 * (h[i] * m[i - 1, c] + h[i - 1] * m[i, c])
    return below, diagonal, above, right


@register_jitable
def _cyclic(h, m):  # type: ignore[no-untyped-def]
    """The equations of a period, whose corners a matrix of rank one takes away (Sherman, Morrison)."""
    n = h.size
    below, diagonal, above, right = _equations(h, m)
    shift, corner = -diagonal[0], above[n - 1]
    corners = np.zeros(n)
    corners[0], corners[n - 1] = shift, corner
    ratio = below[0] / shift
    diagonal[0] -= shift
    diagonal[n - 1] -= corner * ratio
    response = tridiagonal(below, diagonal, above, corners)
    found = np.empty_like(right)
    for c in range(m.shape[1]):
        plain = tridiagonal(below, diagonal, above, right[:, c])
        factor = (plain[0] + ratio * plain[n - 1]) / (1.0 + response[0] + ratio * response[n - 1])
        found[:, c] = plain - factor * response
    return found


# ------------------------------------------------------------------------------------------------ evaluation


@njit
def hermite(x: Any, knots: Any, values: Any, slopes: Any, periodic: Any = False) -> Any:
    """The piecewise cubic with given values and slopes at its knots; beyond the ends, the end pieces continue.

    Args:
        x: a number, or an array.
        knots: in ascending order, at least two.
        values: one for each knot, or an array with a row for each, which is interpolated column by column.
        slopes: first derivatives at the knots, an array like the values, from `irad.interpolate.pchip_slopes`,
            `akima_slopes`, `spline_slopes`, `clamped_slopes` or `periodic_slopes`: computed once for many points.
        periodic: points beyond the ends lie in a period that repeats.

    Returns:
        A number, or an array with the axes of ``x`` and then those of a row of values.

    Raises:
        ValueError: there are not as many values, or slopes, as knots, or knots do not ascend.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from irad.interpolate import hermite, pchip_slopes
        >>> from numba import njit
        >>> @njit
        ... def curve(x, knots, values):
        ...     return hermite(x, knots, values, pchip_slopes(knots, values))
        >>> knots, values = np.arange(4.0), np.array([0.0, 1.0, 3.0, 3.0])
        >>> round(curve(1.5, knots, values), 6), round(irad.grad(curve)(1.5, knots, values), 6)
        (2.166667, 2.666667)
    """
    require("hermite", "biuf", knots)
    require("hermite", "biufc", values, slopes)
    require_axes("hermite", 1, knots)
    if knots.size < 2:
        raise FormattedValueError("hermite: {} knots; there must be two or more", knots.size)
    if values.shape[0] != knots.size or slopes.shape[0] != knots.size:
        raise FormattedValueError(
            "hermite: {} values and {} slopes for {} knots", values.shape[0], slopes.shape[0], knots.size
        )
    if values.shape != slopes.shape:
        raise ValueError("hermite: values and slopes have different shapes")
    return _evaluated(x, knots, values, slopes, periodic)


@register_jitable
def _place(x, knots, periodic):  # type: ignore[no-untyped-def]
    """The interval of a point, and the weights of the values and slopes at its ends."""
    if periodic:
        start, period = np.float64(knots[0]), np.float64(knots[-1]) - knots[0]
        x = x - np.floor((x - start) / period) * period
    i = interval_of(knots, x)
    h = np.float64(knots[i + 1]) - knots[i]
    if not h > 0.0:
        refuse_order(i)
    a, b = (knots[i + 1] - x) / h, (x - knots[i]) / h
    return i, a * a * (1.0 + 2.0 * b), b * b * (1.0 + 2.0 * a), h * b * a * a, -h * a * b * b


def _evaluated(x: Any, knots: Any, values: Any, slopes: Any, periodic: Any) -> Any:
    """Values at a number, or at each number of an array."""
    raise NotImplementedError("for compiled code")


@overload(_evaluated)
def _evaluated_typed(x, knots, values, slopes, periodic):  # type: ignore[no-untyped-def]
    if not isinstance(x, types.Array) and values.ndim == 1:

        def one(x, knots, values, slopes, periodic):  # type: ignore[no-untyped-def]
            i, a, b, c, d = _place(np.float64(real("hermite", x)), knots, periodic)
            return a * values[i] + b * values[i + 1] + c * slopes[i] + d * slopes[i + 1]

        return one
    points_of, shape_of = points_and_shape("hermite", x)

    def each(x, knots, values, slopes, periodic):  # type: ignore[no-untyped-def]
        check_order(knots, False)
        points = points_of(x)
        n, columns = knots.size, values.size // knots.size
        flat, slope = values.ravel().reshape((n, columns)), slopes.ravel().reshape((n, columns))
        found = np.full((points.size, columns), values.dtype.type(0) * slopes.dtype.type(0) * 0.0)
        for p in range(points.size):
            i, a, b, c, d = _place(np.float64(points[p]), knots, periodic)
            for k in range(columns):
                found[p, k] = a * flat[i, k] + b * flat[i + 1, k] + c * slope[i, k] + d * slope[i + 1, k]
        return found.reshape(shape_of(x) + values.shape[1:])

    return each


def points_and_shape(name: str, x: types.Type) -> tuple[Any, Any]:
    """Functions for compiled code that give the points of a type as an array with one axis, and their shape.

    Args:
        name: of the function that is called, for messages.
    """
    if isinstance(x, types.Array):
        return register_jitable(lambda x: floats(name, x).ravel()), register_jitable(lambda x: x.shape)
    return register_jitable(lambda x: np.full(1, np.float64(real(name, x)))), register_jitable(lambda x: ())
