"""Jacobi sweeps over a square with two arrays that take turns (PolyBench's jacobi-2d)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from bench.array_code.program import ArrayProgram


@njit
def loss(field, sweeps):
    a, b = field.copy(), field.copy()
    for _ in range(sweeps):
        b[1:-1, 1:-1] = 0.2 * (a[1:-1, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] + a[2:, 1:-1] + a[:-2, 1:-1])
        a[1:-1, 1:-1] = 0.2 * (b[1:-1, 1:-1] + b[1:-1, :-2] + b[1:-1, 2:] + b[2:, 1:-1] + b[:-2, 1:-1])
    return np.sum(a * a)


def make() -> tuple[Any, ...]:
    return np.random.default_rng(1).uniform(0.0, 1.0, (9, 8)), 3


PROGRAM = ArrayProgram("jacobi_2d", "two five-point averages a sweep", loss, make, (0,))
