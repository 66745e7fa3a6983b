"""Upsampling of images, axis by axis: to the nearest element, or linearly between two."""

from __future__ import annotations

import numpy as np
from numba import njit, types
from numba.core.errors import NumbaTypeError

from irad.frontend.formatted import FormattedValueError
from irad.frontend.inner import inner_njit, inner_overload
from irad.frontend.operands import floats
from irad.nn.linear import LINEAR, LINEAR_CORNERS, NEAREST, add_along
from irad.nn.shapes import Array, around, with_size


@njit
def upsample_nearest(
    x: Array,
    scale: float | tuple[float, ...] | None = None,
    size: int | tuple[int, ...] | None = None,
) -> Array:
    """Images of another size, in which each element is the nearest one of the old image.

    Args:
        x: images of shape (batch, channels, …) with one to three axes of space.
        scale: ratio of the new size to the old: a number, or one for each axis of space. Sizes are rounded down.
        size: the new size instead: an integer, or one for each axis of space.

    Returns:
        New images of shape (batch, channels, …).

    Raises:
        ValueError: a new size is not positive, or an old one is zero.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> irad.nn.upsample_nearest(np.array([[[1.0, 2.0]]]), 2)
        array([[[1., 1., 2., 2.]]])
    """
    return _upsample(floats("upsample_nearest", x), scale, size, NEAREST)


@njit
def upsample_linear(
    x: Array,
    scale: float | tuple[float, ...] | None = None,
    size: int | tuple[int, ...] | None = None,
    align_corners: bool = True,
) -> Array:
    """Images of another size, interpolated linearly between the elements of the old ones.

    Where ``scale`` times a size is not an integer, positions follow the ratio of the sizes, as in PyTorch with
    ``recompute_scale_factor``.

    Args:
        x: images of shape (batch, channels, …) with one to three axes of space.
        scale: ratio of the new size to the old: a number, or one for each axis of space. Sizes are rounded down.
        size: the new size instead: an integer, or one for each axis of space.
        align_corners: whether the first and last elements stay in place. Otherwise elements are cells, and images are
            constant beyond the centres of the first and last cells (PyTorch's default).

    Returns:
        New images of shape (batch, channels, …).

    Raises:
        ValueError: a new size is not positive, or an old one is zero.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> x = np.array([[[0.0, 2.0]]])
        >>> irad.nn.upsample_linear(x, size=5)
        array([[[0. , 0.5, 1. , 1.5, 2. ]]])
        >>> irad.nn.upsample_linear(x, 2, align_corners=False)
        array([[[0. , 0.5, 1.5, 2. ]]])
    """
    return _upsample(floats("upsample_linear", x), scale, size, LINEAR_CORNERS if align_corners else LINEAR)


@njit
def upsample_bilinear(
    x: Array,
    scale: float | tuple[float, ...] | None = None,
    size: int | tuple[int, ...] | None = None,
    align_corners: bool = True,
) -> Array:
    """`irad.nn.upsample_linear` for images with two axes of space.

    Args:
        x: images of shape (batch, channels, height, width).
        scale: ratio of the new size to the old: a number, or a pair. Sizes are rounded down.
        size: the new size instead: an integer, or a pair.
        align_corners: whether the corners stay in place, as in `irad.nn.upsample_linear`.

    Returns:
        New images of shape (batch, channels, height, width).

    Raises:
        ValueError: the images have another number of axes, or a size is not positive.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> irad.nn.upsample_bilinear(np.array([[[[0.0, 2.0], [2.0, 4.0]]]]), size=3)[0, 0]
        array([[0., 1., 2.],
               [1., 2., 3.],
               [2., 3., 4.]])
    """
    x = floats("upsample_bilinear", x)
    _check_axes("upsample_bilinear", x.ndim, 2)
    return upsample_linear(x, scale, size, align_corners)


@njit
def upsample_trilinear(
    x: Array,
    scale: float | tuple[float, ...] | None = None,
    size: int | tuple[int, ...] | None = None,
    align_corners: bool = True,
) -> Array:
    """`irad.nn.upsample_linear` for images with three axes of space.

    Args:
        x: images of shape (batch, channels, depth, height, width).
        scale: ratio of the new size to the old: a number, or three. Sizes are rounded down.
        size: the new size instead: an integer, or three.
        align_corners: whether the corners stay in place, as in `irad.nn.upsample_linear`.

    Returns:
        New images of shape (batch, channels, depth, height, width).

    Raises:
        ValueError: the images have another number of axes, or a size is not positive.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> irad.nn.upsample_trilinear(np.arange(8.0).reshape(1, 1, 2, 2, 2), size=(1, 3, 2))[0, 0, 0]
        array([[0., 1.],
               [1., 2.],
               [2., 3.]])
    """
    x = floats("upsample_trilinear", x)
    _check_axes("upsample_trilinear", x.ndim, 3)
    return upsample_linear(x, scale, size, align_corners)


@inner_njit
def _check_axes(name, axes, space):
    if axes != space + 2:
        _refuse_axes(name, axes, space)


@inner_njit
def _refuse_axes(name, axes, space):
    raise FormattedValueError(
        "{}: an array with {} axes; batch, channels and {} axes of space are {}", name, axes, space, space + 2
    )


def _new_sizes(scale, size, shape):
    """The new sizes of the axes of space."""
    raise NotImplementedError("for compiled code")


@inner_overload(_new_sizes)
def _compiled_new_sizes(scale, size, shape):
    is_left_out = [isinstance(each, types.NoneType | types.Omitted) for each in (scale, size)]
    if is_left_out[0] == is_left_out[1]:
        raise NumbaTypeError("upsampling: give either a scale or a size")
    axes = len(shape) - 2
    if is_left_out[0]:
        _check_setting("size", size, types.Integer, axes)
        return _SIZES[axes - 1] if isinstance(size, types.Integer) else lambda scale, size, shape: size
    _check_setting("scale", scale, types.Number, axes)
    return (_SCALED_ALIKE if isinstance(scale, types.Number) else _SCALED)[axes - 1]


_SIZES = (
    lambda scale, size, shape: (size,),
    lambda scale, size, shape: (size, size),
    lambda scale, size, shape: (size, size, size),
)
_SCALED = (
    lambda scale, size, shape: (_scaled(shape[2], scale[0]),),
    lambda scale, size, shape: (_scaled(shape[2], scale[0]), _scaled(shape[3], scale[1])),
    lambda scale, size, shape: (
        _scaled(shape[2], scale[0]),
        _scaled(shape[3], scale[1]),
        _scaled(shape[4], scale[2]),
    ),
)
_SCALED_ALIKE = (
    lambda scale, size, shape: (_scaled(shape[2], scale),),
    lambda scale, size, shape: (_scaled(shape[2], scale), _scaled(shape[3], scale)),
    lambda scale, size, shape: (_scaled(shape[2], scale), _scaled(shape[3], scale), _scaled(shape[4], scale)),
)


@inner_njit
def _scaled(size, scale):
    return int(np.floor(size * scale))


def _check_setting(word: str, value: types.Type, number: type[types.Type], axes: int) -> None:
    each = [value] * axes if isinstance(value, number) else list(value) if isinstance(value, types.BaseTuple) else []
    if not 1 <= axes <= 3 or len(each) != axes or not all(isinstance(one, number) for one in each):
        raise NumbaTypeError(
            f"upsampling: {word} is {value} for an array with {axes + 2} axes; batch and channels must be followed by "
            "one to three axes of space, and there must be one number for all or for each of these"
        )


@inner_njit
def _upsample(x, scale, size, kind):
    y, sizes = x.copy(), _new_sizes(scale, size, x.shape)
    for d in range(2, x.ndim):
        new = sizes[d - 2]
        if new < 1 or x.shape[d] < 1:
            _refuse_size(d, x.shape[d], new)
        if new != x.shape[d]:
            y = _upsample_along(y, d, new, kind)
    return y


@inner_njit
def _upsample_along(x, axis, size, kind):
    sizes = around(x.shape, axis)
    y = np.zeros((sizes[0], size, sizes[2]), x.dtype)
    add_along(y, x.reshape(sizes), (kind, size - size))
    return y.reshape(with_size(x.shape, axis, size))


@inner_njit
def _refuse_size(axis, size, new):
    raise FormattedValueError(
        "upsampling: from size {} to size {} along axis {}; both must be positive", size, new, axis
    )
