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


@njit(error_model="numpy", fastmath={"reassoc", "contract"})
def _factorise_panel(panel, a, rows, k):
    """Eliminates in the columns of a panel, which are rows here; exchanges whole rows of the matrix."""
    width, n = panel.shape[0], a.shape[0]
    for c in range(width):
        at = k + c
        column = panel[c]
        best = at
        for i in range(at + 1, n):
            if abs(column[i]) > abs(column[best]):
                best = i
        rows[at] = best
        if best != at:
            upper, lower = a[at], a[best]
            for j in range(upper.size):
                upper[j], lower[j] = lower[j], upper[j]
            for d in range(width):
                panel[d, at], panel[d, best] = panel[d, best], panel[d, at]
        inverse = 1.0 / column[at]
        for i in range(at + 1, n):
            column[i] *= inverse
        for d in range(c + 1, width):
            other, factor = panel[d], panel[d, at]
            for i in range(at + 1, n):
                other[i] -= factor * column[i]


@njit(error_model="numpy", fastmath={"reassoc", "contract"})
def _factorise_by_fours(a, columns, rows):
    """LU of the left square of ``a``; its column n, the right-hand side, is eliminated with it.

    Eliminated columns move to ``columns``, so that loops over the rest of a row may start at a multiple of 16.
    """
    n = rows.size
    for k in range(0, n, 4):
        width = min(4, n - k)
        panel = columns[k : k + width]
        for i in range(k, n):
            for c in range(width):
                panel[c, i] = a[i, k + c]
        _factorise_panel(panel, a, rows, k)
        start = (k + width) // 16 * 16
        for c in range(1, width):
            for d in range(c):
                row, above, factor = a[k + c, start:], a[k + d, start:], panel[d, k + c]
                for j in range(row.size):
                    row[j] -= factor * above[j]
        for i in range(k + 4, n):
            f0, f1, f2, f3 = panel[0, i], panel[1, i], panel[2, i], panel[3, i]
            row, r0, r1, r2, r3 = a[i, start:], a[k, start:], a[k + 1, start:], a[k + 2, start:], a[k + 3, start:]
            for j in range(row.size):
                row[j] -= f0 * r0[j] + f1 * r1[j] + f2 * r2[j] + f3 * r3[j]
        for c in range(width):
            for d in range(c, width):
                a[k + c, k + d] = panel[d, k + c]


@njit(error_model="numpy", fastmath={"reassoc", "contract"})
def _dot_from(row, x, i):
    """Sum of products from the multiple of 16 before i; what stands in ``x`` up to i is still zero."""
    start = i // 16 * 16
    row, x = row[start:], x[start:]
    dot = 0.0
    for j in range(row.size):
        dot += row[j] * x[j]
    return dot


@njit(error_model="numpy", fastmath={"reassoc", "contract"})
def hand_opt(matrix, right, target):
    """As by hand, but four columns are eliminated at once: the matrix is loaded and stored a quarter as often."""
    n = right.size
    wide = n // 16 * 16 + 16
    a, columns, rows = np.zeros((n, wide)), np.zeros((n, wide)), np.empty(n, np.int64)
    for i in range(n):
        a[i, n] = right[i]
        for j in range(n):
            a[i, j] = matrix[i, j]
    _factorise_by_fours(a, columns, rows)
    x, difference, half, y = np.zeros(wide), np.zeros(wide), np.empty(n), np.zeros(wide)
    for i in range(n - 1, -1, -1):
        x[i] = (a[i, n] - _dot_from(a[i], x, i)) / a[i, i]
    total = 0.0
    for i in range(n):
        difference[i] = x[i] - target[i]
        total += difference[i] * difference[i]
    for i in range(n):
        start = i // 16 * 16
        factor = difference[i] / a[i, i]
        row, rest = a[i, start:], difference[start:]
        for j in range(row.size):
            rest[j] -= row[j] * factor
        half[i] = factor
    for k in range((n - 1) // 4 * 4, -1, -4):
        for i in range(min(k + 4, n) - 1, k - 1, -1):
            y[i] = half[i] - _dot_from(columns[i], y, i)
        for i in range(min(k + 4, n) - 1, k - 1, -1):
            y[i], y[rows[i]] = y[rows[i]], y[i]
    matrix_bar = np.empty((n, n))
    for i in range(n):
        row, factor = matrix_bar[i], -y[i]
        for j in range(n):
            row[j] = factor * x[j]
    return 0.5 * total, (matrix_bar, y[:n].copy())


def flops(matrix, right, target):
    return 2 * right.size**3 // 3 + 5 * right.size**2


def make(size: Size) -> tuple[Any, ...]:
    """Normal entries: rows are exchanged in most steps."""
    n = {"small": 5, "medium": 30, "full": 100}[size]
    rng = np.random.default_rng(12)
    return rng.standard_normal((n, n)), *rng.standard_normal((2, n))


CASE = Case("lu", "system of 100 by LU with partial pivoting in place", loss, hand, make, (0, 1), hand_opt, flops)
