"""Elements that something is added to in place: of one address or of two, in sums of several terms, read in between."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit, prange

from tests.tools.catalogue import Case, Catalogue, floats

PROGRAMS = Catalogue()

POINT = np.dtype([("at", np.float64), ("by", np.float64)])


@PROGRAMS.at(floats(6), floats(6))
@PROGRAMS.at(floats(0), floats(0))
@PROGRAMS.at(floats(6).astype(np.float32), floats(6).astype(np.float32))
@njit
def several_terms(x, y):
    a, b = x.copy(), y.copy()
    for i in range(a.size):
        a[i] += y[i] * y[i]
        a[i] = x[i] * y[i] + a[i] - y[i]
        b[i] -= x[i] / (1.0 + y[i] * y[i]) + a[i]
    return np.sum(a * b * b)


@PROGRAMS.at(floats(6), floats(6))
@njit
def no_updates(x, y):
    """What is stored does not begin with what was there: subtracted from, scaled, twice of it, or chosen."""
    a = x.copy()
    for i in range(a.size):
        a[i] = y[i] - a[i]
        a[i] = a[i] + a[i]
        a[i] = 0.5 * a[i] + y[i]
        a[i] = a[i] + y[i] if y[i] > 0.5 else y[i] * x[i]
    return np.sum(a * a * y)


@PROGRAMS.at(floats(6), floats(6))
@njit
def read_in_other_terms(x, y):
    a = x.copy()
    for i in range(a.size):
        a[i] += a[i] * y[i] + np.sin(a[i])
        before = a[i]
        a[i] += y[i] ** 2
        a[i] += before * a[i]
    return np.sum(a * a)


@PROGRAMS.at(floats(6), np.array([0, 1, 1, 5, 0, 2]), np.array([1, 1, 0, 2, 0, 5]))
@njit
def indices_that_meet(x, into, source):
    a = x.copy()
    for k in range(into.size):
        i, j = into[k], source[k]
        a[i] += a[j] * x[k]
        a[j] = a[j] - a[i] * a[i]
        old = a[i]
        a[j] = 0.25 * x[k]
        a[i] = old + a[j]
    return np.sum(a * a * x)


@PROGRAMS.at(floats(7), floats(7))
@njit
def views_that_overlap(x, y):
    a = x.copy()
    b, c = a[1:], a[:-1]
    for i in range(b.size):
        b[i] += c[i] * y[i]
    for i in range(b.size):
        old = c[i]
        b[i] = y[i] * y[i]
        c[i] = old + b[i] * b[-1]
    c += b * y[0]
    return np.sum(a * a)


@PROGRAMS.at(floats(4), floats(4), 5)
@njit
def sums_in_memory(x, y, steps):
    """The same element in all iterations, one that starts from a constant, one that is overwritten at times."""
    out = np.zeros(3)
    for k in range(steps):
        for i in range(x.size):
            out[0] += x[i] * y[i] * k
            out[1] -= out[0] * x[i]
        if k % 2 == 0:
            out[1] = 0.5
        out[2] += out[1] * out[1]
    return out[0] * out[2]


@PROGRAMS.at(floats(6), floats(6))
@njit(error_model="numpy")
def stored_without_cotangent(x, y):
    """What is stored does not depend on the arguments: nothing is left of what was there."""
    a, b = x.copy(), np.ones(6)
    for i in range(a.size):
        b[i] += 1.0
        a[i] *= y[i]
        a[i] = np.floor(a[i]) + 2.0
        a[i] += b[i]
        b[i] += x[i]
    return np.sum(a * y) + np.sum(b * b)


@PROGRAMS.at(floats(5, 3), floats(5))
@njit
def rows_and_records(x, y):
    state = np.zeros(5, POINT)
    for i in range(5):
        row = x[i].copy()
        row += y[i]
        row[0] -= row[1] * y[i]
        state[i].at += row[0] * row[2]
        state[i].by -= state[i].at * y[i]
        state[0].at += state[i].by
    total = 0.0
    for i in range(5):
        total += state[i].at * state[i].by
    return total


@PROGRAMS.at(floats(6), floats(6))
@njit(parallel=True)
def in_threads(x, y):
    a = x.copy()
    for i in prange(a.size):
        own = np.zeros(2)
        own[0] += x[i] * y[i]
        own[1] -= own[0] * own[0]
        a[i] += own[0] * own[1] - y[i]
        a[i] += a[i] * y[(i + 1) % 6]
    return np.sum(a * a)


@PROGRAMS.at(floats(6), floats(6), np.array([3, 1, 0, 5, 4, 2]))
@njit(parallel=True)
def in_threads_by_permutation(x, y, order):
    a = x.copy()
    for i in prange(order.size):
        a[order[i]] += y[i] * x[i]
    return np.sum(a * a * y)


@PROGRAMS.at(floats(6) + 0.5j * floats(6), floats(6))
@njit
def complex_elements(x, y):
    a = x.copy()
    for i in range(a.size):
        a[i] += y[i] * x[i]
        a[i] -= a[i] * a[0]
    total = 0.0
    for i in range(a.size):
        total += a[i].real ** 2 * y[i] + a[i].imag
    return total


@pytest.mark.parametrize("case", PROGRAMS, ids=str)
def test_gradient(case: Case):
    case.check()
