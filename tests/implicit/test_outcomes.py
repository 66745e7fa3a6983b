"""`full_output=True`: a failure that compiled code handles, and the derivative with and without success."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

import irad
from irad.implicit import Solution, argmin, brentq, fixed_point, least_squares, newton


@njit
def square(x, a):
    return x * x - a


@njit
def halved(x, a):
    return 0.5 * np.cos(x) + a if a < 2.0 else x + 1.0


@njit
def bowl(x, a):
    return np.cosh(x) - a * x if a < 2.0 else a * x


@njit
def by_newton(a):
    found = newton(square, 1.0, (a,), full_output=True)
    return 3.0 * found.x if found.success else -5.0 * a


@njit
def by_brentq(a):
    found = brentq(square, 0.0, 2.0, (a,), maxiter=20 if a < 2.0 else 1, full_output=True)
    return 3.0 * found.x if found.success else -5.0 * a


@njit
def by_fixed_point(a):
    found = fixed_point(halved, 0.0, (a,), full_output=True)
    return 3.0 * found.x if found.success else -5.0 * a


@njit
def by_argmin(a):
    found = argmin(bowl, 0.0, (a,), full_output=True)
    return 3.0 * found.x if found.success else -5.0 * a


CASES = [
    (by_newton, 1.44, -1.0, 3.0 * 1.2, 1.5 / 1.2),
    (by_brentq, 1.44, 3.0, 3.0 * 1.2, 1.5 / 1.2),
    (by_argmin, 0.75, 2.5, 3.0 * np.arcsinh(0.75), 3.0 / 1.25),
]


@pytest.mark.slow
@pytest.mark.parametrize(("f", "a", "failing", "value", "slope"), CASES, ids=lambda each: getattr(each, "__name__", ""))
def test_a_failure_is_handled(f, a, failing, value, slope):
    both = irad.value_and_grad(f)
    assert both(a) == pytest.approx((value, slope), rel=1e-9)
    assert both(failing) == (-5.0 * failing, -5.0)
    assert irad.jvp(f, (a,), (2.0,)) == pytest.approx((value, 2.0 * slope), rel=1e-9)
    assert irad.jvp(f, (failing,), (2.0,)) == (-5.0 * failing, -10.0)


@pytest.mark.slow
def test_a_fixed_point_that_is_none():
    value, slope = irad.jvp(by_fixed_point, (0.1,), (1.0,))
    x = value / 3.0
    assert x == pytest.approx(0.5 * np.cos(x) + 0.1, rel=1e-9)
    assert slope == pytest.approx(3.0 / (1.0 + 0.5 * np.sin(x)), rel=1e-9)
    assert irad.jvp(by_fixed_point, (3.0,), (1.0,)) == (-15.0, -5.0)


@njit
def used_all_the_same(a):
    return newton(square, 1.0, (a,), full_output=True).x


def test_the_derivative_without_success_is_nan():
    assert np.isnan(irad.grad(used_all_the_same)(-1.0))
    assert np.isnan(irad.jvp(used_all_the_same, (-1.0,), (1.0,))[1])
    assert irad.grad(used_all_the_same)(4.0) == pytest.approx(0.25)


def test_second_derivatives():
    second = irad.grad(irad.grad(by_newton))
    assert second(4.0) == pytest.approx(-3.0 / 32.0, rel=1e-9)
    assert second(-1.0) == 0.0


@njit
def named(x, a):
    return x["low"] * x["low"] - a, x["high"] - x["low"]


@njit
def bent(p, y):
    return np.array([p[0] ** 2 - y, p[0]])


@pytest.mark.slow
def test_what_is_counted():
    found = newton(square, 1.0, (4.0,), full_output=True)
    assert isinstance(found, Solution)
    assert found.success
    assert (found.nit, found.nfev) == (6, 7)
    assert newton(square, 2.0, (4.0,), full_output=True)[1:] == (True, 0, 1)
    assert newton(square, 1e3, (4.0,), maxiter=2, full_output=True)[1:3] == (False, 6)  # two of each search
    assert newton(square, 0.0, (4.0,), full_output=True) == (0.0, False, 1, 3)  # where its derivative is zero
    x = newton(named, {"low": 1.0, "high": 0.0}, (4.0,), full_output=True).x
    assert (x["low"], x["high"]) == pytest.approx((2.0, 2.0))
    found = least_squares(bent, np.array([2.0]), 1.5, full_output=True)
    assert found.success
    assert 2 <= found.nit < found.nfev <= 20
    assert found.x == pytest.approx([1.0])
    found = least_squares(bent, np.array([5.0]), 1.5, maxiter=2, full_output=True)
    assert not found.success
    assert found.nit == 2
    assert 1.0 < found.x[0] < 5.0
    found = argmin(bowl, 0.0, (0.75,), full_output=True)
    assert found.success
    assert 1 < found.nit < found.nfev < 40
