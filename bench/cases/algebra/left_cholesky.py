"""Log-determinant by a left-looking Cholesky factorisation: each element of the factor is a dot product, kept once."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from bench.case import Case, Size


@njit(error_model="numpy")
def log_determinant(matrix):
    n = matrix.shape[0]
    factor = np.zeros((n, n))
    total = 0.0
    for j in range(n):
        pivot = matrix[j, j]
        for k in range(j):
            pivot -= factor[j, k] ** 2
        factor[j, j] = math.sqrt(pivot)
        total += 2.0 * math.log(factor[j, j])
        for i in range(j + 1, n):
            rest = matrix[i, j]
            for k in range(j):
                rest -= factor[i, k] * factor[j, k]
            factor[i, j] = rest / factor[j, j]
    return total


@njit(error_model="numpy")
def hand(matrix):
    """The cotangents of the factor become those of the matrix in place.

    Source: Smith 1995, 'Differentiation of the Cholesky algorithm'.
    """
    n = matrix.shape[0]
    factor = np.empty((n, n))
    total = 0.0
    for j in range(n):
        pivot = matrix[j, j]
        for k in range(j):
            pivot -= factor[j, k] * factor[j, k]
        root = math.sqrt(pivot)
        factor[j, j] = root
        total += math.log(root)
        inverse = 1.0 / root
        for i in range(j + 1, n):
            rest = matrix[i, j]
            for k in range(j):
                rest -= factor[i, k] * factor[j, k]
            factor[i, j] = rest * inverse
    bar = np.zeros((n, n))
    for j in range(n - 1, -1, -1):
        inverse = 1.0 / factor[j, j]
        root_bar = 2.0 * inverse
        for i in range(j + 1, n):
            rest_bar = bar[i, j] * inverse
            bar[i, j] = rest_bar
            root_bar -= rest_bar * factor[i, j]
            for k in range(j):
                bar[i, k] -= rest_bar * factor[j, k]
                bar[j, k] -= rest_bar * factor[i, k]
        pivot_bar = 0.5 * root_bar * inverse
        bar[j, j] = pivot_bar
        for k in range(j):
            bar[j, k] -= 2.0 * pivot_bar * factor[j, k]
    return 2.0 * total, (bar,)


@njit(error_model="numpy", fastmath={"reassoc", "contract"})
def _invert(block):
    """In place, by elimination without exchanges; returns the logarithm of the determinant."""
    n = block.shape[0]
    total = 0.0
    for k in range(n):
        inverse = 1.0 / block[k, k]
        total -= math.log(inverse)
        block[k, k] = 1.0
        for j in range(n):
            block[k, j] *= inverse
        for i in range(n):
            if i != k:
                factor = block[i, k]
                block[i, k] = 0.0
                for j in range(n):
                    block[i, j] -= factor * block[k, j]
    return total


@njit(error_model="numpy", fastmath={"reassoc", "contract"})
def hand_opt(matrix):
    """The gradient is the inverse, which comes from elimination in blocks with the pivots of the determinant.

    Each step exchanges the unknowns and the right-hand sides of a block of rows: products of matrices. In the end the
    negative inverse stands where the matrix was.
    """
    n = matrix.shape[0]
    a, product = np.empty((n, n)), np.empty((n, n))
    for i in range(n):
        for j in range(i + 1):
            a[i, j] = matrix[i, j]
            a[j, i] = matrix[i, j]
    total = 0.0
    for start in range(0, n, 16):
        end = min(n, start + 16)
        rows = a[start:end].copy()
        pivots = rows[:, start:end].copy()
        total += _invert(pivots)
        solved = np.dot(pivots, rows)
        np.dot(rows.T, solved, product)
        a -= product
        a[start:end] = solved
        a[:, start:end] = solved.T
        a[start:end, start:end] = -pivots
    for i in range(n):
        for j in range(i):
            a[i, j] *= -2.0
        a[i, i] = -a[i, i]
        a[i, i + 1 :] = 0.0
    return total, (a,)


def flops(matrix):
    return matrix.shape[0] ** 3


def make(size: Size) -> tuple[Any, ...]:
    """Positive definite; only the lower triangle is read."""
    n = {"small": 5, "medium": 30, "full": 100}[size]
    factor = np.random.default_rng(24).standard_normal((n, n))
    return (factor @ factor.T + n * np.eye(n),)


CASE = Case(
    "cholesky-left",
    "log-determinant by left-looking Cholesky, n = 100",
    log_determinant,
    hand,
    make,
    (0,),
    hand_opt,
    flops,
)
