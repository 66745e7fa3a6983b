"""Pairs of elements: output o and element t of the filter use input o · stride + t · dilation − pad."""

from __future__ import annotations

import numpy as np
from numba import types

from irad.frontend.formatted import FormattedValueError
from irad.frontend.inner import inner_jitable, inner_overload

_ZERO, _ONE = np.int64(0), np.int64(1)  # literals would make tuples of mixed types


@inner_jitable
def valid(shift, stride, size_in, size_out):
    """The outputs lo ≤ o < hi whose input o · stride + shift exists."""
    lo = min(size_out, max(0, -(shift // stride)))
    return lo, max(lo, min(size_out, -((shift - size_in) // stride)))


@inner_jitable
def shift_of(tap, taps, dilation, pad, flipped):
    """Position of the input of an element of the filter, for output 0. A convolution flips its filter."""
    return (tap if flipped else taps - 1 - tap) * dilation - pad


@inner_jitable
def sizes_of_output(sizes, taps, stride, pad, dilation):
    """The three sizes of the output.

    Raises:
        ValueError: a setting makes no sense, or the filter is larger than the padded input.
    """
    return (
        _size(sizes[0], taps[0], stride[0], pad[0], pad[1], dilation[0]),
        _size(sizes[1], taps[1], stride[1], pad[2], pad[3], dilation[1]),
        _size(sizes[2], taps[2], stride[2], pad[4], pad[5], dilation[2]),
    )


@inner_jitable
def _size(size, taps, stride, before, after, dilation):
    if stride < 1 or dilation < 1 or taps < 1:
        _refuse_setting(stride, dilation, taps)
    if before < 0 or after < 0:
        _refuse_padding(before, after)
    room = size + before + after - (taps - 1) * dilation - 1
    if room < 0:
        _refuse_span((taps - 1) * dilation + 1, size, before + after)
    return room // stride + 1


@inner_jitable
def _refuse_setting(stride, dilation, taps):
    raise FormattedValueError("stride {}, dilation {} and size {} of a window must be positive", stride, dilation, taps)


@inner_jitable
def _refuse_padding(before, after):
    raise FormattedValueError("padding of {} before and {} after an axis is negative", before, after)


@inner_jitable
def _refuse_span(span, size, pad):
    raise FormattedValueError("a window that spans {} does not fit into {} + {} padding", span, size, pad)


def triple(value, count):
    """An integer for each of ``len(count)`` axes, or a tuple of as many, as three; ones come first."""
    raise NotImplementedError("for compiled code")


@inner_overload(triple)
def _triple(value, count):
    n = len(count)
    if isinstance(value, types.Integer):
        return (
            lambda value, count: (_ONE, _ONE, value),
            lambda value, count: (_ONE, value, value),
            lambda value, count: (value, value, value),
        )[n - 1]
    if not isinstance(value, types.BaseTuple) or len(value) != n:
        return None
    return (
        lambda value, count: (_ONE, _ONE, value[0]),
        lambda value, count: (_ONE, value[0], value[1]),
        lambda value, count: (value[0], value[1], value[2]),
    )[n - 1]


def paddings(value, count):
    """Padding before and after each of ``len(count)`` axes, as three pairs in a row; zeros come first.

    One integer, one for each axis, or two for each axis: before and after the first, before and after the second, ….
    """
    raise NotImplementedError("for compiled code")


@inner_overload(paddings)
def _paddings(value, count):
    n = len(count)
    if isinstance(value, types.Integer):
        return (
            lambda value, count: (_ZERO, _ZERO, _ZERO, _ZERO, value, value),
            lambda value, count: (_ZERO, _ZERO, value, value, value, value),
            lambda value, count: (value, value, value, value, value, value),
        )[n - 1]
    if isinstance(value, types.BaseTuple) and len(value) == n:
        return (
            lambda value, count: (_ZERO, _ZERO, _ZERO, _ZERO, value[0], value[0]),
            lambda value, count: (_ZERO, _ZERO, value[0], value[0], value[1], value[1]),
            lambda value, count: (value[0], value[0], value[1], value[1], value[2], value[2]),
        )[n - 1]
    if isinstance(value, types.BaseTuple) and len(value) == 2 * n:
        return (
            lambda value, count: (_ZERO, _ZERO, _ZERO, _ZERO, value[0], value[1]),
            lambda value, count: (_ZERO, _ZERO, value[0], value[1], value[2], value[3]),
            lambda value, count: (value[0], value[1], value[2], value[3], value[4], value[5]),
        )[n - 1]
    return None
