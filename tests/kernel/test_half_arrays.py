"""Arrays of float16 have shadows in kernels."""

from __future__ import annotations

import numpy as np
from numba import cuda

import irad
import irad.cuda


def test_the_gradient_of_an_array_of_halves():
    @cuda.jit
    def kernel(x, y):
        i = cuda.grid(1)
        if i < x.size:
            y[i] = x[i] * x[i]

    x = np.array([-2.0, 0.5, 3.0, 0.0], np.float16)
    value, shadow, seed = np.zeros_like(x), np.zeros_like(x), np.full_like(x, 2.0)
    with irad.cuda.executor(races=True):
        irad.cuda.grad(kernel)[1, 32](irad.Duplicated(x, shadow), irad.Duplicated(value, seed))
    assert shadow.dtype == np.float16
    np.testing.assert_array_equal(value, x * x)
    np.testing.assert_array_equal(shadow, 4.0 * x)
