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


@njit(error_model="numpy", fastmath={"reassoc", "contract"})
def _eliminate_both(lower, diagonal, upper, right, above, inverse, x):
    """From the first row down and from the last row up, to the middle; returns the middle row.

    Below the middle, ``above`` has the factor of the unknown before.
    """
    n = diagonal.size
    middle = n // 2
    a, b, x_i, x_j = 0.0, 0.0, 0.0, 0.0
    for i in range(middle):
        j = n - 1 - i
        p = 1.0 / (diagonal[i] - lower[i] * a)
        a, x_i = upper[i] * p, (right[i] - lower[i] * x_i) * p
        above[i], inverse[i], x[i] = a, p, x_i
        if j > middle:
            q = 1.0 / (diagonal[j] - upper[j] * b)
            b, x_j = lower[j] * q, (right[j] - upper[j] * x_j) * q
            above[j], inverse[j], x[j] = b, q, x_j
    below, beyond = lower[middle] if middle > 0 else 0.0, upper[middle] if middle < n - 1 else 0.0
    inverse[middle] = 1.0 / (diagonal[middle] - below * a - beyond * b)
    x[middle] = (right[middle] - below * x_i - beyond * x_j) * inverse[middle]
    return middle


@njit(error_model="numpy", fastmath={"reassoc", "contract"})
def hand_opt(lower, diagonal, upper, right, target):
    """Elimination from both ends: the processor works on two recursions at once, each of which only waits.

    What the sweeps keep stands in the arrays of the gradients.
    """
    n = diagonal.size
    above, inverse, x, y = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    middle = _eliminate_both(lower, diagonal, upper, right, above, inverse, x)
    before, after = x[middle], x[middle]
    for k in range(1, middle + 1):
        i, j = middle - k, middle + k
        before = x[i] - above[i] * before
        x[i] = before
        if j < n:
            after = x[j] - above[j] * after
            x[j] = after
    total, a, b = 0.0, 0.0, 0.0
    for i in range(middle):
        j = n - 1 - i
        difference = x[i] - target[i]
        total += difference * difference
        a = difference - (above[i - 1] * a if i > 0 else 0.0)
        y[i] = a
        if j > middle:
            difference = x[j] - target[j]
            total += difference * difference
            b = difference - (above[j + 1] * b if i > 0 else 0.0)
            y[j] = b
    difference = x[middle] - target[middle]
    total += difference * difference
    if middle > 0:
        difference -= above[middle - 1] * a
    if middle < n - 1:
        difference -= above[middle + 1] * b
    y[middle] = difference * inverse[middle]
    before, after = y[middle], y[middle]
    for k in range(1, middle + 1):
        i, j = middle - k, middle + k
        before = (y[i] - lower[i + 1] * before) * inverse[i]
        y[i] = before
        if j < n:
            after = (y[j] - upper[j - 1] * after) * inverse[j]
            y[j] = after
    lower_bar, diagonal_bar, upper_bar = x, inverse, above
    x_before = 0.0
    for i in range(n):
        x_i, y_i = x[i], y[i]
        upper_bar[i] = -y_i * x[i + 1] if i < n - 1 else 0.0
        diagonal_bar[i] = -y_i * x_i
        lower_bar[i] = -y_i * x_before
        x_before = x_i
    return 0.5 * total, (lower_bar, diagonal_bar, upper_bar, y)


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


CASE = Case("thomas", "tridiagonal system of 100,000 by elimination", loss, hand, make, (0, 1, 2, 3), hand_opt)
