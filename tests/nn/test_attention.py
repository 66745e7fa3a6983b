"""dot_product_attention."""

from __future__ import annotations

import resource
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import njit

import irad
from irad import nn
from tests.nn.checks import check, check_single

_RANDOM = np.random.default_rng(0)
_Q = _RANDOM.standard_normal((2, 2, 70, 3))  # more than one tile of queries, and of keys
_K, _V = _RANDOM.standard_normal((2, 2, 300, 3)), _RANDOM.standard_normal((2, 2, 300, 4))
_BIAS = _RANDOM.standard_normal((1, 2, 70, 300))
_PADDING = _RANDOM.random((2, 1, 1, 300)) > 0.3


def _weights(q: Any, k: Any, bias: Any = 0.0, mask: Any = True, causal: bool = False, scale: Any = None) -> Any:
    scores = q @ k.swapaxes(2, 3) * (1.0 / np.sqrt(q.shape[3]) if scale is None else scale) + bias
    seen = np.tril(np.ones(scores.shape[2:], bool)) if causal else True
    scores = np.where(np.logical_and(mask, seen), scores, -np.inf)
    top = scores.max(-1, keepdims=True)
    weights = np.exp(scores - np.where(top == -np.inf, 0.0, top))
    total = weights.sum(-1, keepdims=True)
    return weights / np.where(total == 0.0, 1.0, total)


def _reference(q: Any, k: Any, v: Any, *settings: Any, **named: Any) -> Any:
    return _weights(q, k, *settings, **named) @ v


def test_every_mode_and_order():
    arguments = _Q, _K, _V, _BIAS, _PADDING, True, 0.7
    check(nn.dot_product_attention, *arguments, active=(0, 1, 2, 3), reference=_reference)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("shape", [(1, 1, 1, 300), (2, 2, 70, 300), (1, 2, 1, 300), (2, 1, 70, 300)])
def test_shapes_of_bias_and_mask(shape: Any, causal: bool):
    bias, mask = _RANDOM.standard_normal(shape), _RANDOM.random(shape) > 0.5
    check(
        *(nn.dot_product_attention, _Q, _K, _V, bias, mask, causal, 0.7),
        active=(0, 1, 2, 3), reference=_reference, second=False, forward=False,
    )  # fmt: skip


@pytest.mark.parametrize("sizes", [(1, 1), (64, 256), (65, 257), (300, 40), (0, 5), (5, 0)])
def test_edges_of_tiles(sizes: tuple[int, int]):
    q, k, v = (_RANDOM.standard_normal((1, 2, n, 3)) for n in (sizes[0], sizes[1], sizes[1]))
    for causal in (False, True):
        found = nn.dot_product_attention(q, k, v, causal=causal)
        wanted = _reference(q, k, v, causal=causal) if sizes[1] else np.zeros((1, 2, sizes[0], 3))
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-14)


def test_queries_that_see_nothing_and_the_scale():
    mask = np.ones((2, 1, 70, 300), bool)
    mask[1, 0, 3] = False
    mask[0] = False
    assert (nn.dot_product_attention(_Q, _K, _V, _BIAS, mask, False, 0.7)[0] == 0.0).all()

    def loss(q: Any, k: Any, v: Any, bias: Any, mask: Any, causal: bool, scale: float) -> Any:
        return nn.dot_product_attention(q, k, v, bias, mask, causal, scale).sum()

    gradient = irad.grad(loss, argnums=(0, 1, 2, 3, 6))(_Q, _K, _V, _BIAS, mask, False, 0.7)
    by_q, by_k, by_v, by_bias, by_scale = gradient
    for found in (by_q[0], by_k[0], by_v[0], by_q[1, :, 3], by_bias[0, :, 3]):
        assert (found == 0.0).all()
    for found in (by_q, by_k, by_v, by_bias):
        assert np.isfinite(found).all()
        assert np.abs(found).max() > 0.0
    above, below = (_reference(_Q, _K, _V, _BIAS, mask, False, 0.7 + step).sum() for step in (1e-5, -1e-5))
    np.testing.assert_allclose(by_scale, (above - below) / 2e-5, rtol=1e-6)


_SEES_NOTHING = np.ones((2, 1, 6, 5), bool)
_SEES_NOTHING[0, 0, 3] = False


def test_weights():
    """In both modes; those of a query that sees nothing are zero, as are their derivatives."""
    q, k, bias = _Q[:, :, :6], _K[:, :, :5], _BIAS[:, :, :6, :5].copy()
    bias[0, 1, 2] = -np.inf
    settings = _SEES_NOTHING, True, 0.7
    check(nn.dot_product_attention_scores, q, k, bias, *settings, active=(0, 1), reference=_weights, second=False)
    found = nn.dot_product_attention_scores(q, k, bias, *settings)
    assert (found[0, :, 3] == 0.0).all()
    assert (found[:, 1, 2] == 0.0).all()


@njit
def _both_with_dropped_weights(q, k, v, fdrop, nheads):
    """The result, and its weights, by the same draws."""
    np.random.seed(4)
    y = nn.dot_product_attention(q, k, v, None, None, True, 0.7, nheads, fdrop)
    np.random.seed(4)
    weights = nn.dot_product_attention_scores(q, k, None, None, True, 0.7, nheads, fdrop)
    return y, weights


@njit
def _with_dropped_weights(q, k, v, fdrop, nheads):
    return _both_with_dropped_weights(q, k, v, fdrop, nheads)[0]


def _in_a_row(x: Any) -> Any:
    return x.swapaxes(1, 2).reshape(x.shape[0], x.shape[2], -1)


def test_dropped_weights_of_heads_in_a_row():
    q, k, v = _Q[:, :, :6], _K[:, :, :5], _V[:, :, :5]
    y, weights = _both_with_dropped_weights(_in_a_row(q), _in_a_row(k), _in_a_row(v), 0.4, 2)
    wanted = _weights(q, k, causal=True, scale=0.7)
    kept = weights != 0.0
    assert 0 < kept.sum() < (wanted != 0.0).sum()
    np.testing.assert_allclose(weights, kept * wanted / 0.6, rtol=1e-12)
    np.testing.assert_allclose(y, _in_a_row(weights @ v), rtol=1e-12)
    arguments = *map(_in_a_row, (q, k, v)), 0.4, 2
    check(_with_dropped_weights, *arguments, active=(0, 1, 2), second=False, forward=False)


def test_heads_in_a_row():
    q, k, v = _Q[:, :, :6], _K[:, :, :5], _V[:, :, :5]
    y = nn.dot_product_attention(*map(_in_a_row, (q, k, v)), nheads=2)
    np.testing.assert_allclose(y, _in_a_row(_reference(q, k, v)), rtol=1e-12)
    with pytest.raises(ValueError, match="6 numbers for each token, in 4 heads"):
        nn.dot_product_attention(*map(_in_a_row, (q, k, v)), nheads=4)
    with pytest.raises(ValueError, match="nheads is 3 for arrays with an axis of 2 heads"):
        nn.dot_product_attention(q, k, v, nheads=3)
    with pytest.raises(irad.SignatureError, match="an array with 2 axes"):
        nn.dot_product_attention(q[0, 0], k[0, 0], v[0, 0])


def test_the_causal_mask():
    mask = nn.make_causal_mask(_Q)
    np.testing.assert_array_equal(mask, np.tril(np.ones((70, 70), bool))[None, None])
    np.testing.assert_array_equal(nn.make_causal_mask(_Q[0, :, :3], 1), mask[:, :, :3, :3])


def test_large_scores_do_not_overflow():
    q, k = np.full((1, 1, 1, 1), 1e5), np.array([1.0, -1.0]).reshape(1, 1, 2, 1)
    assert nn.dot_product_attention(q, k, k)[0, 0, 0, 0] == 1.0


def test_single_precision():
    check_single(nn.dot_product_attention, _Q, _K, _V, _BIAS, _PADDING, True, 0.7, active=(0, 1, 2, 3))


@njit
def _to_itself(x):
    return nn.dot_product_attention(x, x, x)


def _resident() -> int:
    """Bytes of memory that this process has."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the memory of a process is read from /proc")
def test_the_tape_does_not_grow_with_the_square_of_tokens():
    """And one array may be queries, keys and values."""
    x, cotangent, direction = _RANDOM.standard_normal((3, 1, 1, 5, 2))
    found = irad.vjp(_to_itself, x)[1](cotangent)
    found = found[0] if isinstance(found, tuple) else found
    above, below = (_reference(y, y, y) for y in (x + 1e-6 * direction, x - 1e-6 * direction))
    np.testing.assert_allclose((found * direction).sum(), (cotangent * (above - below)).sum() / 2e-6, rtol=1e-7)
    tokens = 3000
    x = _RANDOM.standard_normal((1, 1, tokens, 2))
    irad.vjp(_to_itself, x[:, :, :300])[1](x[:, :, :300])  # a version for many numbers takes memory, too
    before = _resident()
    _, pullback = irad.vjp(_to_itself, x)  # holds the tape
    assert _resident() - before < 8 * tokens * tokens / 20
    pullback(x)
    assert _resident() - before < 8 * tokens * tokens / 20


@pytest.mark.parametrize(
    ("k", "v", "bias", "message"),
    [
        ((2, 1, 4, 3), (2, 1, 4, 3), (1, 1, 1, 4), "differ in batch or heads"),
        ((2, 2, 4, 2), (2, 2, 4, 3), (1, 1, 1, 4), "differ in their last axis"),
        ((2, 2, 4, 3), (2, 2, 5, 3), (1, 1, 1, 4), "not as many keys as values"),
        ((2, 2, 4, 3), (2, 2, 4, 3), (1, 1, 2, 4), "not the shape of the scores"),
    ],
)
def test_what_is_refused(k: Any, v: Any, bias: Any, message: str):
    with pytest.raises(ValueError, match=message):
        nn.dot_product_attention(_Q, np.ones(k), np.ones(v), np.ones(bias), np.ones((1, 1, 1, 4), bool), False, 0.7)
