"""`argmin` and `least_squares` against closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

import irad
from irad.implicit import argmin, least_squares


@njit
def valley(x, a):
    return (x[0] - a[0]) ** 2 + 10.0 * (x[1] - a[1] * x[0] ** 2) ** 2


@njit
def lowest(a):
    x = argmin(valley, np.array([-1.0, 1.0]), a)
    return x[0] + x[1] ** 2


def test_the_minimum_of_an_inner_problem():
    """It is at (a0, a1 a0²)."""
    a0, a1 = a = np.array([1.5, 0.8])
    value, slope = irad.value_and_grad(lowest)(a)
    assert value == pytest.approx(a0 + a1**2 * a0**4, rel=1e-7)
    np.testing.assert_allclose(slope, [1.0 + 4.0 * a1**2 * a0**3, 2.0 * a1 * a0**4], rtol=1e-6)
    tangent = irad.jvp(lowest, (a,), (np.array([1.0, -2.0]),))[1]
    assert tangent == pytest.approx(slope[0] - 2.0 * slope[1], rel=1e-10)


@njit
def misfit(p, x, y):
    return p[0] * x**2 + p[1] - y


@njit
def bent(p, y):
    return np.array([p[0] ** 2 - y, p[0]])


@pytest.mark.slow
def test_least_squares():
    x, y, weights = np.linspace(0.0, 1.0, 5), np.array([1.0, 0.5, 2.0, 1.5, 3.0]), np.array([2.0, -1.0])

    def fitted(y):
        return (least_squares(misfit, np.zeros(2), (x, y)) * weights).sum()

    projection = np.linalg.pinv(np.stack([x**2, np.ones(5)], axis=1))
    value, slope = irad.value_and_grad(fitted)(y)
    assert value == pytest.approx(weights @ projection @ y, rel=1e-7)
    np.testing.assert_allclose(slope, weights @ projection, rtol=1e-7)


@pytest.mark.slow
def test_residuals_that_stay_count_with_their_second_derivatives():
    """The minimum of (p² - y)² + p² is p² = y - 1/2; without the second derivatives the slope would be another."""
    slope = irad.jvp(lambda y: least_squares(bent, np.array([1.0]), y)[0], (1.5,), (1.0,))
    assert slope == pytest.approx((1.0, 0.5), rel=1e-7)


def test_no_minimum():
    with pytest.raises(ValueError, match="found no minimum"):
        argmin(njit(lambda x, a: a * x), 0.0, 1.0)
    with pytest.raises(ValueError, match="found no minimum"):
        least_squares(bent, np.array([5.0]), 1.5, maxiter=2)
