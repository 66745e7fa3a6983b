"""unfold and fold, each the other's transpose; pixel_shuffle and pixel_unshuffle, where windows lie side by side."""

from __future__ import annotations

import numpy as np
from numba import njit

from irad.frontend.formatted import FormattedValueError
from irad.frontend.inner import inner_jitable, inner_njit
from irad.frontend.operands import floats
from irad.nn.convolution.geometry import paddings, shift_of, sizes_of_output, triple, valid
from irad.nn.convolution.public import Setting, shape_like, three, with_three
from irad.nn.linear import register_linear
from irad.nn.shapes import Array


@njit
def unfold(
    x: Array, k: Setting, stride: Setting = 1, pad: Setting = 0, dilation: Setting = 1, flipped: bool = True
) -> Array:
    """The windows of images, each as a column: the matrix that `irad.nn.conv` multiplies by its filters.

    Args:
        x: images of shape (batch, channels, …) with one, two or three axes of space.
        k: size of the windows in elements: an integer, or one for each axis of space.
        stride: distance between windows: an integer, or one for each axis.
        pad: padding around the images: an integer, one for each axis, or two for each axis, before and after it.
        dilation: distance between the elements of a window: an integer, or one for each axis.
        flipped: whether windows are stored as they are, as for cross-correlation; otherwise they are stored reversed.

    Returns:
        A new array of shape (batch, channels * elements of a window, windows).

    Raises:
        ValueError: a window does not fit, or a size is not positive.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> irad.nn.unfold(np.array([[[1.0, 2.0, 3.0, 4.0]]]), 2)
        array([[[1., 2., 3.],
                [2., 3., 4.]]])
    """
    x = floats("unfold", x)
    axes = x.shape[2:]
    settings = (triple(k, axes), triple(stride, axes), paddings(pad, axes), triple(dilation, axes), flipped)
    out = sizes_of_output(three(x.shape), settings[0], settings[1], settings[2], settings[3])
    columns = np.zeros((x.shape[0], x.shape[1] * _count(settings[0]), _count(out)), x.dtype)
    _add_windows(columns, with_three(x), settings)
    return columns


@njit
def fold(
    y: Array,
    shape: tuple[int, ...],
    k: Setting,
    stride: Setting = 1,
    pad: Setting = 0,
    dilation: Setting = 1,
    flipped: bool = True,
) -> Array:
    """Images, summed up from their windows: the transpose of `irad.nn.unfold`.

    Args:
        y: windows of shape (batch, channels * elements of a window, windows).
        shape: shape of the images: (batch, channels, …).
        k: size of the windows in elements: an integer, or one for each axis of space.
        stride: distance between windows: an integer, or one for each axis.
        pad: padding around the images: an integer, one for each axis, or two for each axis, before and after it.
        dilation: distance between the elements of a window: an integer, or one for each axis.
        flipped: whether windows are stored as they are; otherwise they are stored reversed.

    Returns:
        New images of that shape; elements that windows share are the sum of their values there.

    Raises:
        ValueError: ``y`` does not have as many or as large windows as these images.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> irad.nn.fold(np.array([[[1.0, 2.0, 3.0], [2.0, 3.0, 4.0]]]), (1, 1, 4), 2)
        array([[[1., 4., 6., 4.]]])
    """
    y = floats("fold", y)
    axes = shape[2:]
    settings = (triple(k, axes), triple(stride, axes), paddings(pad, axes), triple(dilation, axes), flipped)
    sizes = three(shape)
    out = sizes_of_output(sizes, settings[0], settings[1], settings[2], settings[3])
    rows, windows = shape[1] * _count(settings[0]), _count(out)
    if y.shape != (shape[0], rows, windows):
        _refuse_windows(y.shape[0], y.shape[1], y.shape[2], shape[0], rows, windows)
    x = np.zeros((shape[0], shape[1], sizes[0], sizes[1], sizes[2]), y.dtype)
    _add_images(x, y, settings)
    return x.reshape(shape)


@njit
def pixel_shuffle(x: Array, r: int) -> Array:
    """Images that are r times larger along each axis of space, each block made of r**d channels (d axes of space).

    Args:
        x: images of shape (batch, channels * r**d, …) with one to three axes of space.
        r: the factor, a positive integer.

    Returns:
        New images of shape (batch, channels, …), each axis of space r times as long.

    Raises:
        ValueError: the factor is not positive, or the channels are not a multiple of r**d.

    Source:
        Shi et al.: Real-time single image and video super-resolution, CVPR 2016.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> irad.nn.pixel_shuffle(np.arange(4.0).reshape(1, 4, 1, 1), 2)
        array([[[[0., 1.],
                 [2., 3.]]]])
    """
    x = floats("pixel_shuffle", x)
    if r < 1:
        _refuse_factor(r)
    cells = r ** (x.ndim - 2)
    if x.shape[1] % cells:
        _refuse_channels(x.shape[1], cells)
    sizes = three(x.shape)
    shape = shape_like(x.shape, x.shape[0], x.shape[1] // cells, (sizes[0] * r, sizes[1] * r, sizes[2] * r))
    return fold(x.reshape(x.shape[0], x.shape[1], _count(sizes)), shape, r, r)


@njit
def pixel_unshuffle(x: Array, r: int) -> Array:
    """Images that are r times smaller, with more channels: the inverse of `irad.nn.pixel_shuffle`.

    Args:
        x: images of shape (batch, channels, …) with one to three axes of space, whose sizes are multiples of r.
        r: the factor, a positive integer.

    Returns:
        New images of shape (batch, channels * r**d, …), where d is the number of axes of space.

    Raises:
        ValueError: the factor is not positive, or a size is not a multiple of it.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> irad.nn.pixel_unshuffle(np.arange(4.0).reshape(1, 1, 2, 2), 2).ravel()
        array([0., 1., 2., 3.])
    """
    x = floats("pixel_unshuffle", x)
    if r < 1:
        _refuse_factor(r)
    for d in range(2, x.ndim):
        if x.shape[d] % r:
            _refuse_size(x.shape[d], d, r)
    sizes = three(x.shape)
    cells = r ** (x.ndim - 2)
    shape = shape_like(x.shape, x.shape[0], x.shape[1] * cells, (sizes[0] // r, sizes[1] // r, sizes[2] // r))
    return unfold(x, r, r).reshape(shape)


@inner_njit
def _count(sizes):
    return sizes[0] * sizes[1] * sizes[2]


@inner_njit
def _refuse_windows(found_samples, found_rows, found_windows, samples, rows, windows):
    raise FormattedValueError(
        "fold: an array of shape ({}, {}, {}); for these settings it must be ({}, {}, {})",
        found_samples,
        found_rows,
        found_windows,
        samples,
        rows,
        windows,
    )


@inner_njit
def _refuse_factor(r):
    raise FormattedValueError("pixel_shuffle: the factor is {}; it must be positive", r)


@inner_njit
def _refuse_channels(channels, cells):
    raise FormattedValueError("pixel_shuffle: {} channels are not a multiple of {}", channels, cells)


@inner_njit
def _refuse_size(size, axis, r):
    raise FormattedValueError("pixel_unshuffle: size {} of axis {} is not a multiple of {}", size, axis, r)


@inner_njit(error_model="numpy")
def _add_windows(columns, x, settings):
    """``columns`` += windows of x; x with three axes of space, settings (k, stride, pad, dilation, flipped)."""
    _add(False, x, columns, settings)


@inner_njit(error_model="numpy")
def _add_images(x, columns, settings):
    """The transpose: adds windows to the images that they are of."""
    _add(True, x, columns, settings)


@inner_jitable(error_model="numpy")
def _add(transposed, x, columns, settings):
    """Adds images to the columns that they are copied to; transposed, columns to images. Padding is left out."""
    taps, stride, pad, dilation, flipped = settings
    out = sizes_of_output(x.shape[2:], taps, stride, pad, dilation)
    for n in range(x.shape[0]):
        row = 0
        for c in range(x.shape[1]):
            for t0 in range(taps[0]):
                s0 = shift_of(t0, taps[0], dilation[0], pad[0], flipped)
                for t1 in range(taps[1]):
                    s1 = shift_of(t1, taps[1], dilation[1], pad[2], flipped)
                    for t2 in range(taps[2]):
                        s2 = shift_of(t2, taps[2], dilation[2], pad[4], flipped)
                        _add_row(transposed, x[n, c], columns[n, row], (s0, s1, s2), out, stride)
                        row += 1


@inner_jitable(error_model="numpy")
def _add_row(transposed, x, row, shifts, out, stride):
    lo, hi = valid(shifts[2], stride[2], x.shape[2], out[2])
    lo0, hi0 = valid(shifts[0], stride[0], x.shape[0], out[0])
    lo1, hi1 = valid(shifts[1], stride[1], x.shape[1], out[1])
    for o0 in range(lo0, hi0):
        for o1 in range(lo1, hi1):
            line, place = x[o0 * stride[0] + shifts[0], o1 * stride[1] + shifts[1]], (o0 * out[1] + o1) * out[2]
            for o2 in range(lo, hi):
                if transposed:
                    line[o2 * stride[2] + shifts[2]] += row[place + o2]
                else:
                    row[place + o2] += line[o2 * stride[2] + shifts[2]]


register_linear(_add_windows, _add_images)
