"""Explicit steps of the heat equation in a box with two arrays that take turns (PolyBench's heat-3d)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from bench.array_code.program import ArrayProgram


@njit
def loss(field, sweeps):
    a, b = field.copy(), field.copy()
    for _ in range(sweeps):
        b[1:-1, 1:-1, 1:-1] = (
            0.125 * (a[2:, 1:-1, 1:-1] - 2.0 * a[1:-1, 1:-1, 1:-1] + a[:-2, 1:-1, 1:-1])
            + 0.125 * (a[1:-1, 2:, 1:-1] - 2.0 * a[1:-1, 1:-1, 1:-1] + a[1:-1, :-2, 1:-1])
            + 0.125 * (a[1:-1, 1:-1, 2:] - 2.0 * a[1:-1, 1:-1, 1:-1] + a[1:-1, 1:-1, :-2])
            + a[1:-1, 1:-1, 1:-1]
        )
        a[1:-1, 1:-1, 1:-1] = (
            0.125 * (b[2:, 1:-1, 1:-1] - 2.0 * b[1:-1, 1:-1, 1:-1] + b[:-2, 1:-1, 1:-1])
            + 0.125 * (b[1:-1, 2:, 1:-1] - 2.0 * b[1:-1, 1:-1, 1:-1] + b[1:-1, :-2, 1:-1])
            + 0.125 * (b[1:-1, 1:-1, 2:] - 2.0 * b[1:-1, 1:-1, 1:-1] + b[1:-1, 1:-1, :-2])
            + b[1:-1, 1:-1, 1:-1]
        )
    return np.sum(a * a)


def make() -> tuple[Any, ...]:
    return np.random.default_rng(2).uniform(0.0, 1.0, (6, 5, 7)), 2


PROGRAM = ArrayProgram("heat_3d", "two seven-point stencils a step", loss, make, (0,))
