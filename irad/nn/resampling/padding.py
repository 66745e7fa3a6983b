"""Padding: arrays that go on beyond their ends. One axis after the other, so corners are padding of padding."""

from __future__ import annotations

import numpy as np
from numba import njit, types
from numba.core.errors import NumbaTypeError

from irad.frontend.formatted import FormattedValueError
from irad.frontend.inner import inner_njit, inner_overload
from irad.frontend.operands import floats
from irad.nn.linear import CIRCULAR, CONSTANT, REFLECT, REPEAT, SYMMETRIC, add_along
from irad.nn.shapes import Array, around, with_size

_NAMES = ("pad_constant", "pad_repeat", "pad_reflect", "pad_symmetric", "pad_circular")


@njit
def pad_zeros(x: Array, pad: int | tuple[int, ...]) -> Array:
    """An array with zeros around it.

    Args:
        x: an array with any number of axes.
        pad: number of elements: one integer for both ends of every axis of space, which follow batch and channels; or
            the numbers before and after each of the last axes, as ``(before, after)``, ``(before, after, before,
            after)`` and so on.

    Returns:
        A new, larger array.

    Raises:
        ValueError: a number is negative.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> irad.nn.pad_zeros(np.array([1.0, 2.0, 3.0]), (1, 2))
        array([0., 1., 2., 3., 0., 0.])
    """
    return _pad(floats("pad_zeros", x), pad, CONSTANT, 0.0)


@njit
def pad_constant(x: Array, pad: int | tuple[int, ...], constant: float = 0.0) -> Array:
    """An array with a constant around it.

    Args:
        x: an array with any number of axes.
        pad: number of elements, as in `irad.nn.pad_zeros`.
        constant: the value of the new elements.

    Returns:
        A new, larger array.

    Raises:
        ValueError: a number of elements is negative.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> irad.nn.pad_constant(np.array([[1.0, 2.0]]), (0, 1, 1, 0), 8.0)
        array([[8., 1., 2.],
               [8., 8., 8.]])
    """
    return _pad(floats("pad_constant", x), pad, CONSTANT, constant)


@njit
def pad_repeat(x: Array, pad: int | tuple[int, ...]) -> Array:
    """An array whose first and last elements are repeated beyond its ends.

    Args:
        x: an array with any number of axes.
        pad: number of elements, as in `irad.nn.pad_zeros`.

    Returns:
        A new, larger array.

    Raises:
        ValueError: a number of elements is negative, or there is no element to repeat.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> irad.nn.pad_repeat(np.array([1.0, 2.0, 3.0]), (1, 2))
        array([1., 1., 2., 3., 3., 3.])
    """
    return _pad(floats("pad_repeat", x), pad, REPEAT, 0.0)


@njit
def pad_reflect(x: Array, pad: int | tuple[int, ...]) -> Array:
    """An array, mirrored at the centres of its first and last elements, which are not repeated.

    Args:
        x: an array with any number of axes; each is longer than its padding.
        pad: number of elements, as in `irad.nn.pad_zeros`.

    Returns:
        A new, larger array.

    Raises:
        ValueError: a number of elements is negative, or not smaller than the axis.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> irad.nn.pad_reflect(np.array([1.0, 2.0, 3.0]), (1, 2))
        array([2., 1., 2., 3., 2., 1.])
    """
    return _pad(floats("pad_reflect", x), pad, REFLECT, 0.0)


@njit
def pad_symmetric(x: Array, pad: int | tuple[int, ...]) -> Array:
    """An array, mirrored at its ends, so that its first and last elements are repeated.

    Args:
        x: an array with any number of axes; each is at least as long as its padding.
        pad: number of elements, as in `irad.nn.pad_zeros`.

    Returns:
        A new, larger array.

    Raises:
        ValueError: a number of elements is negative, or larger than the axis.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> irad.nn.pad_symmetric(np.array([1.0, 2.0, 3.0]), (1, 2))
        array([1., 1., 2., 3., 3., 2.])
    """
    return _pad(floats("pad_symmetric", x), pad, SYMMETRIC, 0.0)


@njit
def pad_circular(x: Array, pad: int | tuple[int, ...]) -> Array:
    """An array, continued periodically beyond its ends.

    Args:
        x: an array with any number of axes; each is at least as long as its padding.
        pad: number of elements, as in `irad.nn.pad_zeros`.

    Returns:
        A new, larger array.

    Raises:
        ValueError: a number of elements is negative, or larger than the axis.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> irad.nn.pad_circular(np.array([1.0, 2.0, 3.0]), (1, 2))
        array([3., 1., 2., 3., 1., 2.])
    """
    return _pad(floats("pad_circular", x), pad, CIRCULAR, 0.0)


def _margin(pad, side, axis, shape):
    """Padding before (side 0) or after (side 1) an axis, in elements."""
    raise NotImplementedError("for compiled code")


@inner_overload(_margin)
def _compiled_margin(pad, side, axis, shape):
    axes = len(shape)
    if isinstance(pad, types.Integer):
        if axes < 3:
            raise NumbaTypeError(
                f"pad: an integer pads the axes of space, which follow batch and channels; an array with {axes} axes "
                "has none: give (before, after) for each of its last axes"
            )
        return lambda pad, side, axis, shape: pad if axis > 1 else 0
    if not isinstance(pad, types.UniTuple) or len(pad) % 2 or len(pad) > 2 * axes:
        raise NumbaTypeError(
            f"pad: {pad}; it must be an integer, or integers before and after each of the last axes, of which there "
            f"are {axes}"
        )
    missing = 2 * axes - len(pad)
    return lambda pad, side, axis, shape: pad[2 * axis + side - missing] if 2 * axis >= missing else 0


@inner_njit
def _pad(x, pad, kind, constant):
    y = x.copy()
    for d in range(x.ndim):
        before, after = _margin(pad, 0, d, x.shape), _margin(pad, 1, d, x.shape)
        if before != 0 or after != 0:
            _check(kind, before, after, y.shape[d], d)
            y = _pad_along(y, d, before, after, kind, constant)
    return y


@inner_njit
def _pad_along(x, axis, before, after, kind, constant):
    sizes = around(x.shape, axis)
    y = np.zeros((sizes[0], before + sizes[1] + after, sizes[2]), x.dtype)
    if kind == CONSTANT:
        y[:, :before] = constant
        y[:, before + sizes[1] :] = constant
    add_along(y, x.reshape(sizes), (kind, before))
    return y.reshape(with_size(x.shape, axis, y.shape[1]))


@inner_njit
def _check(kind, before, after, size, axis):
    if before < 0 or after < 0:
        _refuse_negative(kind, before, after, axis)
    most = size - 1 if kind == REFLECT else size if kind != REPEAT or size == 0 else max(before, after)
    if kind != CONSTANT and max(before, after) > most:
        _refuse_size(kind, max(before, after), size, most, axis)


@inner_njit
def _refuse_negative(kind, before, after, axis):
    raise FormattedValueError(
        "{}: padding of {} before and {} after axis {} is negative", _NAMES[kind], before, after, axis
    )


@inner_njit
def _refuse_size(kind, pad, size, most, axis):
    raise FormattedValueError(
        "{}: axis {} of size {} can be padded by {} at most, not by {}", _NAMES[kind], axis, size, max(most, 0), pad
    )
