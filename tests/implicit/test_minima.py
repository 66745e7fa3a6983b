"""`argmin` and `least_squares` against closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit
from scipy import optimize

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


OUTLIERS = np.array([0.1, -0.2, 0.05, 6.0, 0.15])
PLACES = np.linspace(0.0, 1.0, 5)


@njit
def off_line(p, x, y):
    return p[0] + p[1] * x - y


@njit
def robust(y, f_scale):
    p = least_squares(off_line, np.zeros(2), (PLACES, y), loss="cauchy", f_scale=f_scale)
    return p[0] - 2.0 * p[1]


@pytest.mark.slow
def test_robust_losses():
    """Against SciPy, and in other units."""
    for loss in ("soft_l1", "huber", "cauchy", "arctan"):
        for scale in (0.3, 1.0):
            expected = optimize.least_squares(
                off_line, np.zeros(2), "3-point", (-np.inf, np.inf), "trf", 1e-15, 1e-15, 1e-12, 1.0, loss, scale,
                args=(PLACES, OUTLIERS),
            )  # fmt: skip
            found, far = (
                least_squares(off_line, np.zeros(2), (PLACES, unit * OUTLIERS), loss=loss, f_scale=unit * scale)
                for unit in (1.0, 1e6)
            )
            np.testing.assert_allclose(found, expected.x, rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(1e-6 * far, found, rtol=1e-8)


@pytest.mark.slow
def test_derivatives_of_a_robust_loss():
    of_y, of_scale = irad.grad(robust, argnums=(0, 1))(OUTLIERS, 0.3)
    h, change = 1e-6, np.cos(np.arange(5.0))
    slope = (robust(OUTLIERS + h * change, 0.3) - robust(OUTLIERS - h * change, 0.3)) / (2.0 * h)
    assert of_y @ change == pytest.approx(slope, rel=1e-6)
    slope = (robust(OUTLIERS, 0.3 + h) - robust(OUTLIERS, 0.3 - h)) / (2.0 * h)
    assert of_scale == pytest.approx(slope, rel=1e-6)


@pytest.mark.slow
def test_losses_that_are_none():
    with pytest.raises(irad.SignatureError, match="loss='l1'"):
        least_squares(misfit, np.zeros(2), (PLACES, OUTLIERS), loss="l1")
    with pytest.raises(ValueError, match="f_scale that is not positive"):
        least_squares(misfit, np.zeros(2), (PLACES, OUTLIERS), loss="huber", f_scale=0.0)


def test_no_minimum():
    with pytest.raises(ValueError, match="found no minimum"):
        argmin(njit(lambda x, a: a * x), 0.0, 1.0)
    with pytest.raises(ValueError, match="found no minimum"):
        least_squares(bent, np.array([5.0]), 1.5, maxiter=2)
