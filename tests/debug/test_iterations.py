"""Numbers of iterations are those of the source, whatever LLVM makes of the first and the last."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numba import njit

import irad
from tests.debug.lines import DEBUG, assert_began, error_of


@njit(error_model="numpy")
def with_a_flag(x):
    started, last, total = False, 0.0, 0.0
    for i in range(x.size):  # loop
        root = math.sqrt(x[i])  # here
        if started:
            total += root * last
        else:
            total += root
        last = x[i]
        started = True
    return total


@njit(error_model="numpy")
def with_a_try(x):
    total = 0.0
    for i in range(x.size):  # loop
        try:
            if x[i] > 1e9:
                raise ValueError("too large")
            total += math.sqrt(x[i])  # here
        except Exception:
            total += 1.0
    return total


@njit(error_model="numpy")
def with_another_end(x):
    total, n = 0.0, x.size
    for i in range(n):  # loop
        root = math.sqrt(x[i])  # here
        if i == n - 1:
            total *= root
        else:
            total += root
    return total


@njit(error_model="numpy")
def roots(x):
    for i in range(x.size):
        yield math.sqrt(x[i])


@njit(error_model="numpy")
def of_a_generator(x):
    total = 0.0
    for root in roots(x):
        total += root
    return total


def with_negative(place: int, dtype: type = np.float64) -> np.ndarray:
    x = np.ones(12, dtype)
    x[place] = -2.0
    return x


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("function", [with_a_flag, with_a_try, with_another_end])
def test_of_loops_that_begin_or_end_in_another_way(function, dtype):
    gradient = irad.grad(function, options=DEBUG)
    for place in (0, 1, 5, 11):
        error = error_of(gradient, with_negative(place, dtype))
        assert_began(error, function, "# here", {"# loop": place}, "sqrt(-2.0)")
    np.testing.assert_allclose(
        gradient(np.arange(1.0, 13.0, dtype=dtype)), irad.grad(function)(np.arange(1.0, 13.0, dtype=dtype)), rtol=1e-6
    )


def test_of_generators():
    gradient = irad.grad(of_a_generator, options=DEBUG)
    for place in (0, 5, 11):
        error = error_of(gradient, with_negative(place))
        assert [number for _, number in error.loops] == [place]
        assert "sqrt(-2.0)" in error.operation


@njit(error_model="numpy")
def outer(f, x):
    return f(x) * 2.0


def test_behind_function_pointers():
    error = error_of(irad.grad(outer, 1, options=DEBUG), roots_by_address, with_negative(5))
    assert [number for _, number in error.loops] == [5]


@njit("float64(float64[::1])", error_model="numpy")
def roots_by_address(x):
    total, started = 0.0, False
    for i in range(x.size):
        if started:
            total += math.sqrt(x[i])
        started = True
    return total
