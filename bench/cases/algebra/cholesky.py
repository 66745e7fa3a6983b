"""Log-determinant by a right-looking Cholesky factorisation in place, whose every element is overwritten many times."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from bench.case import Case, Size


@njit(error_model="numpy")
def log_determinant(matrix):
    n = matrix.shape[0]
    a = matrix.copy()
    total = 0.0
    for k in range(n):
        a[k, k] = math.sqrt(a[k, k])
        total += 2.0 * math.log(a[k, k])
        for i in range(k + 1, n):
            a[i, k] /= a[k, k]
        for i in range(k + 1, n):
            for j in range(k + 1, i + 1):
                a[i, j] -= a[i, k] * a[j, k]
    return total


@njit(error_model="numpy")
def hand(matrix):
    """The factor is all that the adjoint needs: what was overwritten only ever took sums.

    Columns are copied to a vector, so that the inner loops are contiguous.
    """
    n = matrix.shape[0]
    a = matrix.copy()
    column, column_bar = np.empty(n), np.empty(n)
    total = 0.0
    for k in range(n):
        root = math.sqrt(a[k, k])
        a[k, k] = root
        total += math.log(root)
        inverse = 1.0 / root
        for i in range(k + 1, n):
            a[i, k] *= inverse
            column[i] = a[i, k]
        for i in range(k + 1, n):
            factor = column[i]
            for j in range(k + 1, i + 1):
                a[i, j] -= factor * column[j]
    bar = np.zeros((n, n))
    for k in range(n - 1, -1, -1):
        for i in range(k + 1, n):
            column[i] = a[i, k]
            column_bar[i] = 0.0
        for i in range(k + 1, n):
            factor = column[i]
            dot = 0.0
            for j in range(k + 1, i + 1):
                dot += bar[i, j] * column[j]
                column_bar[j] -= bar[i, j] * factor
            column_bar[i] -= dot
        inverse = 1.0 / a[k, k]
        diagonal_bar = 2.0 * inverse
        for i in range(k + 1, n):
            bar[i, k] = column_bar[i] * inverse
            diagonal_bar -= column_bar[i] * column[i] * inverse
        bar[k, k] = 0.5 * diagonal_bar * inverse
    return 2.0 * total, (bar,)


@njit(error_model="numpy", fastmath={"reassoc", "contract"})
def _sweep(a):
    """Puts the inverse of a positive definite matrix in its place, by Gauss-Jordan; returns its log-determinant."""
    n = a.shape[0]
    pivot_row = np.empty(n)
    total = 0.0
    for k in range(n):
        total += math.log(a[k, k])
        inverse = 1.0 / a[k, k]
        for j in range(n):
            pivot_row[j] = a[k, j] * inverse
            a[k, j] = 0.0
        pivot_row[k] = inverse
        for i in range(n):
            factor = a[i, k] if i != k else -1.0
            a[i, k] = 0.0
            for j in range(n):
                a[i, j] -= factor * pivot_row[j]
    return total


@njit(error_model="numpy", fastmath={"reassoc", "contract"})
def _invert(a):
    """Log-determinant and inverse, by halves: that of the upper left block, then that of its Schur complement."""
    n = a.shape[0]
    if n <= 32:
        return _sweep(a), a
    h = n // 2
    lower = a[h:, :h].copy()
    upper_total, upper = _invert(a[:h, :h].copy())
    across = np.dot(lower, upper)
    complement_total, complement = _invert(a[h:, h:] - np.dot(across, lower.T))
    below = np.dot(complement, across)
    a[:h, :h] = upper + np.dot(across.T, below)
    a[h:, :h] = -below
    a[:h, h:] = -below.T
    a[h:, h:] = complement
    return upper_total + complement_total, a


@njit(error_model="numpy")
def hand_opt(matrix):
    """The gradient is the inverse, which blocks give by products of matrices: no factor, no sweep back through it."""
    n = matrix.shape[0]
    a = np.empty((n, n))
    for i in range(n):
        for j in range(i + 1):
            a[i, j] = matrix[i, j]
            a[j, i] = matrix[i, j]
    total, bar = _invert(a)
    for i in range(n):
        for j in range(i):
            bar[i, j] *= 2.0
        bar[i, i + 1 :] = 0.0
    return total, (bar,)


def flops(matrix):
    return matrix.shape[0] ** 3


def make(size: Size) -> tuple[Any, ...]:
    """Positive definite; only the lower triangle is read."""
    n = {"small": 5, "medium": 30, "full": 100}[size]
    factor = np.random.default_rng(11).standard_normal((n, n))
    return (factor @ factor.T + n * np.eye(n),)


CASE = Case(
    "cholesky", "log-determinant by Cholesky in place, n = 100", log_determinant, hand, make, (0,), hand_opt, flops
)
