"""A dense system by LU decomposition with partial pivoting in place, loss on its solution."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from bench.case import Case, Size


@njit(error_model="numpy")
def loss(matrix, right, target):
    n = right.size
    a = matrix.copy()
    x = right.copy()
    for k in range(n):
        best = k
        for i in range(k + 1, n):
            if abs(a[i, k]) > abs(a[best, k]):
                best = i
        if best != k:
            for j in range(n):
                a[k, j], a[best, j] = a[best, j], a[k, j]
            x[k], x[best] = x[best], x[k]
        for i in range(k + 1, n):
            a[i, k] /= a[k, k]
            for j in range(k + 1, n):
                a[i, j] -= a[i, k] * a[k, j]
            x[i] -= a[i, k] * x[k]
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            x[i] -= a[i, j] * x[j]
        x[i] /= a[i, i]
    total = 0.0
    for i in range(n):
        total += (x[i] - target[i]) ** 2
    return 0.5 * total


@njit(error_model="numpy")
def _factorise(a, x, rows):
    n = x.size
    for k in range(n):
        best = k
        for i in range(k + 1, n):
            if abs(a[i, k]) > abs(a[best, k]):
                best = i
        rows[k] = best
        if best != k:
            for j in range(n):
                a[k, j], a[best, j] = a[best, j], a[k, j]
            x[k], x[best] = x[best], x[k]
        inverse = 1.0 / a[k, k]
        for i in range(k + 1, n):
            factor = a[i, k] * inverse
            a[i, k] = factor
            for j in range(k + 1, n):
                a[i, j] -= factor * a[k, j]
            x[i] -= factor * x[k]


@njit(error_model="numpy")
def hand(matrix, right, target):
    """The transposed system is solved with the same factors; the matrix gets an outer product."""
    n = right.size
    a, x, rows = matrix.copy(), right.copy(), np.empty(n, np.int64)
    _factorise(a, x, rows)
    for i in range(n - 1, -1, -1):
        dot = x[i]
        for j in range(i + 1, n):
            dot -= a[i, j] * x[j]
        x[i] = dot / a[i, i]
    total = 0.0
    y = np.empty(n)
    for i in range(n):
        y[i] = x[i] - target[i]
        total += y[i] * y[i]
    for i in range(n):
        y[i] /= a[i, i]
        for j in range(i + 1, n):
            y[j] -= a[i, j] * y[i]
    for i in range(n - 1, -1, -1):
        for j in range(i):
            y[j] -= a[i, j] * y[i]
    for k in range(n - 1, -1, -1):
        y[k], y[rows[k]] = y[rows[k]], y[k]
    matrix_bar = np.empty((n, n))
    for i in range(n):
        for j in range(n):
            matrix_bar[i, j] = -y[i] * x[j]
    return 0.5 * total, (matrix_bar, y)


def flops(matrix, right, target):
    return 2 * right.size**3 // 3 + 5 * right.size**2


def make(size: Size) -> tuple[Any, ...]:
    """Normal entries: rows are exchanged in most steps."""
    n = {"small": 5, "medium": 30, "full": 100}[size]
    rng = np.random.default_rng(12)
    return rng.standard_normal((n, n)), *rng.standard_normal((2, n))


CASE = Case("lu", "system of 100 by LU with partial pivoting in place", loss, hand, make, (0, 1), flops=flops)
