"""Indices that go from function to function: integers made of active numbers are neither their bits nor addresses."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit, types

from tests.tools.catalogue import Case, Catalogue, floats

PROGRAMS = Catalogue()
pytestmark = pytest.mark.filterwarnings("ignore:First-class function type feature is experimental")


@njit
def nearest(points, left, right, node, x, best):
    if node < 0:
        return best
    if abs(points[node] - x) < abs(points[best] - x):
        best = node
    first, second = (left[node], right[node]) if x < points[node] else (right[node], left[node])
    best = nearest(points, left, right, first, x, best)
    if abs(points[node] - x) < abs(points[best] - x):
        best = nearest(points, left, right, second, x, best)
    return best


@njit
def count_ways(counts, values, out, k, node):
    if k < counts.size:
        counts[k] = node
        out[k] += values[node] * values[counts[k]] * (k + 1)
        node = count_ways(counts, values, out, k + 1, (node * 2 + 1) % values.size)
    return node


@PROGRAMS.at(np.array([0.5, 0.2, 0.9, 0.35, 1.1]))
@njit
def kd_tree(points):
    left, right = np.array([1, -1, -1, -1, -1]), np.array([2, 3, 4, -1, -1])
    counts, out = np.zeros(3, np.int64), np.zeros(3)
    at = nearest(points, left, right, 0, 0.3, 0)
    last = count_ways(counts, points, out, 0, at)
    return (out * out).sum() * points[last] * points[counts[1]]


@njit
def partition(v, order, low, high):
    pivot = v[order[high]]
    at = low
    for k in range(low, high):
        if v[order[k]] < pivot:
            order[at], order[k] = order[k], order[at]
            at += 1
    order[at], order[high] = order[high], order[at]
    return at


@njit
def order_in_place(v, order, low, high):
    if low < high:
        at = partition(v, order, low, high)
        order_in_place(v, order, low, at - 1)
        order_in_place(v, order, at + 1, high)


@PROGRAMS.at(floats(7))
@njit
def quicksort_of_indices(v):
    order = np.arange(v.size)
    order_in_place(v, order, 0, v.size - 1)
    total = 0.0
    for k in range(v.size):
        total += v[order[k]] ** 2 * (k + 1)
    return total


@njit
def interval(knots, x, low, high):
    if high - low <= 1:
        return low
    middle = (low + high) // 2
    return interval(knots, x, middle, high) if knots[middle] <= x else interval(knots, x, low, middle)


@njit
def fill_from(knots, table, out, at, k):
    if k == out.size:
        return at
    table[k] = at
    out[k] = knots[at] * knots[at + 1] * k
    at = interval(knots, knots[at] + 0.1 * k, 0, knots.size - 1)
    return fill_from(knots, table, out, at, k + 1)


@PROGRAMS.at(floats(6))
@njit
def search_of_intervals(v):
    knots = np.cumsum(v * v + 0.1)
    table, out = np.empty(4, np.int64), np.empty(4)
    last = fill_from(knots, table, out, interval(knots, knots[-1] * 0.6, 0, knots.size - 1), 0)
    return out.sum() * knots[last] * knots[table[2]]


@njit(types.int64(types.float64[::1], types.int64))
def largest(v, n):
    at = 0
    for k in range(n):
        if v[k] > v[at]:
            at = k
    return at


@njit(types.int64(types.float64[::1], types.int64))
def smallest(v, n):
    at = 0
    for k in range(n):
        if v[k] < v[at]:
            at = k
    return at


@njit
def store_from(v, table, out, at, k):
    if k == table.size:
        return at
    table[k] = at
    out[k] = v[table[k]] * (k + 2)
    return store_from(v, table, out, (at + 1) % v.size, k + 1)


@PROGRAMS.at(floats(5))
@njit
def indices_by_function_values(v):
    total = 0.0
    for choose in (largest, smallest):
        table, out = np.empty(3, np.int64), np.empty(3)
        at = choose(v, v.size)
        last = store_from(v, table, out, at, 0)
        total += (out * out).sum() * v[last] * v[table[0]]
    return total


@pytest.mark.parametrize("case", PROGRAMS, ids=str)
def test_gradient(case: Case):
    case.check()
