"""nan and inf that the source guards against stay out of the gradient; ties and edges follow the written policy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numba import njit

import irad
from tests.tools.catalogue import Case, Catalogue

PROGRAMS = Catalogue()

WITH_ZEROS = np.array([1.0, 0.0, 2.0, 0.0, -1.5])


@PROGRAMS.at(np.array([1.0, 0.5, 2.0, -1.5]))
@njit
def reciprocals_without_zeros(x):
    s = 0.0
    for v in x:
        if v != 0:
            s += 1 / v
    return s


@PROGRAMS.at(np.array([1.0, -0.5, 2.0]))
@njit
def roots_of_positives(x):
    s = 0.0
    for v in x:
        if v > 0:
            s += math.sqrt(v)
    return s


@PROGRAMS.at(np.array([1.0, -0.5, 2.0]))
@njit
def where_log(x):
    return np.sum(np.where(x > 0, np.log(np.abs(x)), 0.0))


@PROGRAMS.at(np.array([1.0, 30.0, -2.0]), 700.0)
@njit
def overflow_is_cut(x, limit):
    s = 0.0
    for v in x:
        t = v * v
        s += math.exp(t) if t < limit else 0.0
    return math.log(s)


@PROGRAMS.at(0.5, np.nan, np.inf, argnums=(0,))
@njit
def ignored_nan_arguments(x, y, z):
    if math.isnan(y):
        return x * x
    return y * z


@PROGRAMS.at(np.array([0.5, 1.5, -0.5]))
@njit
def infinite_start_of_a_minimum(x):
    best = np.inf
    for v in x:
        if v * v < best:
            best = v * v + 0.1 * v
    return best


@PROGRAMS.at(np.array([0.5, 1.5, -0.5]))
@njit
def nan_filled_buffer(x):
    y = np.full(5, np.nan)
    for i in range(3):
        y[i] = x[i] ** 2
    s = 0.0
    for v in y:
        if not np.isnan(v):
            s += v
    return s


@PROGRAMS.at(0.0, 1.5)
@njit
def zero_times_something_large(x, y):
    return x * math.exp(y * 100)


@pytest.mark.parametrize("case", PROGRAMS, ids=str)
def test_gradient(case: Case):
    case.check()


def check(f, argument, expected):
    for plan in ("default", "save_all"):
        found = irad.grad(f, options=irad.Options(plan=plan))(argument)
        np.testing.assert_allclose(found, expected, rtol=1e-12, err_msg=plan)


def test_reciprocal_guarded_by_a_branch():
    @irad.jit
    def f(x):
        s = 0.0
        for i in range(x.size):
            if x[i] != 0:
                s += 1 / x[i]
        return s

    check(f, WITH_ZEROS.copy(), [-1.0, 0.0, -0.25, 0.0, -1 / 2.25])


def test_root_guarded_by_a_branch():
    @irad.jit
    def f(x):
        return math.sqrt(x) if x > 0 else 0.0

    check(f, 0.0, 0.0)
    check(f, 4.0, 0.25)


def test_reciprocal_guarded_by_where():
    @irad.jit
    def f(x):
        return np.sum(np.where(x != 0, 1 / np.where(x != 0, x, 1.0), 0.0))

    check(f, WITH_ZEROS.copy(), [-1.0, 0.0, -0.25, 0.0, -1 / 2.25])


def test_reciprocal_in_an_unguarded_branch_of_where():
    @irad.jit
    def f(x):
        return np.sum(np.where(x != 0, 1 / x, 0.0))

    check(f, WITH_ZEROS.copy(), [-1.0, 0.0, -0.25, 0.0, -1 / 2.25])


def test_log_of_zero_selected_away():
    @irad.jit
    def f(x):
        y = np.log(x)
        s = 0.0
        for i in range(x.size):
            s += y[i] if x[i] > 0 else x[i]
        return s

    check(f, np.array([0.0, 2.0]), [1.0, 0.5])


def test_root_of_zero_times_zero():
    @irad.jit
    def f(x):
        return 0.0 * math.sqrt(x) + x

    check(f, 0.0, 1.0)


@pytest.mark.parametrize("count", [2, 3])
def test_tied_maximum_has_weights_that_sum_to_one(count: int):
    @irad.jit
    def largest(x):
        return np.max(x)

    found = irad.grad(largest)(np.full(count, 2.0))
    assert found.sum() == pytest.approx(1.0, rel=1e-12)
    assert (found >= 0).all()


def test_tied_scalars_have_weights_that_sum_to_one():
    @irad.jit
    def f(x, y):
        return max(x, y) + 10 * min(x, y)

    a, b = irad.grad(f, (0, 1))(1.5, 1.5)
    assert a + b == pytest.approx(11.0, rel=1e-12)
    assert {a, b} <= {1.0, 10.0, 5.5, 11.0, 0.0}


def test_absolute_value_at_zero_is_a_subgradient():
    @irad.jit
    def f(x):
        return abs(x)

    assert -1.0 <= irad.grad(f)(0.0) <= 1.0


def test_product_with_zeros_is_exact():
    @irad.jit
    def f(x):
        return np.prod(x)

    check(f, np.array([2.0, 0.0, 3.0]), [0.0, 6.0, 0.0])
    check(f, np.array([0.0, 0.0, 3.0]), [0.0, 0.0, 0.0])


def test_norm_at_zero_is_not_nan():
    @irad.jit
    def f(x):
        s = 0.0
        for v in x:
            s += v * v
        return math.sqrt(s) if s > 0 else 0.0

    check(f, np.zeros(3), [0.0, 0.0, 0.0])
