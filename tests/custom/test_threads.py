"""Rules in parallel loops and in several threads: one tape for each call."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numba import njit, prange

import irad
from irad import rules
from irad.rules import AugmentedReturn


@njit
def squares(a):
    return a * a


@pytest.fixture(autouse=True)
def rule():
    @rules.augmented_primal(squares)
    def augmented(config, a):
        return AugmentedReturn(a.value * a.value, np.zeros_like(a.value), a.value * 2.0)

    @rules.reverse(squares)
    def reverse(config, cotangent, tape, a):
        a.shadow[:] += cotangent * tape

    yield
    rules.remove(squares)


def test_in_a_parallel_loop():
    @njit(parallel=True)
    def f(m):
        total = 0.0
        for i in prange(m.shape[0]):
            row = squares(squares(m[i] + 1.0))
            total += row.sum()
        return total

    m = np.linspace(0.0, 1.0, 60).reshape(20, 3)
    np.testing.assert_allclose(irad.grad(f)(m), 4.0 * (m + 1.0) ** 3, rtol=1e-14)


def test_in_threads():
    @njit(nogil=True)
    def f(a, n):
        total = 0.0
        for i in range(n):
            total += squares(a * (i + 1)).sum()
        return total

    derivative = irad.grad(f)

    def run(scale: int) -> bool:
        a = np.full(50, float(scale))
        return bool(np.allclose(derivative(a, 20), 2.0 * a * sum((i + 1) ** 2 for i in range(20))))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(run, range(200)))
