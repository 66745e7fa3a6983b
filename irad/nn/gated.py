"""Functions around an activation: with a bias for each channel, and gated linear units."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba import njit

from irad.frontend.operands import floats
from irad.nn.activations import sigmoid
from irad.nn.array import Array
from irad.nn.shapes import around, with_size


@njit
def bias_act(f: Callable[..., float], x: Array, b: Array) -> Array:
    """f(x + b), computed in one pass, where ``b`` has an element for each channel.

    Args:
        f: an activation, such as `irad.nn.relu`, or a compiled function of a number.
        x: (batch, channels, …).
        b: (channels,).

    Examples:
        >>> import irad, numpy as np
        >>> irad.nn.bias_act(irad.nn.relu, np.zeros((1, 2)), np.array([-1.0, 1.0]))
        array([[0., 1.]])
    """
    x, b = floats("bias_act", x, b)
    before, channels, after = around(x.shape, 1)
    if b.size != channels:
        _refuse_biases(b.size, channels)
    y, source = np.empty(x.shape, x.dtype), x.reshape(before, channels, after)
    each = y.reshape(before, channels, after)
    for i in range(before):
        for c in range(channels):
            for k in range(after):
                each[i, c, k] = f(source[i, c, k] + b[c])
    return y


@njit
def glu(x: Array, axis: int = -1) -> Array:
    """The first half of an array along an axis, times the `sigmoid` of the second half.

    Args:
        x: any number of axes.
        axis: the axis that is halved; its size is even.

    Examples:
        >>> import irad, numpy as np
        >>> irad.nn.glu(np.array([4.0, 6.0, 0.0, 0.0]))
        array([2., 3.])
    """
    x = floats("glu", x)
    before, along, after = around(x.shape, axis)
    if along % 2:
        _refuse_halves(along)
    half = along // 2
    y, source = np.empty(with_size(x.shape, axis, half), x.dtype), x.reshape(before, along, after)
    each = y.reshape(before, half, after)
    for i in range(before):
        for j in range(half):
            for k in range(after):
                each[i, j, k] = source[i, j, k] * sigmoid(source[i, half + j, k])
    return y


@njit
def _refuse_biases(biases, channels):
    raise ValueError(f"bias_act: {biases} biases for {channels} channels")


@njit
def _refuse_halves(along):
    raise ValueError(f"glu: {along} elements have no halves")
