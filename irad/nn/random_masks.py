"""dropout: the mask is the tape, a byte for each element, so the generator runs once."""

from __future__ import annotations

import numpy as np
from numba import njit

import irad
from irad.frontend.inner import inner_jitable, inner_njit
from irad.frontend.operands import floats
from irad.nn.shapes import Array
from irad.rules import AugmentedReturn, in_lanes, is_active


@njit
def dropout(x: Array, p: float, training: bool = True, per_channel: bool = False) -> Array:
    """Sets each element to zero with probability p, and divides the others by ``1 - p``.

    Random numbers come from ``np.random`` in compiled code: ``np.random.seed``, called in compiled code, makes them
    repeatable. There is no derivative with respect to ``p``, on which the expected value does not depend.

    Args:
        x: an array with any number of axes.
        p: the probability, from 0 to 1.
        training: whether elements are dropped at all.
        per_channel: whether each channel of an array of shape (batch, channels, …) is dropped or kept as a whole.

    Returns:
        A new array of the shape of ``x``.

    Raises:
        ValueError: ``p`` is not between 0 and 1.

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
    if not training or p == 0.0:
        return x.copy()
    count, repeats = _size(x.shape, per_channel)
    # A draw decides which elements stay, so the value has no derivative with respect to p.
    return _dropped(x.reshape(count, repeats), irad.stop_gradient(p)).reshape(x.shape)


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
def _masked(x, mask, p):
    """Kept elements divided by 1 − p; dropped ones are 0, also if they were infinite or NaN."""
    y = np.zeros_like(x)
    factor = x.dtype.type(1.0 / (1.0 - p))
    for i in range(x.shape[0]):
        if mask[i]:
            for j in range(x.shape[1]):
                y[i, j] = x[i, j] * factor
    return y


@inner_njit(error_model="numpy")
def _add_masked(sum_, x, mask, p):
    factor = x.dtype.type(1.0 / (1.0 - p))
    for i in range(x.shape[0]):
        if mask[i]:
            for j in range(x.shape[1]):
                sum_[i, j] += x[i, j] * factor


@inner_njit
def _dropped(x, p):
    return _masked(x, _mask(x.shape[0], p), p)


@irad.rules.augmented_primal(_dropped, batched=True)
def _dropped_augmented(config, x, p):
    mask = _mask(x.value.shape[0], p.value)
    y = _masked(x.value, mask, p.value)
    return AugmentedReturn(y, in_lanes(config, lambda lane: np.zeros_like(y)), mask)


@irad.rules.reverse(_dropped, batched=True)
def _dropped_reverse(config, cotangent, tape, x, p):
    if is_active(cotangent) and is_active(x):
        for lane in range(config.width):
            _add_masked(x.shadow[lane], cotangent[lane], tape, p.value)
    return None, None


@irad.rules.forward(_dropped, batched=True)
def _dropped_forward(config, x, p):
    mask = _mask(x.value.shape[0], p.value)
    return _masked(x.value, mask, p.value), in_lanes(config, lambda lane: _masked(x.tangent[lane], mask, p.value))
