"""Periodic neighbours: remainders of indices, of all lengths down to one, and of divisors that are not the length."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

import irad
from tests.tools.catalogue import Case, Catalogue, floats

PROGRAMS = Catalogue()


@PROGRAMS.at(floats(5))
@PROGRAMS.at(floats(2))
@PROGRAMS.at(floats(1))
@PROGRAMS.at(np.empty(0))
@njit
def ring(x):
    n, total = x.size, 0.0
    for i in range(n):
        total += x[(i - 1) % n] * x[i] ** 2 * x[(i + 1) % n] + x[(i - 2) % n] * x[(i + 3) % n]
    return total


@PROGRAMS.at(floats(5))
@PROGRAMS.at(floats(1))
@njit
def ring_of_positive_dividends(x):
    n, total = len(x), 0.0
    for i in range(n):
        total += x[(i + n - 1) % n] * x[i] - x[(n - 1 + i) % n] ** 2 + x[(i + 1 + n) % n] ** 3
    return total


@PROGRAMS.at(floats(4, 3), 3)
@PROGRAMS.at(floats(1, 1), 2)
@PROGRAMS.at(floats(1, 4), 2)
@njit
def torus(field, steps):
    n, m = field.shape
    for _ in range(steps):
        new = np.empty((n, m))
        for i in range(n):
            for j in range(m):
                around = field[(i - 1) % n, j] + field[(i + 1) % n, j] * field[i, (j - 1) % m] + field[i, (j + 1) % m]
                new[i, j] = 0.2 * around - field[i, j] * field[i, j] * 0.1
        field = new
    return np.sum(field * field)


@PROGRAMS.at(floats(5), 3)
@PROGRAMS.at(floats(5), -3)
@PROGRAMS.at(floats(5), 9)
@PROGRAMS.at(floats(5), -7)
@njit
def of_another_divisor(x, m):
    total = 0.0
    for i in range(x.size):
        total += x[i] * x[(i - 1) % m % x.size] + x[i] ** 2 * ((i - 1) % m)
    return total


@PROGRAMS.at(floats(5), 3)
@PROGRAMS.at(floats(5), 0)
@PROGRAMS.at(floats(5), -2)
@njit(error_model="numpy")
def left_early(x, n):
    """The loop may run where the divisor is not positive."""
    i, total = 0, 0.0
    while True:
        total += x[i] * ((i - 1) % n)
        i += 1
        if i == n or i == x.size:
            return total


@PROGRAMS.at(floats(6))
@njit
def while_loop(x):
    i, n, total = 0, x.size, 0.0
    while i < n:
        total += x[(i - 1) % n] * x[i]
        x[i] = total * 0.1
        i += 1
    return total


@pytest.mark.parametrize("case", PROGRAMS, ids=str)
def test_gradient(case: Case):
    case.check()


@pytest.mark.parametrize("n", range(1, 6))
def test_values_are_those_of_python(n: int):
    @njit
    def weighted(x, w):
        total = 0.0
        for i in range(x.size):
            before, behind = (i - 1) % x.size, (i + 1) % x.size
            total += w[i] * x[before] * x[behind] * (1 + before)
        return total

    x, w = floats(n), floats(n, seed=1)
    assert irad.value_and_grad(weighted)(x, w)[0] == weighted.py_func(x, w)
