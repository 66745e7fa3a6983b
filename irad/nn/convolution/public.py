"""Convolutions of images with one, two or three axes of space, and their adjoints."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numba import njit
from numba.cpython.unsafe.tuple import tuple_setitem

from irad.frontend.formatted import FormattedValueError
from irad.frontend.inner import inner_jitable
from irad.frontend.operands import floats_or_complex
from irad.nn.complex_parts import filters, filters_like, images, images_like, parts
from irad.nn.convolution.geometry import paddings, sizes_of_output, triple
from irad.nn.convolution.kernels import add_conv, add_data, add_filter
from irad.nn.outputs import require_apart, zeros
from irad.nn.shapes import Array

Setting: TypeAlias = int | tuple[int, ...]


@inner_jitable
def three(shape):
    """The sizes in space of a shape (·, ·, …), as three; ones come first."""
    size0 = shape[-3] if len(shape) > 4 else 1
    size1 = shape[-2] if len(shape) > 3 else 1
    return size0, size1, shape[-1]


@inner_jitable
def with_three(x):
    """The array as contiguous memory with three axes of space."""
    sizes = three(x.shape)
    return np.ascontiguousarray(x).reshape((x.shape[0], x.shape[1], sizes[0], sizes[1], sizes[2]))


@inner_jitable
def shape_like(like, samples, channels, sizes):
    """(samples, channels, …) with the last of three sizes, as many as ``like`` has."""
    shape = tuple_setitem(tuple_setitem(like, 0, samples), 1, channels)
    for d in range(2, len(like)):
        shape = tuple_setitem(shape, d, sizes[3 - len(like) + d])
    return shape


@inner_jitable
def _check_channels(channels, w_shape, groups):
    if groups < 1 or channels % groups or w_shape[0] % groups:
        _refuse_groups(channels, w_shape[0], groups)
    if w_shape[1] * groups != channels:
        _refuse_channels(w_shape[1], groups, channels)


@inner_jitable
def _check_output(shape, samples, filters, sizes):
    """Refuses a cotangent without the shape of the convolution's result."""
    if shape[0] != samples or shape[1] != filters:
        _refuse_samples(shape[0], shape[1], samples, filters)
    found = three(shape)
    for d in range(3):
        if found[d] != sizes[d]:
            _refuse_size(found[d], sizes[d])


@inner_jitable
def _refuse_groups(channels, filters, groups):
    raise FormattedValueError("{} channels and {} filters cannot be divided into {} groups", channels, filters, groups)


@inner_jitable
def _refuse_channels(channels, groups, wanted):
    raise FormattedValueError("filters with {} channels in {} groups do not fit {} channels", channels, groups, wanted)


@inner_jitable
def _refuse_samples(samples, channels, wanted_samples, wanted_channels):
    raise FormattedValueError(
        "y has {} samples, {} channels; it must have {}, {}", samples, channels, wanted_samples, wanted_channels
    )


@inner_jitable
def _refuse_size(size, wanted):
    raise FormattedValueError("y has size {} in space where the convolution has {}", size, wanted)


@njit
def conv(
    x: Array,
    w: Array,
    stride: Setting = 1,
    pad: Setting = 0,
    dilation: Setting = 1,
    groups: int = 1,
    flipped: bool = False,
    out: Array | None = None,
) -> Array:
    """Convolution of images with filters.

    Args:
        x: images of shape (batch, channels, …) with one, two or three axes of space; images and filters may be complex.
        w: filters of shape (filters, channels / groups, …).
        stride: distance between outputs in elements: an integer, or one for each axis of space.
        pad: zeros around the images: an integer, one for each axis, or two for each axis, before and after it.
        dilation: distance between the elements of a filter: an integer, or one for each axis.
        groups: number of groups of channels; each filter sees one group.
        flipped: whether filters are applied as they are stored (cross-correlation, as in PyTorch). Otherwise they are
            flipped along the axes of space, as the definition of a convolution says.
        out: where the result is written to, a contiguous array of its shape and type that shares no memory with the
            arguments; by default a new array.

    Returns:
        ``out``, or a new array, of shape (batch, filters, …).

    Raises:
        ValueError: the shapes do not fit each other, or a size is not positive.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> x, w = np.array([[[1.0, 2.0, 3.0, 4.0]]]), np.array([[[1.0, -1.0]]])
        >>> irad.nn.conv(x, w)
        array([[[1., 1., 1.]]])
        >>> irad.nn.conv(x, w, stride=2, pad=(1, 0), flipped=True)
        array([[[-1., -1.]]])
    """
    given, w = floats_or_complex("conv", x, w)
    _check_channels(given.shape[1], w.shape, groups)
    count, axes = w.shape[0], w.shape[2:]
    x, w = images(given, groups), filters(w, groups)
    settings = (triple(stride, axes), paddings(pad, axes), triple(dilation, axes), np.int64(groups), bool(flipped))
    sizes = sizes_of_output(three(x.shape), three(w.shape), settings[0], settings[1], settings[2])
    require_apart(out, x)
    require_apart(out, w)
    y = zeros("conv", out, shape_like(x.shape, x.shape[0], w.shape[0], sizes), x)
    add_conv(with_three(y), with_three(x), with_three(w), settings, np.empty(0, y.dtype))
    return images_like(y, shape_like(x.shape, x.shape[0], count, sizes), groups, given)


@njit
def conv_data(
    y: Array,
    w: Array,
    shape: tuple[int, ...],
    stride: Setting = 1,
    pad: Setting = 0,
    dilation: Setting = 1,
    groups: int = 1,
    flipped: bool = False,
    out: Array | None = None,
) -> Array:
    """The adjoint of `irad.nn.conv` with respect to its images, also known as transposed convolution.

    The adjoint of a complex convolution multiplies by the conjugates of the filters.

    Args:
        y: the result of a convolution, or a cotangent of it.
        w: filters of the convolution.
        shape: shape of its images: (batch, channels, …).
        stride: stride of the convolution.
        pad: padding of the convolution.
        dilation: dilation of the convolution.
        groups: groups of the convolution.
        flipped: whether the convolution applies filters as they are stored.
        out: where the result is written to, a contiguous array of its shape and type that shares no memory with the
            arguments; by default a new array.

    Returns:
        ``out``, or a new array, of that shape.

    Raises:
        ValueError: ``y`` does not have the shape that the convolution gives.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> irad.nn.conv_data(np.array([[[1.0, 10.0]]]), np.array([[[2.0, 3.0]]]), (1, 1, 4), stride=2, flipped=True)
        array([[[ 2.,  3., 20., 30.]]])
    """
    given, w = floats_or_complex("conv_data", y, w)
    _check_channels(shape[1], w.shape, groups)
    count, axes = w.shape[0], w.shape[2:]
    y, w = images(given, groups), filters(w, groups)
    settings = (triple(stride, axes), paddings(pad, axes), triple(dilation, axes), np.int64(groups), bool(flipped))
    sizes = three(shape)
    found = sizes_of_output(sizes, three(w.shape), settings[0], settings[1], settings[2])
    _check_output(given.shape, shape[0], count, found)
    require_apart(out, y)
    require_apart(out, w)
    x = zeros("conv_data", out, shape_like(y.shape, shape[0], shape[1] * parts(given), sizes), y)
    add_data(with_three(x), with_three(y), with_three(w), settings, np.empty(0, y.dtype))
    return images_like(x, shape, groups, given)


@njit
def conv_filter(
    x: Array,
    y: Array,
    shape: tuple[int, ...],
    stride: Setting = 1,
    pad: Setting = 0,
    dilation: Setting = 1,
    groups: int = 1,
    flipped: bool = False,
    out: Array | None = None,
) -> Array:
    """The adjoint of `irad.nn.conv` with respect to its filters.

    The adjoint of a complex convolution multiplies by the conjugates of the images.

    Args:
        x: images of the convolution.
        y: the result of the convolution, or a cotangent of it.
        shape: shape of its filters: (filters, channels / groups, …).
        stride: stride of the convolution.
        pad: padding of the convolution.
        dilation: dilation of the convolution.
        groups: groups of the convolution.
        flipped: whether the convolution applies filters as they are stored.
        out: where the result is written to, a contiguous array of its shape and type that shares no memory with the
            arguments; by default a new array.

    Returns:
        ``out``, or a new array, of that shape.

    Raises:
        ValueError: ``y`` does not have the shape that the convolution gives.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> x, y = np.array([[[1.0, 2.0, 3.0]]]), np.array([[[1.0, 10.0]]])
        >>> irad.nn.conv_filter(x, y, (1, 1, 2), flipped=True)
        array([[[21., 32.]]])
    """
    x, given = floats_or_complex("conv_filter", x, y)
    _check_channels(x.shape[1], shape, groups)
    x, y, axes = images(x, groups), images(given, groups), shape[2:]
    settings = (triple(stride, axes), paddings(pad, axes), triple(dilation, axes), np.int64(groups), bool(flipped))
    sizes = three(shape)
    found = sizes_of_output(three(x.shape), sizes, settings[0], settings[1], settings[2])
    _check_output(given.shape, x.shape[0], shape[0], found)
    require_apart(out, x)
    require_apart(out, y)
    w = zeros("conv_filter", out, shape_like(x.shape, shape[0] * parts(given), shape[1] * parts(given), sizes), x)
    add_filter(with_three(w), with_three(x), with_three(y), settings, np.empty(0, y.dtype))
    return filters_like(w, shape, groups, given)


@njit
def depthwiseconv(
    x: Array,
    w: Array,
    stride: Setting = 1,
    pad: Setting = 0,
    dilation: Setting = 1,
    flipped: bool = False,
    out: Array | None = None,
) -> Array:
    """Convolution of each channel with filters of its own.

    Args:
        x: images of shape (batch, channels, …).
        w: filters of shape (channels * multiplier, 1, …): ``multiplier`` filters for each channel.
        stride: distance between outputs, as in `irad.nn.conv`.
        pad: zeros around the images, as in `irad.nn.conv`.
        dilation: distance between the elements of a filter, as in `irad.nn.conv`.
        flipped: whether filters are applied as they are stored, as in `irad.nn.conv`.
        out: where the result is written to, a contiguous array of its shape and type that shares no memory with the
            arguments; by default a new array.

    Returns:
        ``out``, or a new array, of shape (batch, channels * multiplier, …).

    Raises:
        ValueError: the shapes do not fit each other, or a size is not positive.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> irad.nn.depthwiseconv(np.ones((1, 2, 3)), np.array([[[1.0, 1.0]], [[2.0, 2.0]]])).tolist()
        [[[2.0, 2.0], [4.0, 4.0]]]
    """
    x, w = floats_or_complex("depthwiseconv", x, w)
    return conv(x, w, stride, pad, dilation, x.shape[1], flipped, out)
