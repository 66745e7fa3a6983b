"""Bounds, L-BFGS, robust losses and GMRES for numbers in single precision, against closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

import irad
from irad.implicit import argmin, least_squares, newton

FEW = 10.0 * float(np.finfo(np.float32).eps)


@njit
def bowl(x, a):
    return ((x - a) ** 2).sum()


@njit
def capped(a, upper):
    x = argmin(bowl, np.zeros(3, np.float32), (a,), bounds=(None, upper))
    return x[0] + 2.0 * x[1] + 3.0 * x[2]


@pytest.mark.slow
def test_bounds():
    a, upper = np.array([0.5, 2.0, -1.0], np.float32), np.array([1.0, 1.0, -1.5], np.float32)
    value, (of_a, of_upper) = irad.value_and_grad(capped, argnums=(0, 1))(a, upper)
    assert value == pytest.approx(0.5 + 2.0 - 4.5, rel=FEW)
    assert of_a.dtype == of_upper.dtype == np.float32
    np.testing.assert_allclose(of_a, [1.0, 0.0, 0.0], rtol=FEW)
    np.testing.assert_allclose(of_upper, [0.0, 2.0, 3.0], rtol=FEW)


@njit
def chain(x, load):
    return ((x[1:] - x[:-1]) ** 2).sum() / 2 + (x**2).sum() / 2 - (load * x).sum()


@njit
def settled(load, weights):
    x = argmin(chain, np.zeros(40, np.float32), (load,), method="l-bfgs")
    return (x * weights).sum()


@pytest.mark.slow
def test_many_unknowns():
    hessian = 3.0 * np.eye(40) - np.eye(40, k=1) - np.eye(40, k=-1)
    hessian[0, 0] = hessian[-1, -1] = 2.0
    load, weights = (f(np.arange(40.0)).astype(np.float32) for f in (np.cos, np.sin))
    value, slope = irad.value_and_grad(settled)(load, weights)
    expected = np.linalg.solve(hessian, weights.astype(float))
    assert value == pytest.approx(expected @ load, rel=1e-4)
    assert slope.dtype == np.float32
    np.testing.assert_allclose(slope, expected, atol=1e-5)


@njit
def off(p, y):
    return p[0] - y


@njit
def middle(y, f_scale):
    return least_squares(off, np.zeros(1, np.float32), (y,), loss="huber", f_scale=f_scale)[0]


@pytest.mark.slow
def test_a_robust_loss():
    """Two of the values are too far up: the mean of the others, with a share of the scale for each."""
    y = np.array([0.1, 0.05, 0.2, 7.0, 9.0], np.float32)
    value, (of_y, of_scale) = irad.value_and_grad(middle, argnums=(0, 1))(y, np.float32(0.5))
    assert value == pytest.approx((0.35 + 2.0 * 0.5) / 3.0, rel=1e-5)
    assert of_y.dtype == np.float32
    np.testing.assert_allclose(of_y, [1.0 / 3.0] * 3 + [0.0] * 2, rtol=1e-5, atol=1e-6)
    assert of_scale == pytest.approx(2.0 / 3.0, rel=1e-5)


@njit
def coupled(x, a):
    return np.array([x[0] * x[0] + x[1] - a, x[1] - x[0]])


@njit
def without_a_matrix(a):
    x = newton(coupled, np.full(2, 2.0, np.float32), (a,), matrix_free=True)
    return x[0] + 2.0 * x[1]


@pytest.mark.slow
def test_gmres():
    """At x = y = 1 the unknowns have the slope 1 / (2 x + 1)."""
    a = np.float32(2.0)
    assert irad.value_and_grad(without_a_matrix)(a) == pytest.approx((3.0, 1.0), rel=1e-5)
    assert irad.jvp(without_a_matrix, (a,), (np.float32(0.5),))[1] == pytest.approx(0.5, rel=1e-5)
