"""A tridiagonal system by elimination (Thomas), loss on its solution."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from bench.case import Case, Size


@njit(error_model="numpy")
def loss(lower, diagonal, upper, right, target):
    n = diagonal.size
    above = np.empty(n)
    x = np.empty(n)
    above[0] = upper[0] / diagonal[0]
    x[0] = right[0] / diagonal[0]
    for i in range(1, n):
        pivot = diagonal[i] - lower[i] * above[i - 1]
        above[i] = upper[i] / pivot
        x[i] = (right[i] - lower[i] * x[i - 1]) / pivot
    for i in range(n - 2, -1, -1):
        x[i] -= above[i] * x[i + 1]
    total = 0.0
    for i in range(n):
        total += (x[i] - target[i]) ** 2
    return 0.5 * total


@njit(error_model="numpy")
def hand(lower, diagonal, upper, right, target):
    """The transposed system is solved with the pivots of the elimination; all gradients are products with that."""
    n = diagonal.size
    above, inverse, x = np.empty(n), np.empty(n), np.empty(n)
    inverse[0] = 1.0 / diagonal[0]
    above[0] = upper[0] * inverse[0]
    x[0] = right[0] * inverse[0]
    for i in range(1, n):
        inverse[i] = 1.0 / (diagonal[i] - lower[i] * above[i - 1])
        above[i] = upper[i] * inverse[i]
        x[i] = (right[i] - lower[i] * x[i - 1]) * inverse[i]
    for i in range(n - 2, -1, -1):
        x[i] -= above[i] * x[i + 1]
    total = 0.0
    right_bar = np.empty(n)
    before = 0.0
    for i in range(n):
        difference = x[i] - target[i]
        total += difference * difference
        before = difference - (above[i - 1] * before if i > 0 else 0.0)
        right_bar[i] = before
    lower_bar, diagonal_bar, upper_bar = np.empty(n), np.empty(n), np.empty(n)
    after = 0.0
    for i in range(n - 1, -1, -1):
        after = (right_bar[i] - (lower[i + 1] * after if i < n - 1 else 0.0)) * inverse[i]
        right_bar[i] = after
        diagonal_bar[i] = -after * x[i]
        lower_bar[i] = -after * x[i - 1] if i > 0 else 0.0
        upper_bar[i] = -after * x[i + 1] if i < n - 1 else 0.0
    return 0.5 * total, (lower_bar, diagonal_bar, upper_bar, right_bar)


def make(size: Size) -> tuple[Any, ...]:
    """Diagonally dominant rows."""
    n = {"small": 6, "medium": 2_000, "full": 100_000}[size]
    rng = np.random.default_rng(8)
    return (
        rng.uniform(-1.0, 1.0, n),
        rng.uniform(3.0, 4.0, n),
        rng.uniform(-1.0, 1.0, n),
        *rng.standard_normal((2, n)),
    )


CASE = Case("thomas", "tridiagonal system of 100,000 by elimination", loss, hand, make, (0, 1, 2, 3))
