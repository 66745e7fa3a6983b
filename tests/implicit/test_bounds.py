"""`argmin` and `least_squares` within bounds, against closed forms, SciPy and differences."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit
from scipy import optimize

import irad
from irad.implicit import argmin, least_squares


@njit
def bowl(x, a):
    """Coupled and not quadratic, steep along one axis."""
    y = x - a
    return np.cosh(y).sum() + 5.0 * (y[0] - y[1]) ** 2 + 0.1 * (y.sum()) ** 4


@njit
def valley(x, a):
    return (x[0] - a[0]) ** 2 + 10.0 * (x[1] - a[1] * x[0] ** 2) ** 2


@njit
def lowest(a, lower, upper):
    return argmin(bowl, np.zeros(3), a, bounds=(lower, upper))


LOWER, UPPER = np.array([-1.0, 0.2, -2.0]), np.array([0.4, 2.0, np.inf])


@pytest.mark.slow
def test_within_bounds():
    rng = np.random.default_rng(13)
    for _ in range(10):
        a = 1.5 * rng.normal(size=3)
        expected = optimize.minimize(
            bowl, np.clip(np.zeros(3), LOWER, UPPER), a, bounds=optimize.Bounds(LOWER, UPPER), options={"ftol": 1e-15}
        )
        found = lowest(a, LOWER, UPPER)
        assert (LOWER <= found).all()
        assert (found <= UPPER).all()
        assert bowl(found, a) <= expected.fun + 1e-12
        np.testing.assert_allclose(found, expected.x, atol=1e-5)
    for start in ([-1.0, 1.0], [5.0, 5.0], [0.5, -3.0]):
        x = argmin(valley, np.array(start), np.array([1.5, 0.8]), bounds=(None, 1.0))
        np.testing.assert_allclose(x, [1.0, 0.8], rtol=1e-9)
        x = argmin(valley, np.array(start), np.array([1.5, 0.8]), bounds=(np.array([-9.0, -9.0]), 9.0))
        np.testing.assert_allclose(x, [1.5, 0.8 * 2.25], rtol=1e-9)
    parabola = njit(lambda x, a: (x - a) ** 2)
    assert argmin(parabola, 0, 3.0, bounds=(None, 2.0)) == 2.0
    assert argmin(parabola, 0, 3.0, bounds=(-1, None)) == pytest.approx(3.0)


@njit
def weighted(a, lower, upper):
    x = lowest(a, lower, upper)
    return x[0] - 2.0 * x[1] + 0.5 * x[2]


@pytest.mark.slow
def test_derivatives_within_bounds():
    given, h = (np.array([1.2, -0.3, 0.5]), LOWER, UPPER), 1e-6
    x = lowest(*given)
    assert x[0] == UPPER[0]
    assert x[1] == LOWER[1]
    assert LOWER[2] < x[2] < UPPER[2]
    gradient = irad.grad(weighted, argnums=(0, 1, 2))(*given)
    for at, found in enumerate(gradient):
        for i in range(3):
            moved = [[each.copy() for each in given] for _ in range(2)]
            moved[0][at][i] += h
            moved[1][at][i] -= h
            expected = (weighted(*moved[0]) - weighted(*moved[1])) / (2.0 * h)
            assert found[i] == pytest.approx(expected, rel=1e-6, abs=1e-8), (at, i)
    assert gradient[1][1] != 0.0 != gradient[2][0]
    tangents = np.array([0.3, 1.0, -0.4]), np.array([0.1, 0.2, 0.3]), np.array([1.0, 0.5, 0.0])
    expected = sum(found @ tangent for found, tangent in zip(gradient, tangents, strict=True))
    assert irad.jvp(weighted, given, tangents)[1] == pytest.approx(expected, rel=1e-9)


@njit
def half_bounded(a):
    """x1 is at its bound, x0 at (a + 2) / 3 by its pull: so f = (a + 2)² / 9."""
    x = argmin(pair, np.zeros(2), a, bounds=(None, np.array([np.inf, 2.0])))
    return x[0] ** 2


@njit
def pair(x, a):
    return (x[0] - a) ** 2 + (x[0] - x[1]) ** 2 + x[0] ** 2 + (x[1] - 9.0) ** 2


@pytest.mark.slow
def test_second_order_within_bounds():
    assert half_bounded(1.0) == pytest.approx(1.0)
    assert irad.grad(half_bounded)(1.0) == pytest.approx(2.0 / 3.0)
    assert irad.grad(irad.grad(half_bounded))(1.0) == pytest.approx(2.0 / 9.0)


@pytest.mark.slow
def test_bounds_that_are_refused():
    parabola = njit(lambda x, a: ((x - a) ** 2).sum())
    corner = irad.grad(njit(lambda a: argmin(parabola, np.ones(2), a, bounds=(0.0, None)).sum()))
    assert corner(np.array([-1.0, 2.0])).tolist() == [0.0, 1.0]
    assert corner(np.array([0.0, 2.0])).tolist() == [0.0, 1.0]  # on the side of the bound
    with pytest.raises(ValueError, match="is above an upper one"):
        argmin(parabola, np.ones(2), np.ones(2), bounds=(2.0, 1.0))
    with pytest.raises(ValueError, match="more or fewer numbers than x0"):
        argmin(parabola, np.ones(2), np.ones(2), bounds=(np.zeros(3), None))
    with pytest.raises(irad.SignatureError, match="a solver is given bounds for"):
        argmin(parabola, np.ones((2, 2)), np.ones((2, 2)), bounds=(0.0, None))
    with pytest.raises(irad.SignatureError, match="method='l-bfgs' with bounds"):
        argmin(parabola, np.ones(2), np.ones(2), bounds=(0.0, None), method="l-bfgs")
    with pytest.raises(irad.SignatureError, match=r"a solver is given bounds=3\.0"):
        argmin(parabola, np.ones(2), np.ones(2), bounds=3.0)
    with pytest.raises(irad.SignatureError, match="method='newton'"):
        argmin(parabola, np.ones(2), np.ones(2), method="newton")


@njit
def linear(x, matrix, y):
    return matrix @ x - y


@njit
def nonnegative(matrix, y):
    return least_squares(linear, np.ones(3), (matrix, y), bounds=(0.0, None))


@pytest.mark.slow
def test_least_squares_within_bounds():
    rng, checked = np.random.default_rng(3), 0
    for _ in range(20):
        matrix, y = rng.normal(size=(6, 3)), rng.normal(size=6)
        expected = optimize.nnls(matrix, y)[0]
        found = nonnegative(matrix, y)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
        checked += np.count_nonzero(found == 0.0)
    assert 10 < checked < 50
    free = np.flatnonzero(found)
    jacobian = np.zeros((3, 6))
    jacobian[free] = np.linalg.pinv(matrix[:, free])
    change = np.cos(np.arange(6.0))
    np.testing.assert_allclose(irad.jvp(nonnegative, (matrix, y), (None, change))[1], jacobian @ change, atol=1e-12)
    low, high = np.array([-0.1, -np.inf, 0.05]), np.array([0.1, 0.2, np.inf])
    expected = optimize.lsq_linear(matrix, y, (low, high), tol=1e-14, max_iter=500).x
    start = np.full(3, 0.07)
    np.testing.assert_allclose(least_squares(linear, start, (matrix, y), bounds=(low, high)), expected, atol=1e-7)
    expected = optimize.least_squares(
        lambda x: matrix @ x - y, start, bounds=(low, high), loss="soft_l1", f_scale=0.3, xtol=1e-15, ftol=1e-15
    ).x
    found = least_squares(linear, start, (matrix, y), loss="soft_l1", f_scale=0.3, bounds=(low, high))
    np.testing.assert_allclose(found, expected, atol=1e-6)
