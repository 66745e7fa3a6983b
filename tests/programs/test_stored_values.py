"""Numbers that memory still holds are not saved: gradients as those of the oracle and of differences, and the tape."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numba import njit

import irad

_RANDOM = np.random.default_rng(7)
_ORACLE = irad.Options(plan="save_all")


@njit
def recurrence(x, a):
    s = np.empty_like(x)
    s[0] = x[0]
    for i in range(1, x.size):
        s[i] = a * x[i] + (1.0 - a) * s[i - 1] * s[i - 1]
    return np.sum(s * s)


@njit
def by_twos(x, a):
    s = np.zeros(2 * x.size)
    for i in range(2, 2 * x.size, 2):
        s[i] = math.sin(s[i - 2]) * x[i // 2] + a
    return np.sum(s)


@njit
def from_the_end(x, a):
    s = np.empty_like(x)
    last = x.size - 1
    s[last] = a
    for i in range(last - 1, -1, -1):
        s[i] = x[i] / (1.0 + s[i + 1] * s[i + 1])
    return np.sum(s)


@njit
def in_a_register(x, a):
    s = np.empty(x.size + 1)
    s[0] = kept = a
    for i in range(x.size):
        kept = math.tanh(kept * x[i])
        s[i + 1] = kept
    return np.sum(s[1:])


@njit
def by_rows(x, a):
    n = x.size
    s = np.empty((3, n))
    for row in range(3):
        s[row, 0] = a * (row + 1)
        for i in range(1, n):
            s[row, i] = s[row, i - 1] * s[row, i - 1] * x[i] + x[i]
    return np.sum(s[0] * s[1] * s[2])


@njit
def in_place(x, a):
    y = x.copy()
    for i in range(1, y.size):
        y[i] = y[i] * y[i - 1] * a
    return np.sum(y)


@njit
def twice_over(x, a):
    y = x.copy()
    for _ in range(2):
        for i in range(1, y.size):
            y[i] = y[i] * y[i - 1] + a
    return np.sum(y)


@njit
def forwards_and_backwards(x, a):
    y = np.empty_like(x)
    y[0] = a
    for i in range(1, y.size):
        y[i] = y[i - 1] * y[i - 1] * x[i]
    for i in range(y.size - 2, -1, -1):
        y[i] = y[i] * y[i + 1]
    return np.sum(y)


@njit
def left_early(x, a):
    s = np.zeros_like(x)
    s[0] = a
    for i in range(1, x.size):
        s[i] = s[i - 1] * s[i - 1] + x[i]
        if s[i] > 1.5:
            break
    return np.sum(s * x)


@njit
def overwritten_meanwhile(x, a):
    s = np.empty_like(x)
    s[0] = a
    for i in range(1, x.size):
        t = s[i - 1]
        s[i] = t * t * x[i]
        s[i // 2] = 0.5
    return np.sum(s)


@njit
def the_same_array_twice(x, a):
    return of_two(x, x, a)


@njit
def of_two(x, y, a):
    for i in range(1, x.size):
        x[i] = x[i - 1] * x[i - 1] * a + x[i]
        y[i // 2] += 0.25
    return np.sum(x) + np.sum(y)


@njit
def elementary(x, a):
    e, t, q = np.exp(x * a), np.tanh(x), np.empty_like(x)
    for i in range(x.size):
        q[i] = t[i] / (1.0 + e[i])
    return np.sum(e * t) + np.sum(q * q * q)


@njit
def sums(x, a):
    c = np.empty(x.size)
    for i in range(x.size):
        s = a
        for j in range(i):
            s += x[i] * x[j] * s
        c[i] = s
    return np.sum(c * c * c)


@njit
def overwritten_by_half(x, a):
    e = np.exp(x)
    total = np.sum(e * e) * a
    e[: x.size // 2] = 0.0
    return total + np.sum(e * x)


@njit
def new_in_each_iteration(x, a):
    total = 0.0
    for k in range(3):
        e = np.exp(x * a)
        total += np.sum(e * x) * k
    return total


@njit
def binned_by_itself(x, a):
    s = np.zeros((x.size, 8))
    total = a
    for i in range(x.size):
        t = 1.0 / x[i]
        s[i, int(t)] = t
        total += t * t
    return total + s[0, 1]


@njit
def binned_crosswise(x, a):
    s, r, k = np.zeros((x.size, 8)), np.zeros((x.size, 8)), np.arange(8)
    total = 0.0
    for i in range(x.size):
        t, u = 1.0 / x[i], 2.0 / (x[i] + a)
        s[i, int(u)] = t
        r[i, k[int(t)]] = u
        total += t * t * u
    return total + s[0, 1] * r[0, 1]


@njit
def first_above(x, a):
    places = np.zeros((x.size + 1, x.size + 1), np.int64)
    total = 0.0
    for i in range(x.size):
        j = 0
        while j < x.size - 1 and x[j] < a:
            j += 1
        places[i, j] = j
        total += x[j] * x[places[i, j]] * x[i]
    return total


PROGRAMS = [
    binned_by_itself,
    binned_crosswise,
    first_above,
    recurrence,
    by_twos,
    from_the_end,
    in_a_register,
    by_rows,
    in_place,
    twice_over,
    forwards_and_backwards,
    left_early,
    overwritten_meanwhile,
    the_same_array_twice,
    elementary,
    sums,
    overwritten_by_half,
    new_in_each_iteration,
]


def results(gradient: Any, x: Any, a: float) -> tuple[float, Any, float]:
    value, (by_x, by_a) = gradient(np.copy(x), a)
    return value, by_x, by_a


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: str(f.__name__))
def test_as_the_oracle_and_differences(f: Any):
    gradient = irad.value_and_grad(f, argnums=(0, 1))
    oracle = irad.value_and_grad(f, argnums=(0, 1), options=_ORACLE)
    for size in (1, 2, 3, 10):
        x, a = _RANDOM.uniform(0.3, 1.1, size), 0.7
        for found, expected in zip(results(gradient, x, a), results(oracle, x, a), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)
    direction, h = _RANDOM.normal(size=x.size), 1e-6
    difference = (f(x + h * direction, a + h) - f(x - h * direction, a - h)) / (2 * h)
    _, by_x, by_a = results(gradient, x, a)
    np.testing.assert_allclose(by_x @ direction + by_a, difference, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_views(dtype: type):
    x = _RANDOM.uniform(0.3, 1.1, 12).astype(dtype)[::-2]
    gradient, oracle = (irad.value_and_grad(recurrence, argnums=(0, 1), options=o) for o in (None, _ORACLE))
    for found, expected in zip(results(gradient, x, 0.5), results(oracle, x, 0.5), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5 if dtype is np.float32 else 1e-12)


@pytest.mark.parametrize("f", [recurrence, in_a_register, from_the_end], ids=lambda f: str(f.__name__))
def test_nothing_is_saved_for_each_element(f: Any):
    x = _RANDOM.uniform(0.3, 1.1, 1000)
    total = irad.tape_report(f, x, 0.7, argnums=(0, 1)).total
    both = 8 * (x.size + 1) * 2 + 512
    assert total < both, "more than the array that is kept, its shadow, and what is saved once"
    assert irad.tape_report(f, x, 0.7, argnums=(0, 1), options=_ORACLE).total > both
