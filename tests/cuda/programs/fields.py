"""Fields on grids in three dimensions."""

from __future__ import annotations

import numpy as np
from numba import cuda

from tests.cuda.case import Arguments, Case


def jacobi(u, source, h, result):
    """A step of Jacobi's method for Poisson's equation; the boundary keeps its values."""
    k, j, i = cuda.grid(3)
    if i >= u.shape[0] or j >= u.shape[1] or k >= u.shape[2]:
        return
    inner = 0 < i < u.shape[0] - 1 and 0 < j < u.shape[1] - 1 and 0 < k < u.shape[2] - 1
    if inner:
        around = u[i - 1, j, k] + u[i + 1, j, k] + u[i, j - 1, k] + u[i, j + 1, k] + u[i, j, k - 1] + u[i, j, k + 1]
        result[i, j, k] = (around + h * h * source[i, j, k]) / 6.0
    else:
        result[i, j, k] = u[i, j, k]


def jacobi_reference(u, source, h, result):
    result[:] = u
    around = u[:-2, 1:-1, 1:-1] + u[2:, 1:-1, 1:-1] + u[1:-1, :-2, 1:-1] + u[1:-1, 2:, 1:-1]
    around = around + u[1:-1, 1:-1, :-2] + u[1:-1, 1:-1, 2:]
    result[1:-1, 1:-1, 1:-1] = (around + h * h * source[1:-1, 1:-1, 1:-1]) / 6.0


def jacobi_arguments(rng: np.random.Generator) -> Arguments:
    shape = 4, 5, 6
    return rng.normal(size=shape), rng.normal(size=shape), 0.3, np.zeros(shape)


CASES = (Case(jacobi, jacobi_reference, jacobi_arguments, (2, 3, 2), (4, 2, 2), outputs=(3,), active=(0, 1, 2, 3)),)
