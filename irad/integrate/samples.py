"""Integrals of sampled functions: trapezoids and Simpson's parabolas, cumulative ones too.

Each rule is an integral from one sample to the next, as a weighted sum of samples nearby; the rest is sums of these.
This is plain compiled code, which irad differentiates. All is computed in double precision; samples may be complex.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numba.core import types
from numba.cpython.unsafe.tuple import tuple_setitem
from numba.extending import overload, register_jitable

from irad.errors import HERE, SignatureError
from irad.frontend.custom.targets import inactive_in_irad
from irad.frontend.formatted import FormattedValueError
from irad.frontend.operands import floats, inexact


@register_jitable
def _place_of_axis(name, axis, shape):  # type: ignore[no-untyped-def]
    """The axis counted from the front, and how many numbers the axes before and after it have."""
    count = len(shape)
    if not -count <= axis < count:
        raise FormattedValueError("{}: axis {} of an array with {} axes", name, axis, count)
    axis = axis % count
    before, after = 1, 1
    for d in range(count):
        if d < axis:
            before *= shape[d]
        elif d > axis:
            after *= shape[d]
    if shape[axis] < 1:
        raise FormattedValueError("{}: no samples", name)
    return axis, before, after


def _widths(name: str, x: Any, dx: Any, y: Any, axis: int, before: int, after: int) -> Any:
    """Distances between samples, as an array with three axes: before the axis, along it and after it, or 1."""
    raise NotImplementedError("for compiled code")


@overload(_widths)
def _widths_typed(name, x, dx, y, axis, before, after):  # type: ignore[no-untyped-def]
    if isinstance(x, types.NoneType | types.Omitted):
        return lambda name, x, dx, y, axis, before, after: np.full((1, y.shape[axis] - 1, 1), np.float64(dx))
    if not isinstance(x, types.Array) or x.ndim not in (1, y.ndim):
        raise SignatureError(
            f"abscissae are {x} and samples {y}",
            "pass an array with one axis, or one with the shape of the samples",
            "each sample needs an abscissa",
            HERE,
        )
    has_one_axis = x.ndim == 1

    def between(name, x, dx, y, axis, before, after):  # type: ignore[no-untyped-def]
        n = y.shape[axis]
        if has_one_axis:
            if x.size != n:
                raise FormattedValueError("{}: {} abscissae for {} samples", name, x.size, n)
            before, after = 1, 1
        elif x.shape != y.shape:
            raise FormattedValueError("{}: abscissae and samples have different shapes", name)
        points = floats("abscissae", x).reshape((before, n, after))
        return np.float64(1.0) * points[:, 1:] - points[:, :-1]

    return between


@inactive_in_irad
@njit
def _check_widths(widths: Any, ascending: bool) -> None:
    """Refuses abscissae that are equal, or do not ascend."""
    for width in widths.flat:
        if ascending and not width > 0.0:
            raise ValueError("abscissae must ascend")
        if not width != 0.0:
            raise ValueError("neighbouring abscissae must differ")


@register_jitable
def _between(parabolas, widths, y, a, i, c):  # type: ignore[no-untyped-def]
    """The integral from sample i to the next: of a straight line, or of a parabola through the next or the last one."""
    n = y.shape[1]
    place, column = min(a, widths.shape[0] - 1), min(c, widths.shape[2] - 1)
    width = widths[place, i, column]
    if not parabolas or n == 2:
        return 0.5 * width * (y[a, i, c] + y[a, i + 1, c])
    if i % 2 == 0 and i < n - 2:
        other, first, second, third = widths[place, i + 1, column], y[a, i, c], y[a, i + 1, c], y[a, i + 2, c]
    else:
        other, first, second, third = widths[place, i - 1, column], y[a, i + 1, c], y[a, i, c], y[a, i - 1, c]
    share = width / (width + other)
    bend = share * (width / other)
    return width / 6.0 * ((3.0 - share) * first + (3.0 + bend + share) * second - bend * third)


def _without_axis(total: Any, shape: Any, axis: int) -> Any:
    """Totals with the shape of the other axes; a number if there are none."""
    raise NotImplementedError("for compiled code")


@overload(_without_axis)
def _without_axis_typed(total, shape, axis):  # type: ignore[no-untyped-def]
    if len(shape) == 1:
        return lambda total, shape, axis: total[0, 0]

    def reduced(total, shape, axis):  # type: ignore[no-untyped-def]
        left = shape[1:]
        for d in range(len(left)):
            left = tuple_setitem(left, d, shape[d] if d < axis else shape[d + 1])
        return total.reshape(left)

    return reduced


@register_jitable
def _integrated(name, parabolas, samples, x, dx, axis):  # type: ignore[no-untyped-def]
    axis, before, after = _place_of_axis(name, axis, samples.shape)
    n = samples.shape[axis]
    widths = _widths(name, x, dx, samples, axis, before, after)
    if parabolas and n > 2:
        _check_widths(widths, False)
    flat = samples.reshape((before, n, after))
    total = np.full((before, after), samples.dtype.type(0) * 0.0)
    for a in range(before):
        for i in range(n - 1):
            for c in range(after):
                total[a, c] += _between(parabolas, widths, flat, a, i, c)
    return _without_axis(total, samples.shape, axis)


@register_jitable
def _accumulated(name, parabolas, samples, x, dx, axis, start, count):  # type: ignore[no-untyped-def]
    """Integrals up to each sample; ``count`` is 1 if the first sample counts, with the integral ``start``, else 0."""
    axis, before, after = _place_of_axis(name, axis, samples.shape)
    n = samples.shape[axis]
    widths = _widths(name, x, dx, samples, axis, before, after)
    if parabolas and n > 2:
        _check_widths(widths, True)
    flat = samples.reshape((before, n, after))
    found = np.full((before, n - 1 + count, after), samples.dtype.type(0) * 0.0 + start)
    for a in range(before):
        for c in range(after):
            total = samples.dtype.type(0) * 0.0 + start
            for i in range(n - 1):
                total += _between(parabolas, widths, flat, a, i, c)
                found[a, i + count, c] = total
    return found.reshape(tuple_setitem(samples.shape, axis, n - 1 + count))


@njit
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: Any = -1) -> Any:
    """The integral of samples by the trapezoidal rule, as ``scipy.integrate.trapezoid``.

    Args:
        y: samples, an array; real or complex.
        x: abscissae, an array with one axis or with the shape of the samples; None: they lie ``dx`` apart.
        dx: the distance between samples, used without ``x``.
        axis: the axis to integrate along.

    Returns:
        A number, or an array with the other axes.

    Raises:
        ValueError: there are no samples, or not as many abscissae; there is no such axis.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> irad.value_and_grad(irad.integrate.trapezoid)(np.array([1.0, 2.0, 4.0]), np.array([0.0, 1.0, 3.0]))
        (7.5, array([0.5, 1.5, 1. ]))
    """
    return _integrated("trapezoid", False, inexact("trapezoid", y), x, dx, axis)


@njit
def simpson(y: Any, x: Any = None, dx: Any = 1.0, axis: Any = -1) -> Any:
    """The integral of samples by Simpson's rule, as ``scipy.integrate.simpson``.

    A parabola runs through three samples each; if the number of samples is even, one through the last three adds the
    last interval.

    Args:
        y: samples, an array; real or complex. Two are integrated by a trapezoid.
        x: abscissae, an array with one axis or with the shape of the samples; None: they lie ``dx`` apart. Neighbours
            differ.
        dx: the distance between samples, used without ``x``.
        axis: the axis to integrate along.

    Returns:
        A number, or an array with the other axes.

    Raises:
        ValueError: there are no samples, or not as many abscissae; neighbouring abscissae are equal; there is no such
            axis.

    Source:
        Cartwright: J. Math. Sci. Math. Educ. 12 (2017) 1-9.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> x = np.array([0.0, 1.0, 3.0, 4.0])
        >>> round(irad.integrate.simpson(x**2, x), 9)
        21.333333333
        >>> irad.grad(irad.integrate.simpson)(x**2, x).round(6)
        array([0.      , 2.222222, 1.333333, 0.444444])
    """
    return _integrated("simpson", True, inexact("simpson", y), x, dx, axis)


@njit
def cumulative_trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: Any = -1, initial: Any = None) -> Any:
    """Integrals from the first sample to each by the trapezoidal rule, as ``scipy.integrate.cumulative_trapezoid``.

    Args:
        y: samples, an array; real or complex.
        x: abscissae, an array with one axis or with the shape of the samples; None: they lie ``dx`` apart.
        dx: the distance between samples, used without ``x``.
        axis: the axis to integrate along.
        initial: the integral at the first sample, added to all others: a number, real if samples are. None: the first
            sample is left out.

    Returns:
        An array like the samples, with one less along the axis unless there is an initial value.

    Raises:
        ValueError: there are no samples, or not as many abscissae; there is no such axis.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> irad.integrate.cumulative_trapezoid(np.array([1.0, 2.0, 4.0]), dx=0.5, initial=0.0)
        array([0.  , 0.75, 2.25])
    """
    samples = inexact("cumulative_trapezoid", y)
    if initial is None:
        return _accumulated("cumulative_trapezoid", False, samples, x, dx, axis, 0.0, 0)
    return _accumulated("cumulative_trapezoid", False, samples, x, dx, axis, initial, 1)


@njit
def cumulative_simpson(y: Any, x: Any = None, dx: Any = 1.0, axis: Any = -1, initial: Any = None) -> Any:
    """Integrals from the first sample to each other by Simpson's rule, as ``scipy.integrate.cumulative_simpson``.

    Args:
        y: samples, an array; real or complex. Two are integrated by a trapezoid.
        x: abscissae in ascending order, an array with one axis or with the shape of the samples; None: they lie ``dx``
            apart.
        dx: the distance between samples, used without ``x``.
        axis: the axis to integrate along.
        initial: the integral at the first sample, added to all others: a number, real if samples are. None: the first
            sample is left out.

    Returns:
        An array like the samples, with one less along the axis unless there is an initial value.

    Raises:
        ValueError: there are no samples, or not as many abscissae; abscissae do not ascend; there is no such axis.

    Source:
        Cartwright: J. Math. Sci. Math. Educ. 12 (2017) 1-9.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> x = np.array([0.0, 1.0, 3.0, 4.0])
        >>> irad.integrate.cumulative_simpson(x**2, x=x, initial=0.0).round(6)
        array([ 0.      ,  0.333333,  9.      , 21.333333])
    """
    samples = inexact("cumulative_simpson", y)
    if initial is None:
        return _accumulated("cumulative_simpson", True, samples, x, dx, axis, 0.0, 0)
    return _accumulated("cumulative_simpson", True, samples, x, dx, axis, initial, 1)
