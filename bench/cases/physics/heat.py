"""Explicit steps of the heat equation on a square, with fixed boundary; loss on the final field."""

from __future__ import annotations

import math
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


@njit(error_model="numpy")
def _sines(n):
    """Eigenvectors of the second difference of ``n`` points, orthonormal and symmetric, and minus its eigenvalues."""
    table = np.empty(2 * n + 2)
    for t in range(2 * n + 2):
        table[t] = math.sqrt(2.0 / (n + 1)) * math.sin(math.pi * t / (n + 1))
    out, values = np.empty((n, n)), np.empty(n)
    for i in range(n):
        values[i] = 4.0 * math.sin(0.5 * math.pi * (i + 1) / (n + 1)) ** 2
        at = 0
        for k in range(n):
            at += i + 1
            at -= 2 * n + 2 if at >= 2 * n + 2 else 0
            out[i, k] = table[at]
    return out, values


@njit(error_model="numpy", fastmath={"reassoc", "contract"})
def _powers(row_values, column_values, ratio, steps):
    """For each mode what all steps do to it, and the sum of what 0, 1, ... steps do to it."""
    power, series = np.ones((row_values.size, column_values.size)), np.empty((row_values.size, column_values.size))
    for i in range(row_values.size):
        for j in range(column_values.size):
            series[i, j] = 1.0 - ratio * (row_values[i] + column_values[j])
        bits = steps
        while bits > 0:
            if bits % 2 == 1:
                for j in range(column_values.size):
                    power[i, j] *= series[i, j]
            for j in range(column_values.size):
                series[i, j] *= series[i, j]
            bits //= 2
        for j in range(column_values.size):
            loss_rate = ratio * (row_values[i] + column_values[j])
            series[i, j] = (1.0 - power[i, j]) / loss_rate if loss_rate != 0.0 else float(steps)
    return power, series


@njit(error_model="numpy", fastmath={"reassoc", "contract"})
def hand_opt(initial, target, ratio, steps):
    """Sines diagonalise a step: all steps are one product for each mode, and the transforms are products of matrices.

    The transform is orthogonal, so that the loss and its cotangent stay among the modes. The border is a source that
    is the same in each step.
    """
    n, m = initial.shape
    rows, row_values = _sines(n - 2)
    columns, column_values = _sines(m - 2)
    power, series = _powers(row_values, column_values, ratio, steps)
    modes = np.dot(np.dot(rows, initial[1:-1, 1:-1].copy()), columns)
    wanted = np.dot(np.dot(rows, target[1:-1, 1:-1].copy()), columns)
    top, bottom = np.dot(columns, initial[0, 1:-1].copy()), np.dot(columns, initial[-1, 1:-1].copy())
    left, right = np.dot(rows, initial[1:-1, 0].copy()), np.dot(rows, initial[1:-1, -1].copy())
    total = 0.0
    for i in range(n - 2):
        for j in range(m - 2):
            source = rows[0, i] * top[j] + rows[-1, i] * bottom[j] + left[i] * columns[0, j] + right[i] * columns[-1, j]
            difference = power[i, j] * modes[i, j] + ratio * series[i, j] * source - wanted[i, j]
            total += difference * difference
            modes[i, j] = power[i, j] * difference
            series[i, j] *= ratio * difference
    initial_bar = initial - target
    total += np.sum(initial_bar[0] ** 2) + np.sum(initial_bar[-1] ** 2)
    total += np.sum(initial_bar[1:-1, 0] ** 2) + np.sum(initial_bar[1:-1, -1] ** 2)
    initial_bar[1:-1, 1:-1] = np.dot(np.dot(rows, modes), columns)
    initial_bar[0, 1:-1] += np.dot(np.dot(rows[0], series), columns)
    initial_bar[-1, 1:-1] += np.dot(np.dot(rows[-1], series), columns)
    initial_bar[1:-1, 0] += np.dot(rows, np.dot(series, columns[0]))
    initial_bar[1:-1, -1] += np.dot(rows, np.dot(series, columns[-1]))
    return 0.5 * total, (initial_bar,)


def flops(initial, target, ratio, steps):
    return 2 * 7 * steps * (initial.shape[0] - 2) * (initial.shape[1] - 2)


def make(size: Size) -> tuple[Any, ...]:
    """Random fields; ``ratio`` is below the limit of stability, 1/4."""
    n, steps = {"small": (6, 5), "medium": (32, 50), "full": (128, 100)}[size]
    rng = np.random.default_rng(3)
    return rng.standard_normal((n, n)), rng.standard_normal((n, n)), 0.2, steps


CASE = Case("heat", "2-D heat equation, 128×128, 100 steps", loss, hand, make, (0,), hand_opt, flops)
