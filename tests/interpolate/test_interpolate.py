"""`irad.interpolate`: values against NumPy and SciPy, derivatives against differences and forward mode."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit
from scipy.interpolate import CubicSpline, RegularGridInterpolator

import irad
from irad.interpolate import cubic, grid, linear, moments

KNOTS = np.array([0.0, 0.5, 1.5, 2.0, 3.5])
VALUES = np.array([1.0, -1.0, 0.5, 2.0, 0.0])
INSIDE = np.array([0.1, 0.7, 1.9, 3.2])
EVERYWHERE = np.array([-1.0, 0.0, 0.5, 1.0, 3.5, 4.0])


@njit
def weighted_linear(x, knots, values):
    found = linear(x, knots, values)
    return (found * np.arange(1.0, found.size + 1.0)).sum()


@njit
def spline(x, knots, values, natural):
    return cubic(x, knots, values, moments(knots, values, natural))


@njit
def weighted_spline(x, knots, values, natural):
    found = spline(x, knots, values, natural)
    return (found * np.arange(1.0, found.size + 1.0)).sum()


def check(f, arguments, active):
    """Reverse against central differences and against forward mode."""
    gradient = irad.grad(f, argnums=tuple(active))(*arguments)
    for i, found in zip(active, gradient, strict=True):
        expected = np.zeros_like(arguments[i])
        for place in np.ndindex(expected.shape):
            sides = []
            for step in (1e-6, -1e-6):
                changed = [each.copy() if k == i else each for k, each in enumerate(arguments)]
                changed[i][place] += step
                sides.append(f(*changed))
            expected[place] = (sides[0] - sides[1]) / 2e-6
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-7)
    tangents = [np.cos(np.arange(a.size)).reshape(a.shape) if i in active else None for i, a in enumerate_(arguments)]
    pushed = irad.jvp(f, arguments, tuple(tangents))[1]
    pulled = sum((tangents[i] * found).sum() for i, found in zip(active, gradient, strict=True))
    assert pushed == pytest.approx(pulled, rel=1e-10)


def enumerate_(arguments):
    return [(i, np.asarray(each)) for i, each in enumerate(arguments)]


def test_linear():
    np.testing.assert_allclose(linear(EVERYWHERE, KNOTS, VALUES), np.interp(EVERYWHERE, KNOTS, VALUES))
    assert linear(0.25, KNOTS, VALUES) == 0.0
    check(weighted_linear, (INSIDE, KNOTS, VALUES), (0, 1, 2))


def test_the_slope_at_knots_and_beyond():
    slopes = [irad.grad(linear)(x, KNOTS, VALUES) for x in (-1.0, 0.0, 0.5, 3.5, 4.0)]
    np.testing.assert_allclose(slopes, [0.0, -4.0, 1.5, -4.0 / 3.0, 0.0])
    assert np.isnan(linear(np.nan, KNOTS, VALUES))


@pytest.mark.parametrize("natural", [True, False])
@pytest.mark.parametrize("count", [2, 3, 4, 5])
def test_spline_values(natural, count):
    knots, values = KNOTS[:count], VALUES[:count]
    expected = CubicSpline(knots, values, bc_type="natural" if natural else "not-a-knot")
    np.testing.assert_allclose(spline(EVERYWHERE, knots, values, natural), expected(EVERYWHERE), atol=1e-12)


@pytest.mark.parametrize("natural", [True, False])
@pytest.mark.parametrize("count", [2, 3, 5])
def test_spline_derivatives(natural, count):
    check(weighted_spline, (INSIDE, KNOTS[:count].copy(), VALUES[:count].copy(), natural), (0, 1, 2))


def test_second_derivative_of_a_spline():
    second = irad.grad(irad.grad(cubic))(1.2, KNOTS, VALUES, moments(KNOTS, VALUES))
    assert second == pytest.approx(CubicSpline(KNOTS, VALUES)(1.2, 2), rel=1e-12)


@njit
def weighted_grid(points, first, second, third, values):
    found = grid(points, (first, second, third), values)
    return (found * np.arange(1.0, found.size + 1.0)).sum()


def test_grid():
    axes = KNOTS, np.array([0.0, 1.0, 4.0]), np.array([-1.0, 1.0])
    values = np.cos(np.arange(30.0)).reshape(5, 3, 2)
    points = np.array([[0.1, 0.2, 0.3], [1.6, 3.0, -0.5], [3.0, 0.5, 0.9]])
    np.testing.assert_allclose(grid(points, axes, values), RegularGridInterpolator(axes, values)(points))
    np.testing.assert_allclose(grid(np.array([[9.0, -9.0, 0.0]]), axes, values), [values[-1, 0].mean()])
    check(weighted_grid, (points, *axes, values), (0, 1, 2, 3, 4))
    assert grid(np.zeros((0, 3)), axes, values).size == 0


def test_wrong_sizes():
    with pytest.raises(ValueError, match="two knots"):
        linear(0.0, np.zeros(1), np.zeros(1))
    with pytest.raises(ValueError, match="a value for each"):
        moments(KNOTS, VALUES[:2])
    with pytest.raises(ValueError, match="for each column"):
        grid(np.zeros((1, 2)), (KNOTS,), VALUES)
