"""Explicit steps of the heat equation on a square, with fixed boundary; loss on the final field."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from bench.case import Case, Size


@njit(error_model="numpy")
def loss(initial, target, ratio, steps):
    n, m = initial.shape
    old = initial.copy()
    new = initial.copy()
    for _ in range(steps):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                neighbours = old[i - 1, j] + old[i + 1, j] + old[i, j - 1] + old[i, j + 1]
                new[i, j] = old[i, j] + ratio * (neighbours - 4.0 * old[i, j])
        old, new = new, old
    total = 0.0
    for i in range(n):
        for j in range(m):
            total += (old[i, j] - target[i, j]) ** 2
    return 0.5 * total


@njit(error_model="numpy")
def hand(initial, target, ratio, steps):
    """The adjoint of a step in gather form; the steps are linear, so nothing of the forward sweep is kept.

    ``old`` and ``new`` become cotangents of the interior with a border of zeros. A border point feeds its interior
    neighbour in each step: those cotangents are summed up in ``initial_bar``.
    """
    n, m = initial.shape
    old, new = initial.copy(), initial.copy()
    for _ in range(steps):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                neighbours = old[i - 1, j] + old[i + 1, j] + old[i, j - 1] + old[i, j + 1]
                new[i, j] = old[i, j] + ratio * (neighbours - 4.0 * old[i, j])
        old, new = new, old
    total = 0.0
    initial_bar = np.zeros((n, m))
    for i in range(n):
        for j in range(m):
            difference = old[i, j] - target[i, j]
            total += difference * difference
            on_border = i == 0 or j == 0 or i == n - 1 or j == m - 1
            initial_bar[i, j] = difference if on_border else 0.0
            old[i, j] = 0.0 if on_border else difference
            new[i, j] = 0.0
    for _ in range(steps):
        for i in range(1, n - 1):
            initial_bar[i, 0] += ratio * old[i, 1]
            initial_bar[i, m - 1] += ratio * old[i, m - 2]
        for j in range(1, m - 1):
            initial_bar[0, j] += ratio * old[1, j]
            initial_bar[n - 1, j] += ratio * old[n - 2, j]
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                neighbours = old[i - 1, j] + old[i + 1, j] + old[i, j - 1] + old[i, j + 1]
                new[i, j] = old[i, j] + ratio * (neighbours - 4.0 * old[i, j])
        old, new = new, old
    for i in range(1, n - 1):
        for j in range(1, m - 1):
            initial_bar[i, j] = old[i, j]
    return 0.5 * total, (initial_bar,)


def flops(initial, target, ratio, steps):
    return 2 * 7 * steps * (initial.shape[0] - 2) * (initial.shape[1] - 2)


def make(size: Size) -> tuple[Any, ...]:
    """Random fields; ``ratio`` is below the limit of stability, 1/4."""
    n, steps = {"small": (6, 5), "medium": (32, 50), "full": (128, 100)}[size]
    rng = np.random.default_rng(3)
    return rng.standard_normal((n, n)), rng.standard_normal((n, n)), 0.2, steps


CASE = Case("heat", "2-D heat equation, 128×128, 100 steps", loss, hand, make, (0,), flops=flops)
