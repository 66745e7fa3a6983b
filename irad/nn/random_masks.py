"""dropout: the mask is the tape, a byte for each element, so the generator runs once."""

from __future__ import annotations

import numpy as np
from numba import njit, types

import irad
from irad.frontend.inner import inner_jitable, inner_njit, inner_overload
from irad.frontend.operands import floats
from irad.nn.outputs import clear, empty, require_apart
from irad.nn.shapes import Array, Axes, around_axes, as_rows, axes_of, bring_axes, from_rows, overwrite, put_back
from irad.rules import AugmentedReturn, is_active


@njit
def dropout(
    x: Array,
    p: float,
    training: bool = True,
    per_channel: bool = False,
    axis: Axes = None,
    out: Array | None = None,
) -> Array:
    """Sets each element to zero with probability p, and divides the others by ``1 - p``.

    Random numbers come from ``np.random`` in compiled code: ``np.random.seed``, called in compiled code, makes them
    repeatable. There is no derivative with respect to ``p``, on which the expected value does not depend.

    Args:
        x: an array with any number of axes.
        p: the probability, from 0 to 1.
        training: whether elements are dropped at all.
        per_channel: whether each channel of an array of shape (batch, channels, …) is dropped or kept as a whole, as
            with the axes (0, 1).
        axis: the axes along which elements are drawn one by one, an integer or a tuple of several: those that differ
            only along others are dropped or kept together. By default each element has a draw of its own.
        out: where the result is written to, a contiguous array of its shape and type that shares no memory with the
            arguments; by default a new array.

    Returns:
        ``out``, or a new array, of the shape of ``x``.

    Raises:
        IndexError: the array has no such axis.
        ValueError: ``p`` is not between 0 and 1, an axis is given twice, or both it and ``per_channel`` are given.

    Source:
        Srivastava et al.: Dropout, JMLR 15 (2014) 1929-1958.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> sorted(set(irad.nn.dropout(np.ones(100), 0.75).tolist()))
        [0.0, 4.0]
    """
    if not 0.0 <= p <= 1.0:
        raise ValueError("dropout: p must be from 0 to 1")
    x = floats("dropout", x)
    y = empty("dropout", out, x.shape, x)
    require_apart(out, x)
    if not training or p == 0.0:
        overwrite(y, x)
    else:  # a draw decides which elements stay, so the value has no derivative with respect to p
        rows = _with_draws(x, per_channel, axis)
        dropped = _rows_of(y, rows, axis)
        _put_dropped(dropped, rows, irad.stop_gradient(p))
        _put_back(y, dropped, axis)
    return y


def _with_draws(x, per_channel, axis):
    """The array as a matrix with a draw for each row."""
    raise NotImplementedError("for compiled code")


def _rows_of(y, rows, axis):
    """A matrix for the result: memory of ``y`` where draws are for neighbours."""
    raise NotImplementedError("for compiled code")


def _put_back(y, rows, axis):
    """Overwrites the array that `_with_draws` turns into these rows."""
    raise NotImplementedError("for compiled code")


@inner_overload(_with_draws)
def _compiled_with_draws(x, per_channel, axis):
    if isinstance(axis, types.NoneType):
        return lambda x, per_channel, axis: x.reshape(_size(x.shape, per_channel))

    def along(x, per_channel, axis):
        if per_channel:
            raise ValueError("dropout: per_channel is short for axis=(0, 1), and another axis is given")
        return as_rows(bring_axes(x, _others(x.shape, axis)))

    return along


@inner_overload(_rows_of)
def _compiled_rows_of(y, rows, axis):
    if isinstance(axis, types.NoneType):
        return lambda y, rows, axis: y.reshape(rows.shape)
    return lambda y, rows, axis: np.empty(rows.shape, rows.dtype)


@inner_overload(_put_back)
def _compiled_put_back(y, rows, axis):
    if isinstance(axis, types.NoneType):
        return lambda y, rows, axis: None

    def along(y, rows, axis):
        others = _others(y.shape, axis)
        put_back(y, from_rows(rows, around_axes(y.shape, others)), others)

    return along


@inner_njit
def _others(shape, axis):
    """The set of axes along which elements share a draw."""
    return ~axes_of(shape, axis) & (1 << len(shape)) - 1


@inner_jitable
def _size(shape, per_channel):
    """Number of elements, or of channels, that are dropped or stay; and the size of each."""
    count, repeats = 1, 1
    for d, size in enumerate(shape):
        if per_channel and d >= 2:
            repeats *= size
        else:
            count *= size
    return count, repeats


@inner_njit
def _mask(count, p):
    mask = np.empty(count, np.bool_)
    for i in range(count):
        mask[i] = np.random.random() >= p
    return mask


@inner_njit(error_model="numpy")
def _put_masked(y, x, mask, p):
    """Kept elements divided by 1 − p; dropped ones are 0, also if they were infinite or NaN."""
    factor = x.dtype.type(1.0 / (1.0 - p))
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] * factor if mask[i] else x.dtype.type(0.0)


@inner_njit(error_model="numpy")
def _add_masked(sum_, x, mask, p):
    factor = x.dtype.type(1.0 / (1.0 - p))
    for i in range(x.shape[0]):
        if mask[i]:
            for j in range(x.shape[1]):
                sum_[i, j] += x[i, j] * factor


@inner_njit
def _put_dropped(y, x, p):
    _put_masked(y, x, _mask(x.shape[0], p), p)


@irad.rules.augmented_primal(_put_dropped, batched=True)
def _put_dropped_augmented(config, y, x, p):
    mask = _mask(x.value.shape[0], p.value)
    _put_masked(y.value, x.value, mask, p.value)
    return AugmentedReturn(None, None, mask)


@irad.rules.reverse(_put_dropped, batched=True)
def _put_dropped_reverse(config, cotangent, tape, y, x, p):
    if is_active(y):
        for lane in range(config.width):
            if is_active(x):
                _add_masked(x.shadow[lane], y.shadow[lane], tape, p.value)
            clear(y.shadow[lane])
    return None, None, None


@irad.rules.forward(_put_dropped, batched=True)
def _put_dropped_forward(config, y, x, p):
    mask = _mask(x.value.shape[0], p.value)
    _put_masked(y.value, x.value, mask, p.value)
    if is_active(y):
        for lane in range(config.width):
            if is_active(x):
                _put_masked(y.tangent[lane], x.tangent[lane], mask, p.value)
            else:
                clear(y.tangent[lane])
