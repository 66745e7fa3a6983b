"""Pooling: the largest element, the mean or a norm of windows of images.

Padding is smaller than anything for `maxpool`, and zero for the others, which count it; `meanpool` need not. The
kernels see three axes of space, as those of a convolution do. The mean is linear: `_add_means` and `_add_spread` are
each other's adjoints.
"""

from __future__ import annotations

import numpy as np
from numba import njit, types

import irad
from irad.frontend.formatted import FormattedValueError
from irad.frontend.inner import inner_njit, inner_overload
from irad.frontend.operands import floats, floats_or_complex
from irad.nn.complex_parts import images, images_like
from irad.nn.convolution.geometry import paddings, sizes_of_output, triple
from irad.nn.convolution.public import Setting, shape_like, with_three
from irad.nn.outputs import clear, empty, require_apart, zeros
from irad.nn.shapes import Array
from irad.rules import AugmentedReturn, is_active


@njit
def maxpool(x: Array, k: Setting, stride: Setting | None = None, pad: Setting = 0, out: Array | None = None) -> Array:
    """The largest element of each window of an image.

    Elements that are equally large share the derivative in equal parts.

    Args:
        x: images of shape (batch, channels, …) with one, two or three axes of space.
        k: size of the windows in elements: an integer, or one for each axis of space.
        stride: distance between windows in elements; by default their size.
        pad: padding in elements: an integer, one for each axis, or two for each axis, before and after it.
        out: where the result is written to, a contiguous array of its shape and type that shares no memory with the
            arguments; by default a new array.

    Returns:
        ``out``, or a new array, of shape (batch, channels, …) with an element for each window.

    Raises:
        ValueError: a window has no element of the image, or a size is not positive.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> irad.nn.maxpool(np.array([[[1.0, 3.0, 2.0, 5.0]]]), 2)
        array([[[3., 5.]]])
    """
    x = floats("maxpool", x)
    axes = x.shape[2:]
    windows = (triple(k, axes), _steps(k, stride, axes), paddings(pad, axes))
    each = with_three(x)
    _check_windows(each.shape[2:], windows)
    sizes = sizes_of_output(each.shape[2:], windows[0], windows[1], windows[2], (1, 1, 1))
    y = empty("maxpool", out, shape_like(x.shape, x.shape[0], x.shape[1], sizes), x)
    require_apart(out, x)
    _put_maxima(with_three(y), each, windows)
    return y


@njit
def meanpool(
    x: Array,
    k: Setting,
    stride: Setting | None = None,
    pad: Setting = 0,
    count_include_pad: bool = True,
    out: Array | None = None,
) -> Array:
    """The mean of each window of an image.

    Args:
        x: images of shape (batch, channels, …) with one, two or three axes of space, real or complex.
        k: size of the windows in elements: an integer, or one for each axis of space.
        stride: distance between windows in elements; by default their size.
        pad: padding in elements: an integer, one for each axis, or two for each axis, before and after it.
        count_include_pad: whether padding counts as zero; otherwise a mean is that of the elements of the image.
        out: where the result is written to, a contiguous array of its shape and type that shares no memory with the
            arguments; by default a new array.

    Returns:
        ``out``, or a new array, of shape (batch, channels, …) with an element for each window.

    Raises:
        ValueError: a window does not fit or has nothing but padding that does not count, or a size is not positive.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> irad.nn.meanpool(np.array([[[1.0, 3.0, 2.0, 5.0]]]), 2)
        array([[[2. , 3.5]]])
        >>> irad.nn.meanpool(np.array([[[1.0, 3.0]]]), 2, pad=1, count_include_pad=False)
        array([[[1., 3.]]])
    """
    given = floats_or_complex("meanpool", x)
    x = images(given, 1)
    axes = x.shape[2:]
    windows = (triple(k, axes), _steps(k, stride, axes), paddings(pad, axes), bool(count_include_pad))
    each = with_three(x)
    if not count_include_pad:
        _check_windows(each.shape[2:], windows)
    sizes = sizes_of_output(each.shape[2:], windows[0], windows[1], windows[2], (1, 1, 1))
    require_apart(out, x)
    y = zeros("meanpool", out, shape_like(x.shape, x.shape[0], x.shape[1], sizes), x)
    _add_means(with_three(y), each, windows)
    return images_like(y, shape_like(given.shape, given.shape[0], given.shape[1], sizes), 1, given)


@njit
def lpnormpool(x: Array, p: float, k: Setting, stride: Setting | None = None, pad: Setting = 0) -> Array:
    """The p-norm of each window of an image, ``sum(abs(x) ** p) ** (1 / p)``.

    The derivative is zero where a window is zero throughout.

    Args:
        x: images of shape (batch, channels, …) with one, two or three axes of space.
        p: the exponent, positive.
        k: size of the windows in elements: an integer, or one for each axis of space.
        stride: distance between windows in elements; by default their size.
        pad: padding in elements: an integer, one for each axis, or two for each axis, before and after it.

    Returns:
        A new array of shape (batch, channels, …) with an element for each window.

    Raises:
        ValueError: ``p`` is not positive, a window does not fit, or a size is not positive.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> irad.nn.lpnormpool(np.array([[[3.0, 4.0, 0.0, 0.0]]]), 2.0, 2)
        array([[[5., 0.]]])
    """
    if not p > 0.0:
        raise ValueError("lpnormpool: p must be positive")
    x = floats("lpnormpool", x)
    axes = x.shape[2:]
    sizes = triple(k, axes)
    means = meanpool(_powers(x, p, x.dtype.type(1.0)), k, stride, pad)
    return _powers(means, 1.0 / p, x.dtype.type(sizes[0] * sizes[1] * sizes[2]))


def _steps(k, stride, axes):
    """The distances between windows; their sizes where None are given."""
    raise NotImplementedError("for compiled code")


@inner_overload(_steps)
def _compiled_steps(k, stride, axes):
    if isinstance(stride, types.NoneType | types.Omitted):
        return lambda k, stride, axes: triple(k, axes)
    return lambda k, stride, axes: triple(stride, axes)


@inner_njit
def _powers(x, p, factor):
    """``(factor · |x|) ** p``, with derivative zero where x is zero."""
    y = np.zeros(x.shape, x.dtype)
    before, after = np.ascontiguousarray(x).ravel(), y.ravel()
    for i in range(before.size):
        size = factor * (before[i] if before[i] > 0.0 else -before[i])
        if size != 0.0:
            after[i] = size**p
    return y


@inner_njit
def _check_windows(sizes, windows):
    """Refuses windows without an element of the image: in the first and in the last along each axis."""
    counts = sizes_of_output(sizes, windows[0], windows[1], windows[2], (1, 1, 1))
    for d in range(3):
        last = (counts[d] - 1) * windows[1][d] - windows[2][2 * d]
        if windows[0][d] <= windows[2][2 * d] or last >= sizes[d]:
            _refuse_window(windows[0][d], windows[2][2 * d], windows[2][2 * d + 1], sizes[d])


@inner_njit
def _refuse_window(window, before, after, size):
    raise FormattedValueError(
        "a window of {} lies wholly in the padding of {} before and {} after {} elements",
        window,
        before,
        after,
        size,
    )


@inner_njit
def _range(o, axis, windows, size):
    """First and last element, exclusive, of a window along an axis."""
    start = o * windows[1][axis] - windows[2][2 * axis]
    return max(start, 0), min(start + windows[0][axis], size)


# ---------------------------------------------------------------------------------------------------------- maximum


@inner_njit
def _largest_in(x, o0, o1, o2, windows):
    """The largest element of a window, NaN if there is one in it, and how many there are that are as large."""
    lo0, hi0 = _range(o0, 0, windows, x.shape[0])
    lo1, hi1 = _range(o1, 1, windows, x.shape[1])
    lo2, hi2 = _range(o2, 2, windows, x.shape[2])
    top, count = x.dtype.type(-np.inf), 0
    for i in range(lo0, hi0):
        for j in range(lo1, hi1):
            for k in range(lo2, hi2):
                if x[i, j, k] > top or x[i, j, k] != x[i, j, k]:
                    top, count = x[i, j, k], 1
                elif x[i, j, k] == top:
                    count += 1
    return top, count


@inner_njit
def _put_maxima(y, x, windows):
    for n in range(x.shape[0]):
        for c in range(x.shape[1]):
            for o0 in range(y.shape[2]):
                for o1 in range(y.shape[3]):
                    for o2 in range(y.shape[4]):
                        y[n, c, o0, o1, o2] = _largest_in(x[n, c], o0, o1, o2, windows)[0]


@inner_njit(error_model="numpy")
def _follow_maxima(x, change_x, change_y, windows, is_forward):
    """Adds the change of y to that of the elements that y is, in equal parts; or forwards from those to y."""
    for n in range(x.shape[0]):
        for c in range(x.shape[1]):
            image, change = x[n, c], change_x[n, c]
            for o0 in range(change_y.shape[2]):
                lo0, hi0 = _range(o0, 0, windows, x.shape[2])
                for o1 in range(change_y.shape[3]):
                    lo1, hi1 = _range(o1, 1, windows, x.shape[3])
                    for o2 in range(change_y.shape[4]):
                        lo2, hi2 = _range(o2, 2, windows, x.shape[4])
                        top, count = _largest_in(image, o0, o1, o2, windows)
                        part = x.dtype.type(1.0) / max(count, 1)
                        for i in range(lo0, hi0):
                            for j in range(lo1, hi1):
                                for k in range(lo2, hi2):
                                    if image[i, j, k] == top:
                                        if is_forward:
                                            change_y[n, c, o0, o1, o2] += part * change[i, j, k]
                                        else:
                                            change[i, j, k] += part * change_y[n, c, o0, o1, o2]


@irad.rules.augmented_primal(_put_maxima)
def _put_maxima_augmented(config, y, x, windows):
    _put_maxima(y.value, x.value, windows.value)
    # The caller may have written to x before the reverse reads it again.
    return AugmentedReturn(None, None, x.value.copy() if config.overwritten[1] else x.value)


@irad.rules.reverse(_put_maxima)
def _put_maxima_reverse(config, cotangent, tape, y, x, windows):
    if is_active(y):
        if is_active(x):
            _follow_maxima(tape, x.shadow, y.shadow, windows.value, False)
        clear(y.shadow)
    return None, None, None


@irad.rules.forward(_put_maxima)
def _put_maxima_forward(config, y, x, windows):
    _put_maxima(y.value, x.value, windows.value)
    if is_active(y):
        clear(y.tangent)
        if is_active(x):
            _follow_maxima(x.value, x.tangent, y.tangent, windows.value, True)


# ------------------------------------------------------------------------------------------------------------- mean


@inner_njit
def _follow_means(x, y, windows, is_forward):
    """Adds to y the means of x, or to x the adjoint of that."""
    taps, counts_all = windows[0], windows[3]
    part = x.dtype.type(1.0) / x.dtype.type(taps[0] * taps[1] * taps[2])
    for n in range(x.shape[0]):
        for c in range(x.shape[1]):
            for o0 in range(y.shape[2]):
                lo0, hi0 = _range(o0, 0, windows, x.shape[2])
                for o1 in range(y.shape[3]):
                    lo1, hi1 = _range(o1, 1, windows, x.shape[3])
                    for o2 in range(y.shape[4]):
                        lo2, hi2 = _range(o2, 2, windows, x.shape[4])
                        if not counts_all:
                            part = x.dtype.type(1.0) / x.dtype.type((hi0 - lo0) * (hi1 - lo1) * (hi2 - lo2))
                        total, each = x.dtype.type(0.0), part * y[n, c, o0, o1, o2]
                        for i in range(lo0, hi0):
                            for j in range(lo1, hi1):
                                for k in range(lo2, hi2):
                                    if is_forward:
                                        total += x[n, c, i, j, k]
                                    else:
                                        x[n, c, i, j, k] += each
                        if is_forward:
                            y[n, c, o0, o1, o2] += part * total


@inner_njit
def _add_means(y, x, windows):
    _follow_means(x, y, windows, True)


@inner_njit
def _add_spread(x, y, windows):
    _follow_means(x, y, windows, False)


def _register(add, adjoint):
    """The rule of a linear ``add(total, given, windows)``."""

    @irad.rules.augmented_primal(add)
    def augmented(config, total, given, windows):
        add(total.value, given.value, windows.value)
        return AugmentedReturn(None, None, None)

    @irad.rules.reverse(add)
    def reverse(config, cotangent, tape, total, given, windows):
        if is_active(total) and is_active(given):
            adjoint(given.shadow, total.shadow, windows.value)
        return None, None, None

    @irad.rules.forward(add)
    def forward(config, total, given, windows):
        add(total.value, given.value, windows.value)
        if is_active(total) and is_active(given):
            add(total.tangent, given.tangent, windows.value)


_register(_add_means, _add_spread)
_register(_add_spread, _add_means)
