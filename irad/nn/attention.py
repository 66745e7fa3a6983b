"""Scaled dot-product attention with several heads."""

from __future__ import annotations

import math

import numpy as np
from numba import njit, types

import irad
from irad.errors import HERE, SignatureError
from irad.frontend.custom.targets import inactive_in_irad
from irad.frontend.formatted import FormattedValueError
from irad.frontend.inner import inner_njit, inner_overload
from irad.frontend.operands import floats
from irad.nn.products import batched_mul, gemm
from irad.nn.random_masks import dropout
from irad.nn.shapes import Array, around
from irad.nn.softmaxes import softmax
from irad.nn.vector_math import exp_of_negative, inner_product, largest, sum_of
from irad.rules import AugmentedReturn, is_active

# Attention in tiles: no more than a tile of the matrix of weights exists at a time.
#
# For some queries and some keys a *tile* is made of scores, s = q · kᵀ + bias, minus infinity where masks say no.
# Values are added up with weights exp(s − top), where top is the largest score so far; when that grows, what there is
# is scaled down. At the end the sum of the weights divides, and its logarithm plus top is kept for each query. With it
# the reverse sweep makes the weights of any tile again.
#
# Source: Dao et al. 2022, "FlashAttention: Fast and Memory-Efficient Exact Attention with IO-Awareness".

QUERIES, KEYS = 64, 256  # of a tile, which with its operands stays in the cache of a core


@inner_njit(error_model="numpy")
def _exponentials(tile, shifts, rows, columns):
    """Replaces scores by exp(score − shift of the row)."""
    for i in range(rows):
        row = tile[i]
        for j in range(columns):
            row[j] = exp_of_negative(row[j] - shifts[i])


@irad.rules.augmented_primal(_exponentials)
def _exponentials_augmented(config, tile, shifts, rows, columns):
    _exponentials(tile.value, shifts.value, rows.value, columns.value)
    return AugmentedReturn(None, None, tile.value.copy())


@irad.rules.reverse(_exponentials)
def _exponentials_reverse(config, cotangent, tape, tile, shifts, rows, columns):
    if is_active(tile):
        for i in range(rows.value):
            for j in range(columns.value):
                tile.shadow[i, j] *= tape[i, j]
            if is_active(shifts):
                shifts.shadow[i] -= sum_of(tile.shadow[i, : columns.value])
    return None, None, None, None


@irad.rules.forward(_exponentials)
def _exponentials_forward(config, tile, shifts, rows, columns):
    _exponentials(tile.value, shifts.value, rows.value, columns.value)
    if is_active(tile):
        for i in range(rows.value):
            for j in range(columns.value):
                change = tile.tangent[i, j]
                if is_active(shifts):
                    change -= shifts.tangent[i]
                tile.tangent[i, j] = tile.value[i, j] * change


@inactive_in_irad
@inner_njit(error_model="numpy")
def _raise_tops(tops, tile, rows, columns):
    """Raises the largest score of each query to those of a tile. That these are subtracted changes no result."""
    for i in range(rows):
        tops[i] = max(tops[i], largest(tile[i, :columns]))


@inner_njit
def _place(x, n, h, token):
    """The number of the first element of a token."""
    return ((n * x.shape[1] + h) * x.shape[2] + token) * x.shape[3]


@inner_njit(error_model="numpy")
def _scores(tile, q, k, bias, mask, where, rows, columns, causal):
    """Fills a tile; ``where`` is (sample, head, first query, first key)."""
    n, h, first, start = where
    width = q.shape[3]
    at_q, at_k = _place(q, n, h, first), _place(k, n, h, start)
    gemm(False, True, rows, columns, width, 1.0, q, at_q, width, k, at_k, width, 0.0, tile, 0, KEYS)
    for i in range(rows):
        row = tile[i]
        if bias.size:
            added = bias[n % bias.shape[0], h % bias.shape[1], (first + i) % bias.shape[2]]
            for j in range(columns):
                row[j] += added[start + j]
        if mask.size:
            kept = mask[n % mask.shape[0], h % mask.shape[1], (first + i) % mask.shape[2]]
            for j in range(columns):
                row[j] = row[j] if kept[start + j] else -np.inf
        if causal:
            for j in range(max(first + i + 1 - start, 0), columns):
                row[j] = -np.inf


@inner_njit
def _count_of_keys(k, first, rows, causal):
    """Number of keys, from the first on, that some of these queries see."""
    return min(k.shape[2], first + rows) if causal else k.shape[2]


@inner_njit(error_model="numpy")
def attend(q, k, v, bias, mask, causal):
    """The sums of values, and for each query the logarithm of the sum of exponentials of its scores."""
    batch, heads, queries, width = q.shape[0], q.shape[1], q.shape[2], v.shape[3]
    out, logarithms = np.empty((batch, heads, queries, width), q.dtype), np.empty((batch, heads, queries), q.dtype)
    tile, tops, sums = np.empty((QUERIES, KEYS), q.dtype), np.empty(QUERIES, q.dtype), np.empty(QUERIES, q.dtype)
    for n in range(batch):
        for h in range(heads):
            for first in range(0, queries, QUERIES):
                rows = min(QUERIES, queries - first)
                part = out[n, h, first : first + rows]
                part[:] = 0.0
                tops[:], sums[:] = -np.inf, 0.0
                for start in range(0, _count_of_keys(k, first, rows, causal), KEYS):
                    columns = min(KEYS, k.shape[2] - start)
                    _scores(tile, q, k, bias, mask, (n, h, first, start), rows, columns, causal)
                    _add_tile(part, tile, tops, sums, rows, columns)
                    at_v, at_out = _place(v, n, h, start), _place(out, n, h, first)
                    gemm(
                        False, False, rows, width, columns,
                        1.0, tile, 0, KEYS, v, at_v, width, 1.0, out, at_out, width,
                    )  # fmt: skip
                _divide(part, logarithms[n, h, first : first + rows], tops, sums)
    return out, logarithms


@inner_njit(error_model="numpy")
def _add_tile(part, tile, tops, sums, rows, columns):
    """Scores become weights; sums of before are scaled to the new largest scores."""
    before = tops.copy()
    _raise_tops(tops, tile, rows, columns)
    shifts = np.empty_like(tops)
    for i in range(tops.size):  # np.where takes longer to compile than all else here
        shifts[i] = part.dtype.type(0.0) if tops[i] == -np.inf else tops[i]
    _exponentials(tile, shifts, rows, columns)
    for i in range(rows):
        factor = exp_of_negative(before[i] - shifts[i])
        if factor != 1.0:
            sums[i] *= factor
            for d in range(part.shape[1]):
                part[i, d] *= factor
        sums[i] += sum_of(tile[i, :columns])


@inner_njit(error_model="numpy")
def _divide(part, logarithms, tops, sums):
    """Sums become means. Queries that see no key have zeros, and an infinite logarithm, which makes weights zero."""
    for i in range(part.shape[0]):
        if sums[i] == 0.0:
            logarithms[i] = np.inf
            part[i] = 0.0
        else:
            logarithms[i] = tops[i] + np.log(sums[i])
            for d in range(part.shape[1]):
                part[i, d] /= sums[i]


@inner_njit(error_model="numpy")
def _add_cotangents(shadows, wanted, cotangent, kept, causal):
    """Adds the cotangents of queries, keys, values and biases, of those that are wanted."""
    q, k, _, _, bias, mask, _, _ = kept
    weights, changes = np.empty((QUERIES, KEYS), q.dtype), np.empty((QUERIES, KEYS), q.dtype)
    for n in range(q.shape[0]):
        for h in range(q.shape[1]):
            for start in range(0, k.shape[2], KEYS):
                columns = min(KEYS, k.shape[2] - start)
                for first in range(start // QUERIES * QUERIES if causal else 0, q.shape[2], QUERIES):
                    where, rows = (n, h, first, start), min(QUERIES, q.shape[2] - first)
                    _scores(weights, q, k, bias, mask, where, rows, columns, causal)
                    _add_of_tile(shadows, wanted, cotangent, kept, where, weights, changes, rows, columns)


@inner_njit(error_model="numpy")
def _add_of_tile(shadows, wanted, cotangent, kept, where, weights, changes, rows, columns):
    """Adds the contribution of a tile of scores, which become weights."""
    q, k, v, out, bias, _, logarithms, means = kept
    n, h, first, start = where
    _exponentials(weights, logarithms[n, h, first : first + rows], rows, columns)
    at_q, at_k, at_v, at_out = (
        _place(q, n, h, first),
        _place(k, n, h, start),
        _place(v, n, h, start),
        _place(out, n, h, first),
    )
    width, depth = v.shape[3], q.shape[3]
    if wanted[2]:
        gemm(
            True,
            False,
            columns,
            width,
            rows,
            1.0,
            weights,
            0,
            KEYS,
            cotangent,
            at_out,
            width,
            1.0,
            shadows[2],
            at_v,
            width,
        )
    if not (wanted[0] or wanted[1] or wanted[3]):
        return
    gemm(False, True, rows, columns, width, 1.0, cotangent, at_out, width, v, at_v, width, 0.0, changes, 0, KEYS)
    for i in range(rows):
        change, weight, mean = changes[i], weights[i], means[n, h, first + i]
        for j in range(columns):
            change[j] = weight[j] * (change[j] - mean)
        if wanted[3]:
            target = shadows[3][n % bias.shape[0], h % bias.shape[1], (first + i) % bias.shape[2]]
            for j in range(columns):
                target[start + j] += change[j]
    if wanted[0]:
        gemm(False, False, rows, depth, columns, 1.0, changes, 0, KEYS, k, at_k, depth, 1.0, shadows[0], at_q, depth)
    if wanted[1]:
        gemm(True, False, columns, depth, rows, 1.0, changes, 0, KEYS, q, at_q, depth, 1.0, shadows[1], at_k, depth)


@inner_njit(error_model="numpy")
def _products_of_rows(x, y):
    """⟨x, y⟩ along the last axis, for arrays with four axes."""
    out = np.empty(x.shape[:3], x.dtype)
    for n in range(x.shape[0]):
        for h in range(x.shape[1]):
            for i in range(x.shape[2]):
                out[n, h, i] = inner_product(x[n, h, i], y[n, h, i])
    return out


@irad.rules.augmented_primal(attend)
def _attend_augmented(config, q, k, v, bias, mask, causal):
    out, logarithms = attend(q.value, k.value, v.value, bias.value, mask.value, causal.value)
    kept = (
        q.value.copy() if config.overwritten[0] else q.value,
        k.value.copy() if config.overwritten[1] else k.value,
        v.value.copy() if config.overwritten[2] else v.value,
        out.copy(),
        bias.value.copy() if config.overwritten[3] else bias.value,
        mask.value.copy() if config.overwritten[4] else mask.value,
        logarithms.copy(),
    )
    return AugmentedReturn((out, logarithms), (np.zeros_like(out), np.zeros_like(logarithms)), kept)


@irad.rules.reverse(attend)
def _attend_reverse(config, cotangent, tape, q, k, v, bias, mask, causal):
    if is_active(cotangent):
        nowhere = np.empty((0, 0, 0, 0), tape[0].dtype)
        shadows = (
            q.shadow if is_active(q) else nowhere,
            k.shadow if is_active(k) else nowhere,
            v.shadow if is_active(v) else nowhere,
            bias.shadow if is_active(bias) else nowhere,
        )
        wanted = (is_active(q), is_active(k), is_active(v), is_active(bias) and bias.value.size > 0)
        means = _products_of_rows(cotangent[0], tape[3]) - cotangent[1]
        _add_cotangents(shadows, wanted, cotangent[0], (*tape, means), causal.value)
    return None, None, None, None, None, None


irad.rules.forward_from_body(attend)


@njit
def dot_product_attention(
    q: Array,
    k: Array,
    v: Array,
    bias: Array | None = None,
    mask: Array | None = None,
    causal: bool = False,
    scale: float | None = None,
    nheads: int = 1,
    fdrop: float | None = None,
) -> Array:
    """Scaled dot-product attention: means of values with the weights ``softmax(scale * q @ k.T + bias)``.

    Memory is proportional to the number of tokens, not to its square; for derivatives, too, unless weights are dropped.

    Args:
        q: queries of shape (batch, heads, queries, size); or (batch, queries, nheads * size), for all heads one after
            the other.
        k: keys of shape (batch, heads, keys, size), or (batch, keys, nheads * size).
        v: values of shape (batch, heads, keys, any size), or (batch, keys, nheads * any size).
        bias: summands of the scores, of shape (batch, heads, queries, keys), where each of the first three may be 1;
            None for zeros.
        mask: booleans of such a shape, true where the query sees the key; None if all keys are seen.
        causal: whether query i sees only the keys 0 to i.
        scale: factor of the scores; by default ``1 / sqrt(size)``.
        nheads: number of heads of queries, keys and values with three axes.
        fdrop: the probability with which each weight is dropped, by `irad.nn.dropout`; None or 0 to drop none.
            With a number all weights are in memory at once.

    Returns:
        A new array of shape (batch, heads, queries, size of a value), or (batch, queries, nheads * size of a value);
        zeros for queries that see no key.

    Raises:
        ValueError: the shapes do not fit each other, or ``fdrop`` is not between 0 and 1.
        SignatureError: the mask does not hold booleans, or the arrays have neither three nor four axes.

    Source:
        Vaswani et al.: Attention is all you need, NIPS 2017; in blocks as in Dao et al.: FlashAttention, NeurIPS 2022.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> q, k = np.zeros((1, 1, 2, 1)), np.zeros((1, 1, 2, 1))
        >>> irad.nn.dot_product_attention(q, k, np.array([[[[1.0], [3.0]]]]), causal=True).ravel()
        array([1., 2.])
    """
    q, k, v, bias = floats("dot_product_attention", q, k, v, bias)
    heads, keys, values = _in_heads(q, nheads), _in_heads(k, nheads), _in_heads(v, nheads)
    _check(heads.shape, keys.shape, values.shape)
    scaled = _times(heads, _factor(scale, heads.shape[3]))
    _check_mask(mask)
    added, kept = _or_none(bias, q.dtype.type(0.0)), _or_none(mask, True)
    _check_scores(added.shape, added.size, heads.shape, keys.shape)
    _check_scores(kept.shape, kept.size, heads.shape, keys.shape)
    if fdrop is None:
        return _side_by_side(attend(scaled, keys, values, added, kept, causal)[0], q)
    return _side_by_side(_means_of_dropped(scaled, keys, values, added, kept, causal, fdrop), q)


@njit
def dot_product_attention_scores(
    q: Array,
    k: Array,
    bias: Array | None = None,
    mask: Array | None = None,
    causal: bool = False,
    scale: float | None = None,
    nheads: int = 1,
    fdrop: float | None = None,
) -> Array:
    """The weights of `irad.nn.dot_product_attention`, which computes them in parts and does not return them.

    Args:
        q: queries, as in `irad.nn.dot_product_attention`.
        k: keys.
        bias: summands of the scores.
        mask: booleans, true where the query sees the key.
        causal: whether query i sees only the keys 0 to i.
        scale: factor of the scores; by default ``1 / sqrt(size)``.
        nheads: number of heads of queries and keys with three axes.
        fdrop: the probability with which each weight is dropped; None or 0 to drop none.

    Returns:
        A new array of shape (batch, heads, queries, keys). Without dropped weights each row adds up to one; rows of
        queries that see no key are zero.

    Raises:
        ValueError: the shapes do not fit each other, or ``fdrop`` is not between 0 and 1.
        SignatureError: the mask does not hold booleans, or the arrays have neither three nor four axes.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> q = np.zeros((1, 2, 1))
        >>> irad.nn.dot_product_attention_scores(q, q, causal=True)
        array([[[[1. , 0. ],
                 [0.5, 0.5]]]])
    """
    q, k, bias = floats("dot_product_attention_scores", q, k, bias)
    heads, keys = _in_heads(q, nheads), _in_heads(k, nheads)
    _check(heads.shape, keys.shape, keys.shape)
    scaled = _times(heads, _factor(scale, heads.shape[3]))
    _check_mask(mask)
    added, kept = _or_none(bias, q.dtype.type(0.0)), _or_none(mask, True)
    _check_scores(added.shape, added.size, heads.shape, keys.shape)
    _check_scores(kept.shape, kept.size, heads.shape, keys.shape)
    return _dropped(_weights(scaled, keys, added, kept, causal), fdrop)


@njit
def make_causal_mask(x: Array, axis: int = 2) -> Array:
    """A mask with which each token of a sequence sees itself and those before it.

    ``causal=True`` of `irad.nn.dot_product_attention` has the same effect without a mask in memory.

    Args:
        x: an array, of which only a size counts.
        axis: the axis of tokens: 2 for queries with four axes, 1 for those with three.

    Returns:
        A new array of booleans of shape (1, 1, n, n) for n tokens: true at (0, 0, i, j) where j ≤ i.

    Raises:
        IndexError: the array has no such axis.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> irad.nn.make_causal_mask(np.zeros((3, 2)), axis=1)
        array([[[[ True, False],
                 [ True,  True]]]])
    """
    tokens = around(x.shape, axis)[1]
    mask = np.zeros((1, 1, tokens, tokens), np.bool_)
    for i in range(tokens):
        for j in range(i + 1):
            mask[0, 0, i, j] = True
    return mask


def _in_heads(x, nheads):
    """Contiguous memory of shape (batch, heads, tokens, size); itself if it has four axes."""
    raise NotImplementedError("for compiled code")


@inner_overload(_in_heads)
def _compiled_in_heads(x, nheads):
    if x.ndim == 4:
        return _with_its_heads
    if x.ndim != 3:
        raise SignatureError(
            f"dot_product_attention: an array with {x.ndim} axes, where three or four are needed",
            "pass (batch, heads, tokens, size), or (batch, tokens, heads * size) and nheads=: x[np.newaxis]",
            "queries, keys and values are sequences of vectors",
            HERE,
        )
    return _split


def _with_its_heads(x, nheads):
    if nheads != 1 and nheads != x.shape[1]:
        _refuse_heads(nheads, x.shape[1])
    return x


@inner_njit
def _refuse_heads(nheads, heads):
    raise FormattedValueError("dot_product_attention: nheads is {} for arrays with an axis of {} heads", nheads, heads)


def _split(x, nheads):
    if nheads < 1 or x.shape[2] % nheads:
        raise FormattedValueError("dot_product_attention: {} numbers for each token, in {} heads", x.shape[2], nheads)
    out = np.empty((x.shape[0], nheads, x.shape[1], x.shape[2] // nheads), x.dtype)
    for n in range(x.shape[0]):
        for i in range(x.shape[1]):
            for h in range(nheads):
                for d in range(out.shape[3]):
                    out[n, h, i, d] = x[n, i, h * out.shape[3] + d]
    return out


def _side_by_side(out, q):
    """The results of all heads one after the other, where queries have three axes."""
    raise NotImplementedError("for compiled code")


@inner_overload(_side_by_side)
def _compiled_side_by_side(out, q):
    return (lambda out, q: out) if q.ndim == 4 else (lambda out, q: _joined(out))


@inner_njit
def _joined(x):
    out = np.empty((x.shape[0], x.shape[2], x.shape[1] * x.shape[3]), x.dtype)
    for n in range(x.shape[0]):
        for i in range(x.shape[2]):
            for h in range(x.shape[1]):
                for d in range(x.shape[3]):
                    out[n, i, h * x.shape[3] + d] = x[n, h, i, d]
    return out


@inner_njit
def _means_of_dropped(q, k, v, bias, mask, causal, fdrop):
    """Means of values with all weights in memory."""
    weights = _dropped(_weights(q, k, bias, mask, causal), fdrop)
    out = batched_mul(_pairs(weights), _pairs(v))
    return out.reshape(q.shape[0], q.shape[1], q.shape[2], v.shape[3])


def _dropped(weights, fdrop):
    raise NotImplementedError("for compiled code")


@inner_overload(_dropped)
def _compiled_dropped(weights, fdrop):
    if isinstance(fdrop, types.NoneType | types.Omitted):
        return lambda weights, fdrop: weights
    return lambda weights, fdrop: dropout(weights, fdrop)


@inner_njit
def _pairs(x):
    """Matrices of all samples and heads in one row."""
    return x.reshape(x.shape[0] * x.shape[1], x.shape[2], x.shape[3])


@inner_njit(error_model="numpy")
def _weights(q, k, bias, mask, causal):
    """All weights at once. A query that sees no key has zeros, and scores of zero, where softmax has a derivative."""
    pairs = batched_mul(_pairs(q), _pairs(k), False, True)
    scores = pairs.reshape(q.shape[0], q.shape[1], q.shape[2], k.shape[2])
    sees = np.ones(scores.shape[:3], np.bool_)
    for n in range(scores.shape[0]):
        for h in range(scores.shape[1]):
            for i in range(scores.shape[2]):
                sees[n, h, i] = _finish_scores(scores[n, h, i], bias, mask, (n, h, i), causal)
    weights = softmax(scores, 3)
    for n in range(scores.shape[0]):
        for h in range(scores.shape[1]):
            for i in range(scores.shape[2]):
                if not sees[n, h, i]:
                    weights[n, h, i] = 0.0
    return weights


@inner_njit(error_model="numpy")
def _finish_scores(row, bias, mask, where, causal):
    """Adds the bias and applies masks, and returns whether the query sees a key; if it sees none, scores are zero."""
    n, h, i = where
    sees = False
    for j in range(row.size):
        if bias.size:
            row[j] += bias[n % bias.shape[0], h % bias.shape[1], i % bias.shape[2], j]
        hidden = mask.size and not mask[n % mask.shape[0], h % mask.shape[1], i % mask.shape[2], j]
        if hidden or (causal and j > i):
            row[j] = -np.inf
        sees = sees or row[j] != -np.inf
    if not sees:
        for j in range(row.size):
            row[j] = 0.0
    return sees


@inner_njit
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


@inner_overload(_check_mask)
def _compiled_check_mask(mask):
    if isinstance(mask, types.Array) and not isinstance(mask.dtype, types.Boolean):
        raise SignatureError(
            f"dot_product_attention: a mask of {mask.dtype}, where booleans are needed",
            "(a) pass numbers that are to be added to the scores as bias= or (b) pass a mask such as mask != 0",
            "a mask says which scores count; numbers would be ambiguous",
            HERE,
        )
    return lambda mask: None


@inner_njit
def _check_scores(shape, size, q, k):
    """Refuses a bias or mask that does not fit: it has the sizes of the scores, or 1; empty ones are none."""
    fits = shape[0] in (1, q[0]) and shape[1] in (1, q[1]) and shape[2] in (1, q[2]) and shape[3] == k[2]
    if size and not fits:
        raise ValueError("dot_product_attention: a bias or mask has not the shape of the scores")


@inner_njit
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


@inner_overload(_factor)
def _compiled_factor(scale, size):
    if isinstance(scale, types.NoneType | types.Omitted):
        return lambda scale, size: 1.0 / math.sqrt(max(size, 1))
    return lambda scale, size: scale


def _or_none(x, like):
    """A contiguous array with four axes; an empty one for None."""
    raise NotImplementedError("for compiled code")


@inner_overload(_or_none)
def _compiled_or_none(x, like):
    if isinstance(x, types.NoneType | types.Omitted):
        dtype = types.bool_ if isinstance(like, types.Boolean) else like
        return lambda x, like: np.empty((0, 0, 0, 0), dtype)
    return lambda x, like: np.ascontiguousarray(x)
