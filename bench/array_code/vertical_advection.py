"""Implicit vertical advection of a weather model: a tridiagonal system in each column, solved level by level."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from bench.array_code.program import ArrayProgram


@njit
def loss(tendency, stage, wind, position, forcing, rate):
    tendency = tendency.copy()
    rows, columns, levels = tendency.shape
    upper = np.empty((rows, columns, levels))
    right = np.empty((rows, columns, levels))
    found = np.empty((rows, columns))

    for k in range(1):
        below = 0.25 * (wind[1:, :, k + 1] + wind[:-1, :, k + 1])
        explicit_below = below * 0.5
        upper[:, :, k] = below * 0.5
        middle = rate - upper[:, :, k]
        correction = -explicit_below * (stage[:, :, k + 1] - stage[:, :, k])
        right[:, :, k] = rate * position[:, :, k] + forcing[:, :, k] + tendency[:, :, k] + correction
        factor = 1.0 / middle
        upper[:, :, k] = upper[:, :, k] * factor
        right[:, :, k] = right[:, :, k] * factor

    for k in range(1, levels - 1):
        above = -0.25 * (wind[1:, :, k] + wind[:-1, :, k])
        below = 0.25 * (wind[1:, :, k + 1] + wind[:-1, :, k + 1])
        explicit_above = above * 0.5
        explicit_below = below * 0.5
        lower = above * 0.5
        upper[:, :, k] = below * 0.5
        middle = rate - lower - upper[:, :, k]
        correction = -explicit_above * (stage[:, :, k - 1] - stage[:, :, k]) - explicit_below * (
            stage[:, :, k + 1] - stage[:, :, k]
        )
        right[:, :, k] = rate * position[:, :, k] + forcing[:, :, k] + tendency[:, :, k] + correction
        factor = 1.0 / (middle - upper[:, :, k - 1] * lower)
        upper[:, :, k] = upper[:, :, k] * factor
        right[:, :, k] = (right[:, :, k] - right[:, :, k - 1] * lower) * factor

    for k in range(levels - 1, levels):
        above = -0.25 * (wind[1:, :, k] + wind[:-1, :, k])
        explicit_above = above * 0.5
        lower = above * 0.5
        middle = rate - lower
        correction = -explicit_above * (stage[:, :, k - 1] - stage[:, :, k])
        right[:, :, k] = rate * position[:, :, k] + forcing[:, :, k] + tendency[:, :, k] + correction
        factor = 1.0 / (middle - upper[:, :, k - 1] * lower)
        right[:, :, k] = (right[:, :, k] - right[:, :, k - 1] * lower) * factor

    for k in range(levels - 1, levels - 2, -1):
        level = right[:, :, k]
        found[:] = level
        tendency[:, :, k] = rate * (level - position[:, :, k])

    for k in range(levels - 2, -1, -1):
        level = right[:, :, k] - upper[:, :, k] * found[:, :]
        found[:] = level
        tendency[:, :, k] = rate * (level - position[:, :, k])
    return np.sum(tendency * tendency)


def make() -> tuple[Any, ...]:
    rng = np.random.default_rng(4)
    tendency, stage, position, forcing = (rng.uniform(0.0, 1.0, (4, 3, 5)) for _ in range(4))
    return tendency, stage, rng.uniform(0.0, 0.2, (5, 3, 5)), position, forcing, 0.15


PROGRAM = ArrayProgram("vadv", "a tridiagonal system in each column", loss, make, (0, 1, 2, 3, 4))
