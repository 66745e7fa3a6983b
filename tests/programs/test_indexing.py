"""Fancy and boolean indexing, gather and scatter, selection."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

from tests.tools.catalogue import Case, Catalogue, floats

PROGRAMS = Catalogue()


@PROGRAMS.at(floats(6), np.array([3, 0, 0, 5]))
@PROGRAMS.at(floats(6), np.array([], dtype=np.int64))
@njit
def gather(x, k):
    y = x[k]
    return np.sum(y * y * y)


@PROGRAMS.at(floats(6), np.array([3, -1, 0, 5]))
@njit
def gather_loop(x, k):
    s = 0.0
    for i in range(k.size):
        s += x[k[i]] ** 2 * (i + 1)
    return s


@PROGRAMS.at(floats(4), np.array([3, 0, 0, 5]))
@njit
def scatter_add(x, k):
    y = np.zeros(6)
    for i in range(4):
        y[k[i]] += x[i] * x[i]
    return np.sum(y * y)


@PROGRAMS.at(floats(4), np.array([3, 0, 0, 5]))
@njit
def scatter_store(x, k):
    y = np.ones(6)
    for i in range(4):
        y[k[i]] = x[i] * x[i]
    return np.sum(y * y)


@PROGRAMS.at(floats(4), np.array([3, 0, 1, 5]))
@njit
def fancy_store(x, k):
    y = np.ones(6)
    y[k] = x * 2.0
    return np.sum(y * y)


@PROGRAMS.at(floats(4), np.array([3, 1]))
@njit
def fancy_store_of_scalar(x, k):
    y = x.copy()
    y[k] = x[0] * x[1]
    return np.sum(y * y)


@PROGRAMS.at(floats(4, 3), np.array([3, 1, 1]))
@njit
def gather_rows(x, k):
    y = x[k]
    return np.sum(y * y) + y[1, 2] * x[0, 0]


@PROGRAMS.at(floats(4, 3), np.array([2, 0]))
@njit
def gather_columns(x, k):
    y = x[:, k]
    return np.sum(y * y * y)


@PROGRAMS.at(floats(6), np.array([True, False, True, True, False, False]))
@PROGRAMS.at(floats(6), np.zeros(6, np.bool_))
@njit
def boolean_gather(x, mask):
    y = x[mask]
    return np.sum(y * y) + 1.0


@PROGRAMS.at(floats(6, low=-1.0, high=1.0))
@njit
def boolean_of_the_data(x):
    y = x[x > 0]
    return np.sum(y * y)


@PROGRAMS.at(floats(6), np.array([True, False, True, True, False, False]))
@njit
def boolean_store(x, mask):
    y = x * x
    y[mask] = 0.5
    return np.sum(y * x)


@PROGRAMS.at(floats(3), np.array([True, False, True, True, False]))
@njit
def boolean_store_of_array(x, mask):
    y = np.zeros(5)
    y[mask] = x
    return np.sum(y * y * np.arange(5))


@PROGRAMS.at(floats(6, low=-1.0, high=1.0))
@njit
def where_of_three(x):
    return np.sum(np.where(x > 0, x * x, -3.0 * x))


@PROGRAMS.at(floats(6), 1.2)
@njit
def where_with_scalar(x, a):
    return np.sum(np.where(x > 1.0, x, a * a) * x)


@PROGRAMS.at(floats(2, 3), floats(2, 3, seed=1))
@njit
def where_of_matrices(x, y):
    return np.sum(np.where(x < y, x, y) ** 2)


@PROGRAMS.at(floats(6, low=-1.0, high=1.0))
@njit
def where_indices(x):
    (k,) = np.where(x > 0)
    s = 0.0
    for i in k:
        s += x[i] ** 3
    return s


@PROGRAMS.at(floats(6, low=-1.0, high=1.0))
@njit
def nonzero_and_flatnonzero(x):
    k = np.flatnonzero(x > 0.1)
    j = (x < 0.0).nonzero()[0]
    s = 0.0
    for i in k:
        s += x[i] ** 2
    for i in j:
        s += x[i] ** 3
    return s


@PROGRAMS.at(floats(6), np.array([5, 0, 2]))
@njit
def take(x, k):
    return np.sum(np.take(x, k) ** 2) * x.take(1)


@PROGRAMS.at(floats(6))
@njit
def argsort_gather(x):
    k = np.argsort(x)
    y = x[k]
    return np.sum(y * y * np.arange(6))


@PROGRAMS.at(floats(6))
@njit
def argmax_and_argmin(x):
    return x[np.argmax(x)] ** 2 * x[np.argmin(x)] + x[x.argmax() - 1]


@PROGRAMS.at(floats(6), 1.1)
@njit
def searchsorted_interpolation(x, v):
    y = np.sort(x)
    k = min(max(np.searchsorted(y, v), 1), 5)
    t = (v - y[k - 1]) / (y[k] - y[k - 1])
    return t * t + y[k]


@PROGRAMS.at(floats(4, 4), np.array([0, 2, 3]), np.array([1, 1, 0]))
@njit
def pairs_of_indices(x, i, j):
    s = 0.0
    for k in range(3):
        s += x[i[k], j[k]] * x[j[k], i[k]]
    return s


@PROGRAMS.at(floats(5), np.array([4, 2, 0, 1, 3]))
@njit
def permutation_in_place(x, p):
    y = np.empty(5)
    for i in range(5):
        y[p[i]] = x[i]
    for i in range(5):
        x[i] = y[p[i]] * y[i]
    return np.sum(x * np.arange(5))


@PROGRAMS.at(floats(7), np.array([0, 2, 2, 5, 7]), np.array([1, 0, 3, 2, 2, 0, 1]), floats(4, seed=2))
@njit
def sparse_matrix_times_vector(data, indptr, indices, v):
    s = 0.0
    for row in range(4):
        t = 0.0
        for k in range(indptr[row], indptr[row + 1]):
            t += data[k] * v[indices[k]]
        s += t * t
    return s


@PROGRAMS.at(floats(6), np.array([0, 1, 0, 2, 1, 0]))
@njit
def group_means(x, group):
    total = np.zeros(3)
    count = np.zeros(3)
    for i in range(6):
        total[group[i]] += x[i]
        count[group[i]] += 1
    mean = total / count
    s = 0.0
    for i in range(6):
        s += (x[i] - mean[group[i]]) ** 2
    return s


@pytest.mark.parametrize("case", PROGRAMS, ids=str)
def test_gradient(case: Case):
    case.check()
