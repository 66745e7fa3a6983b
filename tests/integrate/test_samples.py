"""Integrals of samples: values against SciPy, derivatives against differences and forward mode."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest
import scipy.integrate
from numba import njit

import irad
import irad.integrate
from irad.integrate import cumulative_simpson, cumulative_trapezoid, simpson, trapezoid
from tests.interpolate.test_interpolate import check

X = np.array([0.0, 0.5, 1.5, 2.0, 3.5, 3.75, 5.0])
Y = np.sin(np.arange(42.0)).reshape(2, 7, 3)
NAMES = ("trapezoid", "simpson", "cumulative_trapezoid", "cumulative_simpson")


def of(module: ModuleType, name: str):
    return getattr(module, name)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("count", [1, 2, 3, 4, 7])
def test_values_are_those_of_scipy(name: str, count: int):
    ours, theirs = of(irad.integrate, name), of(scipy.integrate, name)
    y, x = Y[0, :count, 0], X[:count]
    np.testing.assert_allclose(ours(y, x), theirs(y, x=x), rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(ours(y, dx=0.3), theirs(y, dx=0.3), rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("name", NAMES)
def test_axes(name: str):
    ours, theirs = of(irad.integrate, name), of(scipy.integrate, name)
    for axis in (1, -2):
        np.testing.assert_allclose(ours(Y, X, 1.0, axis), theirs(Y, x=X, axis=axis), rtol=1e-13, atol=1e-14)
    turned = Y.transpose(0, 2, 1)
    for axis in (2, -1):
        np.testing.assert_allclose(ours(turned, X, 1.0, axis), theirs(turned, x=X, axis=axis), rtol=1e-13, atol=1e-14)
    assert ours(Y[:0], X, 1.0, 1).shape == theirs(Y[:0], x=X, axis=1).shape


@pytest.mark.parametrize("name", ["simpson", "cumulative_simpson"])
def test_abscissae_of_each_row_and_none(name: str):
    ours, theirs = of(irad.integrate, name), of(scipy.integrate, name)
    full = X[:, None] * np.array([1.0, 2.0, 3.0]) + np.zeros((2, 7, 3))
    np.testing.assert_allclose(ours(Y, full, 1.0, 1), theirs(Y, x=full, axis=1), rtol=1e-13, atol=1e-14)
    for axis in (0, 2, -3):
        np.testing.assert_allclose(ours(Y, None, 0.3, axis), theirs(Y, dx=0.3, axis=axis), rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("name", NAMES[2:])
def test_an_initial_value(name: str):
    ours, theirs = of(irad.integrate, name), of(scipy.integrate, name)
    whole = ours(Y, X, 1.0, 1, 2.0)
    np.testing.assert_allclose(whole, 2.0 + theirs(Y, x=X, axis=1, initial=0), rtol=1e-13)
    np.testing.assert_array_equal(ours(Y[:, :1], X[:1], 1.0, 1, 2.0), np.full((2, 1, 3), 2.0))


def test_other_types():
    z, integers = (1.0 + 2.0j) * X, np.array([1, 2, 4])
    np.testing.assert_allclose(simpson(z, X), (1.0 + 2.0j) * simpson(X, X), rtol=1e-14)
    whole = cumulative_trapezoid(integers, np.array([0, 1, 3], np.uint8)[::-1], initial=1.0)
    np.testing.assert_allclose(whole, [1.0, -2.0, -5.0])
    assert simpson(X.astype(np.float32), dx=1.0) == pytest.approx(simpson(X, dx=1.0), rel=1e-6)


@njit
def weighted(kind, y, x, dx, start):
    """All rules along the middle axis; parabolas also with one row of abscissae, and without."""
    if kind == 0:
        return (trapezoid(y, x, 1.0, 1) ** 2).sum()
    if kind == 1:
        parts = (simpson(y, x, 1.0, 1), simpson(y, x[0, :, 0], 1.0, 1), simpson(y, None, dx[0], 1))
        return (parts[0] * 1.5 + parts[1] * parts[2]).sum()
    if kind == 2:
        return (cumulative_trapezoid(y, x, 1.0, 1, start[0]) ** 2).sum()
    found = cumulative_simpson(y, x, 1.0, 1, start[0]) ** 2
    found += cumulative_simpson(y, x[0, :, 0], 1.0, 1, start[0]) ** 2
    return found.sum() + (cumulative_simpson(y, None, dx[0], 1) ** 2).sum()


@pytest.mark.parametrize("kind", range(4))
@pytest.mark.parametrize("count", [2, 3, 6])
def test_derivatives(kind: int, count: int):
    full = (X[:count, None] * np.array([1.0, 2.0]) + np.zeros((2, count, 2))).copy()
    samples = Y[:, :count, :2].copy()
    check(weighted, (kind, samples, full, np.array([0.3]), np.array([0.7])), (1, 2, 3, 4))


def test_parabolas_are_integrated_exactly():
    """With an even and an odd number of samples, in both directions."""
    for count in (4, 7):
        x = X[:count]
        assert simpson(x**2, x) == pytest.approx(x[-1] ** 3 / 3, rel=1e-14)
        assert simpson((x**2)[::-1], x[::-1]) == pytest.approx(-(x[-1] ** 3) / 3, rel=1e-14)
        np.testing.assert_allclose(cumulative_simpson(x**2, x, initial=0.0), x**3 / 3, rtol=1e-13, atol=1e-15)


def test_what_does_not_fit_is_refused():
    for name in NAMES[1::2]:
        integral = of(irad.integrate, name)
        with pytest.raises(ValueError, match=f"{name}: 6 abscissae for 7 samples"):
            integral(Y[0, :, 0], X[:6])
        with pytest.raises(ValueError, match=f"{name}: axis 3 of an array with 3 axes"):
            integral(Y, None, 1.0, 3)
        with pytest.raises(ValueError, match=f"{name}: no samples"):
            integral(X[:0])
        with pytest.raises(ValueError, match="different shapes"):
            integral(Y, Y[:1], 1.0, 1)
        with pytest.raises(irad.SignatureError, match="abscissae are"):
            integral(Y, Y[0], 1.0, 1)
    with pytest.raises(ValueError, match="neighbouring abscissae must differ"):
        simpson(X, np.zeros(7))
    with pytest.raises(ValueError, match="abscissae must ascend"):
        cumulative_simpson(X, X[::-1].copy())
