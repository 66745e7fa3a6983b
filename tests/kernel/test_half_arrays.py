"""Arrays of float16 have shadows in kernels."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numba import cuda
from numba.core.types import float16

import irad
import irad.cuda

N = 8


def square(x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = x[i] * x[i]


def loop(x, y):
    """As many steps as it takes."""
    i = cuda.grid(1)
    if i < x.size:
        v = x[i]
        while v < float16(4.0):
            v = v * v + x[i]
        y[i] = v


def shared(x, y):
    tile = cuda.shared.array(N, float16)
    i = cuda.threadIdx.x
    tile[i] = x[i] * x[i]
    cuda.syncthreads()
    y[i] = tile[N - 1 - i] * x[i]


def functions(x, y):
    i = cuda.grid(1)
    if i < x.size:
        v = cuda.fp16.hmax(cuda.fp16.habs(x[i]), float16(0.5))
        y[i] = cuda.fp16.hfma(v, x[i], x[(i + 1) % N]) + cuda.fp16.hmin(v, float16(1.0))


def loop_of(x):
    def last(v, start):
        return last(v * v + start, start) if v < 4.0 else v

    return np.array([last(each, each) for each in x])


def functions_of(x):
    v = np.maximum(np.where(x < 0, -x, x), 0.5)
    return v * x + np.roll(x, -1) + np.minimum(v, 1.0)


CASES = [
    (square, lambda x: x * x),
    (loop, loop_of),
    (shared, lambda x: (x * x)[::-1] * x),
    (functions, functions_of),
]


@pytest.mark.parametrize(("kernel", "reference"), CASES, ids=lambda each: getattr(each, "__name__", ""))
def test_gradients(kernel: Callable[..., None], reference: Callable[[np.ndarray], np.ndarray]):
    x = np.array([-2.0, 0.75, 3.0, 0.625, -0.25, 1.25, -0.75, 5.0], np.float16)
    if kernel is loop:
        x = np.abs(x) + np.float16(0.5)
    weights = np.arange(1.0, N + 1.0)
    value, shadow, seed = np.zeros_like(x), np.zeros_like(x), weights.astype(np.float16)
    with irad.cuda.executor(races=True):
        irad.cuda.grad(cuda.jit(kernel))[1, N](irad.Duplicated(x, shadow), irad.Duplicated(value, seed))
    wide = x.astype(float)
    slopes = [(reference(wide + step) - reference(wide - step)) @ weights / 2e-6 for step in 1e-6 * np.eye(N)]
    assert shadow.dtype == np.float16
    np.testing.assert_allclose(value, reference(wide), rtol=2e-3)
    np.testing.assert_allclose(shadow, slopes, rtol=1e-2, atol=1e-2)
