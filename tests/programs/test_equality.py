"""Comparisons for equality choose a branch; the number compared keeps its derivative there."""

from __future__ import annotations

import math

import numba
import numpy as np
import pytest
from numba import njit

import irad


@njit
def branch(x):
    if x == 2.0:
        return x * 5.0 + math.sin(x)
    return x * 3.0


@njit
def early_return(x):
    if x != 2.0:
        return 1.0
    return x * x


@njit
def conditional_expression(x):
    return x * x if x == 2.0 else 7.0


@njit
def callee(x, special):
    if x == special:
        return x * x * x
    return 0.0


@njit
def argument_of_callee(x):
    return callee(x, 2.0)


@njit
def where(x):
    return np.where(np.full(3, x) == 2.0, x * x * x, 3.0).sum()


@numba.vectorize
def _ufunc(x):
    if x == 2.0:
        return x * x
    return 3.0 * x


@njit
def ufunc(x):
    return _ufunc(x)


@njit(fastmath=True)
def fast(x):
    if x == 2.0:
        return x * x
    return 3.0 * x


@pytest.mark.parametrize(
    ("f", "expected"),
    [
        (branch, 5.0 + math.cos(2.0)),
        (early_return, 4.0),
        (conditional_expression, 4.0),
        (argument_of_callee, 12.0),
        (where, 36.0),
        (ufunc, 4.0),
        (fast, 4.0),
    ],
)
def test_derivative_of_the_branch_at_a_constant(f, expected):
    assert irad.grad(f)(2.0) == pytest.approx(expected)
    assert irad.grad(f, options=irad.Options(plan="save_all"))(2.0) == pytest.approx(expected)


@njit
def single(x):
    if x == np.float32(2.0):
        return x * x
    return x


def test_single_precision():
    assert irad.grad(single)(np.float32(2.0)) == 4.0


@njit
def elements(x):
    total = 0.0
    for i in range(x.size):
        if x[i] == 1.0:
            total += x[i] * x[i] * i
        elif x[i] != 3.0:
            total += math.exp(x[i])
    return total


def test_elements_of_an_array():
    found = irad.grad(elements)(np.array([1.0, 1.0, 3.0, 2.0]))
    np.testing.assert_allclose(found, [0.0, 2.0, 0.0, math.exp(2.0)])


@njit(fastmath=True)
def same(x, y):
    if x == y:
        return 3.0 * x + y
    return x


@njit(fastmath=True)
def at_zero(x):
    if x == 0.0:
        return 5.0 * x + 2.0
    return 1.0


def test_fast_maths_does_not_merge_equal_numbers():
    assert irad.grad(same, (0, 1))(1.5, 1.5) == (3.0, 1.0)
    assert irad.grad(at_zero)(0.0) == 5.0


@njit
def root(x):
    return x**0.5


def test_the_power_one_half_has_the_slope_of_the_root():
    assert irad.grad(root)(4.0) == 0.25
    assert irad.grad(root)(0.0) == math.inf
    assert root(-0.0) == 0.0
    assert math.copysign(1.0, irad.value_and_grad(root)(-0.0)[0]) == 1.0
