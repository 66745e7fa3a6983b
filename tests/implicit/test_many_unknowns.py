"""`argmin` in many unknowns, against closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

import irad
from irad.implicit import argmin


@njit
def chained(x, a):
    """The function of Rosenbrock in many unknowns, shifted."""
    y = x - a[0]
    return (100.0 * (y[1:] - y[:-1] ** 2) ** 2 + (a[1] - y[:-1]) ** 2).sum()


@njit
def membrane(x, load):
    return ((x[1:] - x[:-1]) ** 2).sum() / 2.0 + x[0] ** 2 / 2.0 + (0.25 * x**4 - load * x).sum()


@njit
def settled(load):
    return argmin(membrane, np.zeros(1500), load, maxiter=3000, method="l-bfgs")


@pytest.mark.slow
def test_many_unknowns():
    x = argmin(chained, np.zeros(30), np.array([0.5, 1.0]), maxiter=2000, method="l-bfgs")
    np.testing.assert_allclose(x, 1.5, rtol=1e-7)
    load, weights = np.cos(0.01 * np.arange(1500)), np.sin(np.arange(1500.0))
    x, pull = irad.vjp(settled, load)
    forces = x**3 - load
    forces[1:] += x[1:] - x[:-1]
    forces[:-1] -= x[1:] - x[:-1]
    forces[0] += x[0]
    np.testing.assert_allclose(forces, 0.0, atol=1e-8)
    hessian = np.diag(3.0 * x**2) + 2.0 * np.eye(1500) - np.eye(1500, k=1) - np.eye(1500, k=-1)
    hessian[-1, -1] -= 1.0
    expected = np.linalg.solve(hessian, weights)
    np.testing.assert_allclose(pull(weights)[0], expected, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(irad.jvp(settled, (load,), (weights,))[1], expected, rtol=1e-6, atol=1e-7)


@pytest.mark.slow
def test_few_unknowns_by_limited_memory():
    @njit
    def by_memory(scale, unit, a):
        return argmin(cosh, 0.0, (scale, unit, a), method="l-bfgs") / unit

    @njit
    def cosh(x, scale, unit, a):
        return scale * (np.cosh(x / unit) - a * x / unit)

    both = irad.value_and_grad(by_memory, argnums=2)
    for scale, unit in ((1.0, 1.0), (1e-12, 1.0), (1e12, 1e-12), (1.0, 1e12)):
        assert both(scale, unit, 0.7) == pytest.approx((np.arcsinh(0.7), 1.0 / np.hypot(1.0, 0.7)), rel=1e-8)


def test_what_falls_forever():
    found = argmin(njit(lambda x, a: a * x), 0.0, 1.0, method="l-bfgs", full_output=True)
    assert not found.success
