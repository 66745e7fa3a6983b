"""Functions of irad.nn in a caller's parallel loop: value and gradient of a plain one, for shared operands."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import get_num_threads, njit, prange, set_num_threads

import irad
from irad import nn

_RANDOM = np.random.default_rng(11)


def _draw(*shape: int) -> Any:
    return _RANDOM.standard_normal(shape)


def _layers(x, w, kernel, indices):
    """Samples are independent; weights, filters and indices are shared by the threads."""
    total = 0.0
    for n in prange(x.shape[0]):
        seen = nn.conv(x[n : n + 1], kernel, 1, 1, 1, 1, True)
        tokens = nn.batched_mul(seen.reshape(seen.shape[0], seen.shape[1], -1), w, False, False)
        scores = nn.softmax(nn.layernorm(tokens[0], np.ones(tokens.shape[2]), np.zeros(tokens.shape[2])), 1)
        total += (nn.scatter("*", np.ones((2, scores.shape[1])), scores, indices) ** 2).sum() * (n + 1)
    return total


@pytest.fixture
def two_threads():
    before = get_num_threads()
    set_num_threads(min(2, before))
    yield
    set_num_threads(before)


def test_a_parallel_loop_over_samples(two_threads: None):
    arguments = _draw(6, 2, 4, 4), _draw(1, 16, 3), _draw(4, 2, 3, 3), np.array([0, 1, 0, 1])
    value, slopes = irad.value_and_grad(njit(_layers), argnums=(0, 1, 2))(*arguments)
    parallel = irad.value_and_grad(njit(parallel=True)(_layers), argnums=(0, 1, 2))
    for _ in range(3):
        found, by_arguments = parallel(*arguments)
        assert found == pytest.approx(value, rel=1e-12)
        for mine, wanted in zip(by_arguments, slopes, strict=True):
            np.testing.assert_allclose(mine, wanted, rtol=1e-10, atol=1e-12)
    direction = [_RANDOM.standard_normal(each.shape) for each in arguments[:3]]
    above, below = (
        _layers(*(a + step * d for a, d in zip(arguments[:3], direction, strict=True)), arguments[3])
        for step in (1e-6, -1e-6)
    )
    along = sum((slope * d).sum() for slope, d in zip(slopes, direction, strict=True))
    assert along == pytest.approx((above - below) / 2e-6, rel=1e-6)
