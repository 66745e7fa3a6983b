"""Programs whose tapes are counted: nested loops, threads, recursion, lists, early returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from numba import njit, prange


@dataclass(frozen=True)
class Case:
    """A function with the arguments of one call."""

    function: Any
    args: tuple[Any, ...]

    @property
    def name(self) -> str:
        return str(self.function.py_func.__name__)


@njit
def ragged_products(x, counts):
    total = 0.0
    for i in range(x.size):
        product = 1.0
        for j in range(counts[i]):
            product *= np.sin(x[i] + j)
            for k in range(j):
                product += np.exp(-product) * k
        total += product
    return total


@njit
def smoothed(x, rounds):
    y = x.copy()
    for _ in range(rounds):
        z = np.empty_like(y)
        z[0], z[-1] = y[0], y[-1]
        for i in range(1, y.size - 1):
            z[i] = 0.5 * np.tanh(y[i - 1]) + 0.5 * y[i + 1] * y[i]
        y = z
    return (y * y).sum()


@njit(parallel=True)
def rows_in_threads(a, w):
    out = np.zeros(a.shape[0])
    for i in prange(a.shape[0]):
        for j in range(a.shape[1]):
            out[i] += np.exp(a[i, j] * w[j])
    return out.sum()


@njit(parallel=True)
def reduction_in_threads(x, limit):
    total = 0.0
    for i in prange(x.size):
        value = x[i]
        while value > limit:
            value = np.sqrt(value) * 0.9
        total += value * x[i]
    return total


@njit
def tree_sum(x, first, last):
    if last - first == 1:
        return np.sin(x[first])
    middle = (first + last) // 2
    return tree_sum(x, first, middle) * tree_sum(x, middle, last) + x[first]


@njit
def tree(x):
    return tree_sum(x, 0, x.size) * 0.5


@njit
def two_ways_down(x, depth):
    if depth == 0:
        return x * x
    if x > 1.0:
        return two_ways_down(x * 0.5, depth - 1) * x
    return two_ways_down(np.exp(x), depth - 1) + x


@njit
def descent(x, depth):
    return two_ways_down(x, depth) * x


@njit
def list_of_powers(x, n):
    powers = [1.0]
    for i in range(n):
        powers.append(powers[i] * x * np.cos(x))
    total = 0.0
    for each in powers:
        total += each * each
    return total


@njit
def stack_of_numbers(x):
    stack = [value * 2.0 for value in x]
    total = 1.0
    while len(stack) > 1:
        a, b = stack.pop(), stack.pop()
        total += np.sin(a * b)
        if len(stack) > 0:
            stack.append(a + b)
    return total


@njit
def first_beyond(x, limit):
    total = 0.0
    for i in range(x.size):
        total += np.exp(x[i])
        if total > limit:
            return total * x[i]
    return -total


@njit
def found_in_rows(a, limit):
    best = 0.0
    for i in range(a.shape[0]):
        row = a[i] * a[i]
        for j in range(a.shape[1]):
            best = best * 0.5 + np.sqrt(row[j])
            if best > limit:
                return best + row.sum()
    return best


_RANDOM = np.random.default_rng(7)
_MATRIX = 0.5 + _RANDOM.random((6, 5))
CASES = [
    Case(ragged_products, (_MATRIX[0].copy(), np.array([3, 0, 4, 1, 2]))),
    Case(smoothed, (_MATRIX.ravel().copy(), 4)),
    Case(rows_in_threads, (_MATRIX, _MATRIX[1].copy())),
    Case(reduction_in_threads, (3.0 * _MATRIX.ravel(), 1.0)),
    Case(tree, (_MATRIX.ravel()[:11].copy(),)),
    Case(descent, (0.3, 6)),
    Case(list_of_powers, (0.8, 9)),
    Case(stack_of_numbers, (numba.typed.List([0.3, 0.8, 1.1, 0.2, 0.9]),)),
    Case(first_beyond, (_MATRIX.ravel().copy(), 9.0)),
    Case(found_in_rows, (_MATRIX, 2.2)),
]
