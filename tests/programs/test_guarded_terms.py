"""Terms of elements that indices name, under conditions on these elements: within a cut-off, beyond a margin."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit, prange

from tests.tools.catalogue import Case, Catalogue, floats

PROGRAMS = Catalogue()
ORDER = np.array([3, 0, -1, 2, 2, 4])


@PROGRAMS.at(floats(6), floats(6), ORDER)
@PROGRAMS.at(floats(6).astype(np.float32), floats(6).astype(np.float32), np.array([1, 0, 2]))
@PROGRAMS.at(floats(3), floats(3), np.zeros(0, np.int64))
@njit
def pairs_within_a_cut_off(x, y, pairs):
    total = 0.0
    for i in range(pairs.size):
        d = x[pairs[i]] - y[i]
        r = d * d + 0.1
        if r < 0.4:
            s = 1.0 / r
            total += s * s * s - s
    return total


@PROGRAMS.at(floats(6), floats(6))
@njit
def hinges_in_order(x, y):
    total = 0.0
    for i in range(x.size):
        margin = 1.0 - 3.0 * x[i] * y[i]
        if margin > 0.0:
            total += margin * margin
    return total


@PROGRAMS.at(floats(6), floats(6), ORDER)
@njit
def conditions_in_conditions(x, y, order):
    total = 0.0
    for i in range(order.size):
        r = x[order[i]] + y[i]
        s = np.sqrt(r)
        if r > 0.3:
            total += y[i] * y[i]
            if s < 1.1:
                total += s * r * x[i]
            elif s < 1.2:
                total -= r
    return total


@PROGRAMS.at(floats(6), floats(6), ORDER)
@njit
def memory_that_changes_before_the_condition(x, y, order):
    a, total = x.copy(), 0.0
    for i in range(order.size):
        v = a[order[i]]
        a[order[i]] = y[i] * y[i]
        if v > 0.2:
            total += v * v * y[i]
    return total + np.sum(a * a * y)


@PROGRAMS.at(floats(6), floats(6), ORDER)
@njit
def memory_that_changes_under_the_condition(x, y, order):
    a, total = x.copy(), 0.0
    for i in range(order.size):
        v = a[order[i]] * y[i]
        if v > 0.2:
            a[order[i]] = 2.0 * y[i]
            total += v * v
            a[a.size - 1 - i] += v
    return total + np.sum(a * a)


@PROGRAMS.at(floats(6), floats(6), ORDER)
@njit
def one_array_by_two_names(x, y, order):
    a = x.copy()
    b, total = a[:5], 0.0
    for i in range(b.size):
        u = b[order[i]]
        a[order[i] % 5] = 2.0 * y[i]  # the element that b[order[i]] is
        if u < 0.9:
            total += u * y[i] * np.sin(u)
    return total + np.sum(a * a)


@PROGRAMS.at(floats(6), floats(6), ORDER)
@njit
def both_sides(x, y, order):
    total, u = 0.0, 0.0
    for i in range(order.size):
        v = x[order[i]] * y[i]
        if v > 0.2:
            total += v * v * np.exp(x[i])
            u = v
        else:
            total += v * y[i]
            u += 0.5
        total += u * y[i]
    return total


@PROGRAMS.at(4.0 * floats(6), floats(6), ORDER)
@njit
def integers_of_numbers(x, y, order):
    total = 0.0
    for i in range(order.size):
        v = x[order[i]] * y[i]
        k = int(v)
        if k > 0:
            total += v * v / k + y[min(k, 5)]
    return total


@PROGRAMS.at(floats(6), floats(6), ORDER)
@njit
def loops_under_conditions(x, y, order):
    total = 0.0
    for i in range(order.size):
        v = x[order[i]] * x[i]
        if v < 0.5:
            for j in range(i):
                total += v * y[j] * x[order[j]]
    return total


@PROGRAMS.at(floats(8), floats(8), np.arange(7, -1, -1))
@njit(parallel=True)
def in_threads(x, y, order):
    a = np.zeros(x.size)
    for i in prange(x.size):
        v = x[order[i]] - y[i] * y[i]
        if v < 0.3:
            a[i] = v * v * y[i]
    return np.sum(a * x)


@PROGRAMS.at(floats(6) + 0.3j * floats(6), floats(6), ORDER)
@njit
def complex_numbers(x, y, order):
    total = 0.0
    for i in range(order.size):
        z = x[order[i]] * y[i]
        if z.real > 0.2:
            total += z.real * z.real + z.imag
    return total


@pytest.mark.parametrize("case", PROGRAMS, ids=str)
def test_gradient(case: Case):
    case.check()
