"""Scaled dot-product attention with several heads."""

from __future__ import annotations

import math

import numpy as np
from numba import njit, types
from numba.extending import overload

from irad.errors import HERE, SignatureError
from irad.frontend.operands import floats
from irad.nn.array import Array
from irad.nn.attention.tiles import attend


@njit
def dot_product_attention(
    q: Array,
    k: Array,
    v: Array,
    bias: Array | None = None,
    mask: Array | None = None,
    causal: bool = False,
    scale: float | None = None,
) -> Array:
    """Means of values, with weights softmax(scale · q · kᵀ + bias).

    Memory grows with the number of tokens, not with its square, for derivatives too.

    Args:
        q: queries, (batch, heads, queries, size).
        k: keys, (batch, heads, keys, size).
        v: values, (batch, heads, keys, any size).
        bias: is added to the scores; (batch, heads, queries, keys), where each of the first three may be 1; or None.
        mask: booleans of such a shape: whether the query sees the key; or None.
        causal: whether query i sees keys 0 to i only.
        scale: factor of the scores; 1 / √size unless given.

    Returns:
        (batch, heads, queries, size of a value); zeros for queries that see no key.

    Examples:
        >>> import irad, numpy as np
        >>> q, k = np.zeros((1, 1, 2, 1)), np.zeros((1, 1, 2, 1))
        >>> irad.nn.dot_product_attention(q, k, np.array([[[[1.0], [3.0]]]]), causal=True).ravel()
        array([1., 2.])
    """
    q, k, v, bias = floats("dot_product_attention", q, k, v, bias)
    _check(q.shape, k.shape, v.shape)
    scaled = _times(q, _factor(scale, q.shape[3]))
    _check_mask(mask)
    added, kept = _or_none(bias, q.dtype.type(0.0)), _or_none(mask, True)
    _check_scores(added.shape, added.size, q.shape, k.shape)
    _check_scores(kept.shape, kept.size, q.shape, k.shape)
    return attend(scaled, k, v, added, kept, causal)[0]


@njit
def _check(q, k, v):
    if q[0] != k[0] or q[0] != v[0] or q[1] != k[1] or q[1] != v[1]:
        raise ValueError("dot_product_attention: queries, keys and values differ in batch or heads")
    if q[3] != k[3]:
        raise ValueError("dot_product_attention: queries and keys differ in their last axis")
    if k[2] != v[2]:
        raise ValueError("dot_product_attention: there are not as many keys as values")


def _check_mask(mask):
    """Refuses a mask of numbers, which others add to the scores."""
    raise NotImplementedError("for compiled code")


@overload(_check_mask)
def _compiled_check_mask(mask):
    if isinstance(mask, types.Array) and not isinstance(mask.dtype, types.Boolean):
        raise SignatureError(
            f"dot_product_attention: a mask of {mask.dtype}, where booleans are needed",
            "(a) pass numbers that are to be added to the scores as bias= or (b) pass a mask such as mask != 0",
            "a mask says which scores count; numbers could mean either",
            HERE,
        )
    return lambda mask: None


@njit
def _check_scores(shape, size, q, k):
    """Whether a bias or mask fits: has the sizes of the scores, or 1; empty ones are none."""
    fits = shape[0] in (1, q[0]) and shape[1] in (1, q[1]) and shape[2] in (1, q[2]) and shape[3] == k[2]
    if size and not fits:
        raise ValueError("dot_product_attention: a bias or mask has not the shape of the scores")


@njit
def _times(q, scale):
    out = np.empty_like(q)
    for n in range(q.shape[0]):
        for h in range(q.shape[1]):
            for i in range(q.shape[2]):
                for d in range(q.shape[3]):
                    out[n, h, i, d] = q[n, h, i, d] * q.dtype.type(scale)
    return out


def _factor(scale, size):
    raise NotImplementedError("for compiled code")


@overload(_factor)
def _compiled_factor(scale, size):
    if isinstance(scale, types.NoneType | types.Omitted):
        return lambda scale, size: 1.0 / math.sqrt(max(size, 1))
    return lambda scale, size: scale


def _or_none(x, like):
    """A contiguous array with four axes; an empty one for None."""
    raise NotImplementedError("for compiled code")


@overload(_or_none)
def _compiled_or_none(x, like):
    if isinstance(x, types.NoneType | types.Omitted):
        dtype = types.bool_ if isinstance(like, types.Boolean) else like
        return lambda x, like: np.empty((0, 0, 0, 0), dtype)
    return lambda x, like: np.ascontiguousarray(x)
