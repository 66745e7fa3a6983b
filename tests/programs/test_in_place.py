"""Algorithms that work in place: what is final when it is read is read again, what is overwritten later is saved."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numba import njit

import irad
from tests.tools.catalogue import Case, Catalogue, floats

PROGRAMS = Catalogue()


def positive(n: int) -> np.ndarray:
    factor = floats(n, n)
    return factor @ factor.T + n * np.eye(n)


def dominant(n: int) -> np.ndarray:
    return floats(n, n) + n * np.eye(n)


@PROGRAMS.at(positive(4))
@PROGRAMS.at(positive(1))
@PROGRAMS.at(np.zeros((0, 0)))
@njit(error_model="numpy")
def cholesky_right_looking(matrix):
    a, total = matrix.copy(), 0.0
    for k in range(a.shape[0]):
        a[k, k] = math.sqrt(a[k, k])
        total += math.log(a[k, k])
        for i in range(k + 1, a.shape[0]):
            a[i, k] /= a[k, k]
        for i in range(k + 1, a.shape[0]):
            for j in range(k + 1, i + 1):
                a[i, j] -= a[i, k] * a[j, k]
    return total


@PROGRAMS.at(positive(4))
@njit
def cholesky_left_looking(matrix):
    a, total = matrix.copy(), 0.0
    for j in range(a.shape[0]):
        for i in range(j, a.shape[0]):
            for k in range(j):
                a[i, j] -= a[i, k] * a[j, k]
        a[j, j] = math.sqrt(a[j, j])
        for i in range(j + 1, a.shape[0]):
            a[i, j] /= a[j, j]
        total += a[j, j] * a[-1, j]
    return total


@PROGRAMS.at(np.asfortranarray(positive(4)))
@njit
def ldlt_in_columns(a):
    n = a.shape[0]
    for k in range(n):
        for i in range(k + 1, n):
            factor = a[i, k] / a[k, k]
            for j in range(k + 1, i + 1):
                a[i, j] -= factor * a[j, k]
        for i in range(k + 1, n):
            a[i, k] /= a[k, k]
    total = 1.0
    for k in range(n):
        total *= a[k, k] + 0.1 * a[n - 1, k]
    return total


@PROGRAMS.at(floats(4, 4), floats(4))
@PROGRAMS.at(floats(4, 4)[::-1].copy(), floats(4))
@njit(error_model="numpy")
def lu_with_pivots(a, x):
    n = x.size
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
    return np.sum(x * x)


@PROGRAMS.at(dominant(4))
@njit
def gauss_jordan_inverse(a):
    n = a.shape[0]
    for k in range(n):
        pivot = 1.0 / a[k, k]
        a[k, k] = 1.0
        for j in range(n):
            a[k, j] *= pivot
        for i in range(n):
            if i != k:
                factor = a[i, k]
                a[i, k] = 0.0
                for j in range(n):
                    a[i, j] -= factor * a[k, j]
    return a[0, n - 1] + a[n - 1, 0] * a[1, 1]


@PROGRAMS.at(floats(5, 3))
@njit
def householder(a):
    m, n = a.shape
    total = 0.0
    for k in range(n):
        norm = 0.0
        for i in range(k, m):
            norm += a[i, k] * a[i, k]
        norm = math.sqrt(norm)
        a[k, k] += math.copysign(norm, a[k, k])
        square = 0.0
        for i in range(k, m):
            square += a[i, k] * a[i, k]
        for j in range(k + 1, n):
            dot = 0.0
            for i in range(k, m):
                dot += a[i, k] * a[i, j]
            for i in range(k, m):
                a[i, j] -= 2.0 * dot / square * a[i, k]
        total += norm * (k + 1)
    return total + a[0, n - 1]


@PROGRAMS.at(floats(4, 3))
@njit
def givens(a):
    m, n = a.shape
    for j in range(n):
        for i in range(m - 1, j, -1):
            r = math.hypot(a[i - 1, j], a[i, j])
            c, s = a[i - 1, j] / r, a[i, j] / r
            for k in range(j, n):
                upper, lower = a[i - 1, k], a[i, k]
                a[i - 1, k] = c * upper + s * lower
                a[i, k] = c * lower - s * upper
    return a[0, 0] * a[1, 1] + a[0, n - 1]


@PROGRAMS.at(floats(4, 3))
@njit
def gram_schmidt(q):
    m, n = q.shape
    total = 0.0
    for k in range(n):
        norm = 0.0
        for i in range(m):
            norm += q[i, k] ** 2
        norm = math.sqrt(norm)
        for i in range(m):
            q[i, k] /= norm
        for j in range(k + 1, n):
            dot = 0.0
            for i in range(m):
                dot += q[i, k] * q[i, j]
            for i in range(m):
                q[i, j] -= dot * q[i, k]
        total += norm * q[0, k]
    return total


@PROGRAMS.at(dominant(4), floats(4))
@njit
def triangular_solves(a, x):
    n = x.size
    for i in range(n):
        for j in range(i):
            x[i] -= a[i, j] * x[j]
        x[i] /= a[i, i]
    for j in range(n - 1, -1, -1):
        x[j] /= a[j, j]
        for i in range(j):
            x[i] -= a[i, j] * x[j]
    return x[0] * x[n - 1]


@PROGRAMS.at(np.abs(floats(4, 4)) + 0.1)
@njit
def floyd_warshall(d):
    n = d.shape[0]
    for k in range(n):
        for i in range(n):
            for j in range(n):
                d[i, j] = min(d[i, j], d[i, k] + d[k, j] ** 2)
    return np.sum(d * d)


@PROGRAMS.at(floats(7))
@njit
def scans_and_filters(x):
    for i in range(1, x.size):
        x[i] += 0.5 * x[i] * x[i - 1]
    for i in range(x.size - 2):
        x[i] = x[i] * x[i + 1] + x[i + 2] ** 2
    for i in range(2, x.size):
        x[i] += 0.3 * x[i - 1] * x[i - 2]
    for i in range(x.size - 2, -1, -1):
        x[i] *= x[i + 1]
    return np.sum(x)


@PROGRAMS.at(np.array([0.3, -0.7, 1.1, 0.2, -0.4]))
@njit
def insertion_sort(x):
    for i in range(1, x.size):
        key = x[i]
        j = i - 1
        while j >= 0 and x[j] > key:
            x[j + 1] = x[j] * 1.01
            j -= 1
        x[j + 1] = key * key
    return x[0] * x[1] + x[4] ** 2


@PROGRAMS.at(dominant(3), floats(3), floats(3))
@njit
def gauss_seidel(a, b, x):
    for _ in range(3):
        for i in range(x.size):
            s = b[i]
            for j in range(x.size):
                if j != i:
                    s -= a[i, j] * x[j]
            x[i] = s / a[i, i] + 0.1 * x[i] ** 2
    return np.sum(x)


@PROGRAMS.at(floats(4, 4))
@njit
def the_same_memory_in_other_shapes(a):
    flat, n = a.ravel(), a.shape[0]
    shifted = flat[2:10].reshape(2, n)
    lower = a[1:]
    for k in range(n - 1):
        for j in range(k + 1, n):
            a[0, j] *= a[0, k]
            a[1, j] += a[1, k] * shifted[0, k]
            flat[n * j + k] *= flat[k] + a[j, 0] ** 2
            shifted[1, j] += shifted[1, k] * lower[0, k] ** 2
            lower[1, k] += lower[1, j] * a[j, k] * a.T[j, k]
    return np.sum(a * a)


@PROGRAMS.at(floats(3, 4, 3))
@njit
def three_axes(a):
    count, m, n = a.shape
    for i in range(1, count):
        for j in range(m - 1):
            for k in range(1, n):
                a[i, j, k] += a[i - 1, j, k] * a[i, j, k - 1] * a[i, j + 1, k]
                a[0, j, k - 1] *= 1.0 + 0.1 * a[i, j, 0]
    return np.sum(a)


@PROGRAMS.at(floats(4, 3) + 1j * floats(4, 3))
@njit
def complex_elements(z):
    total = 0.0
    for k in range(z.shape[1]):
        for i in range(k + 1, z.shape[0]):
            for j in range(k + 1, z.shape[1]):
                z[i, j] -= z[i, k] * z[k, j]
        total += z[k, k].real * z[k, -1].imag
    return total


@PROGRAMS.at(floats(4, 4), np.array([2, 0, 3, 1]))
@njit
def indices_from_memory(a, order):
    for k in range(a.shape[0]):
        for j in range(k + 1, a.shape[1]):
            a[order[k], j] += a[order[k], k] * a[k, j]
            a[-1 - k, j] *= 1.0 + 0.1 * a[k, k]
    return np.sum(a)


def slots(function, *args) -> int:
    """How many numbers of the arrays the tape of a call holds."""
    return sum(use.slots for use in irad.tape_report(function, *args, argnums=0).uses if use.storage == "slab")


def test_a_factor_that_is_final_is_not_saved():
    small, large = (slots(cholesky_right_looking, positive(n)) for n in (10, 20))
    assert large < 5 * small, "of order n², not n³"


def test_what_later_sweeps_overwrite_is_saved():
    assert slots(gauss_seidel, dominant(6), floats(6), floats(6)) >= 3 * 6 * 6


@pytest.mark.parametrize("case", PROGRAMS, ids=str)
def test_gradient(case: Case):
    case.check()
