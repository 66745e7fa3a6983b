"""Largest and smallest numbers so far: values to the bit, gradients as those of the oracle and of differences."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numba import njit

import irad

_RANDOM = np.random.default_rng(5)
_EXACT = irad.Options(vector_math=False)
_ORACLE = irad.Options(plan="save_all")


@njit
def largest(x, start):
    m = start
    for i in range(x.size):
        if x[i] > m:
            m = x[i]
    return m * m


@njit
def soft_largest(x, start):
    total = 0.0
    for row in range(3):
        m = start - row
        for i in range(row, x.size):
            m = max(m, x[i])
        s = 0.0
        for i in range(x.size):
            s += math.exp(x[i] - m)
        total += m * row + math.log(s + 1.0)
    return total


@njit
def of_what_is_stored(x, start):
    work = np.empty(x.size)
    low = high = start
    for i in range(x.size):
        work[i] = math.sin(x[i]) * x[i]
        low, high = min(low, work[i]), max(high, work[i])
    total = high * low
    for i in range(x.size):
        work[i] = 0.0
        total += high * x[i]
    return total


@njit
def overwritten_later(x, start):
    m = start
    work = x.copy()
    for i in range(x.size):
        m = max(m, work[i])
        work[(i * 2) % x.size] = 3.0
    return m * start


@njit
def in_one_place(x, start):
    cell = np.zeros(1)
    m = start
    for i in range(x.size):
        cell[0] = x[i] * x[i]
        m = max(m, cell[0])
    return m


@njit
def left_in_the_middle(x, start):
    m = start
    for i in range(x.size):
        v = x[i]
        if v > 1.5:
            return v * m
        if v > m:
            m = v
    return m * 2.0


@njit
def last_positive(x, start):
    m = start
    for i in range(x.size - 1, -1, -1):
        m = x[i] if x[i] > 0.0 else m
    return m * x[0] if x.size else m


@njit
def second_largest(x, start):
    first = second = start
    for i in range(x.size):
        if x[i] > first:
            first, second = x[i], first
        elif x[i] > second:
            second = x[i]
    return first * second


@njit
def library(x, start):
    y = np.append(x, start)
    return np.max(y) * y.min() + y[np.argmax(y)] + np.ptp(y)


FUNCTIONS = (
    *(largest, soft_largest, of_what_is_stored, overwritten_later, in_one_place),
    *(left_in_the_middle, last_positive, second_largest, library),
)
INPUTS = (
    np.array([]),
    np.array([0.7]),
    _RANDOM.normal(size=7),
    np.array([0.2, 1.9, 0.3, 2.5]),
    np.repeat(_RANDOM.normal(size=9), 2)[::2],
    _RANDOM.normal(size=5).astype(np.float32),
)


@pytest.mark.parametrize("options", [_EXACT, replace(_EXACT, speculative=False, verify=True)], ids=["", "verify"])
@pytest.mark.parametrize("x", INPUTS, ids=["none", "one", "some", "beyond", "strided", "single"])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.py_func.__name__)
def test_extremes(function: Any, x: Any, options: irad.Options):
    start = -0.4
    value, found = irad.value_and_grad(function, argnums=(0, 1), options=options)(x, start)
    assert value == function(x, start)
    for mine, other in zip(found, irad.grad(function, (0, 1), options=_ORACLE)(x, start), strict=True):
        np.testing.assert_allclose(mine, other, rtol=2e-6 if x.dtype == np.float32 else 1e-13, atol=1e-15)
    if x.dtype == np.float64:
        steps = 1e-6 * np.eye(x.size)
        differences = [(function(x + step, start) - function(x - step, start)) / 2e-6 for step in steps]
        np.testing.assert_allclose(found[0], differences, atol=1e-8)
        along = (function(x, start + 1e-6) - function(x, start - 1e-6)) / 2e-6
        np.testing.assert_allclose(found[1], along, atol=1e-8)


@pytest.mark.parametrize(
    "x", [[1.0, 3.0, 3.0, 2.0], [math.nan, 1.0, 2.0], [1.0, math.nan], [-math.inf] * 3, [math.inf]]
)
@pytest.mark.parametrize("function", [largest, left_in_the_middle, last_positive, second_largest, library])
def test_ties_and_what_is_not_finite(function: Any, x: list[float]):
    with np.errstate(all="ignore"):
        found = irad.grad(function, (0, 1))(np.array(x), 0.5)
        wanted = irad.grad(function, (0, 1), options=_ORACLE)(np.array(x), 0.5)
    for mine, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(mine, other)


@njit
def of_constants(x, limits):
    m = x[0] * x[1]
    for i in range(limits.size):
        m = max(m, limits[i])
    return m * x[1]


def test_constant_memory_stays_constant():
    x, limits = np.array([0.7, 1.2]), np.array([0.1, 0.2])
    for highest, expected in ((0.2, [1.44, 1.68]), (3.0, [0.0, 3.0])):
        shadow, limits[1] = np.zeros(2), highest
        irad.autodiff(irad.Reverse, of_constants, irad.Duplicated(x, shadow), irad.Const(limits))
        np.testing.assert_allclose(shadow, expected)
    assert "shadow of limits" not in str(irad.inspect(of_constants, x, limits).stage("tape"))


@pytest.mark.parametrize("function", [largest, soft_largest])
def test_second_derivatives(function: Any):
    x = _RANDOM.normal(size=4)
    found = irad.hessian(function)(x, -0.4)
    gradient = irad.grad(function, options=_ORACLE)
    wanted = [(gradient(x + step, -0.4) - gradient(x - step, -0.4)) / 2e-5 for step in 1e-5 * np.eye(4)]
    np.testing.assert_allclose(found, wanted, atol=1e-8)


def test_nothing_is_saved_for_each_element():
    tapes = [irad.tape_report(largest, np.linspace(0.0, 1.0, size), 0.5, argnums=(0, 1)).total for size in (10, 1000)]
    assert tapes[0] == tapes[1]


@njit
def above(start, x):
    m = start
    for i in range(x.size):
        m = max(m, x[i])
    return m


above_by_call = irad.rules.noinline(njit(above.py_func))


@njit
def above_constants(x, limits):
    return above_by_call(x[0] * x[1], limits) * x[1]


@njit
def above_bytes(x, content):
    return above(x[0] * x[1], np.frombuffer(content, dtype=np.float64)) * x[1]


@pytest.mark.parametrize("highest", [0.2, 3.0])
def test_memory_that_cannot_have_a_shadow(highest: float):
    x, limits = np.array([0.7, 1.2]), np.array([0.1, highest])
    expected = [1.44, 1.68] if highest < 1.0 else [0.0, highest]
    np.testing.assert_allclose(irad.grad(above_constants)(x, limits), expected)
    np.testing.assert_allclose(irad.grad(above_bytes)(x, limits.tobytes()), expected)
