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


def flops(matrix):
    return matrix.shape[0] ** 3


def make(size: Size) -> tuple[Any, ...]:
    """Positive definite; only the lower triangle is read."""
    n = {"small": 5, "medium": 30, "full": 100}[size]
    factor = np.random.default_rng(11).standard_normal((n, n))
    return (factor @ factor.T + n * np.eye(n),)


CASE = Case("cholesky", "log-determinant by Cholesky in place, n = 100", log_determinant, hand, make, (0,), flops=flops)
