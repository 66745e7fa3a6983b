"""B-splines and cubic grids: values against SciPy, derivatives against differences and forward mode."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit
from scipy.interpolate import BSpline, CubicSpline, RegularGridInterpolator, make_interp_spline

import irad
from irad.interpolate import bspline, bspline_coefficients, bspline_knots, cubic_grid, grid_coefficients
from tests.interpolate.test_interpolate import check

POINTS = np.array([0.0, 0.5, 1.5, 2.0, 3.5, 3.75, 5.0])
VALUES = np.array([1.0, -1.0, 0.5, 2.0, 2.5, 2.25, 0.0])
TABLE = np.stack((VALUES, VALUES**2 - POINTS), 1)
EVERYWHERE = np.array([-1.0, 0.0, 0.5, 1.0, 2.75, 5.0, 6.0])
INSIDE = np.array([0.1, 0.7, 1.9, 3.2])


@njit
def weighted(x, knots, coefficients, degree):
    found = bspline(x, knots, coefficients, degree).ravel()
    return (found * np.cos(np.arange(found.size))).sum()


@njit
def interpolated(x, points, values, degree):
    knots = bspline_knots(points, degree)
    return weighted(x, knots, bspline_coefficients(points, values, knots, degree), degree)


@pytest.mark.parametrize("degree", [1, 2, 3, 4, 5])
def test_interpolation_is_that_of_scipy(degree: int):
    expected = make_interp_spline(POINTS, TABLE, k=degree)
    knots = bspline_knots(POINTS, degree)
    np.testing.assert_array_equal(knots, expected.t)
    coefficients = bspline_coefficients(POINTS, TABLE, knots, degree)
    np.testing.assert_allclose(coefficients, expected.c, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(bspline(EVERYWHERE, knots, coefficients, degree), expected(EVERYWHERE), rtol=1e-9)
    check(interpolated, (INSIDE, POINTS, TABLE, degree), (0, 1, 2))


@pytest.mark.parametrize("degree", [0, 1, 3])
def test_a_spline_with_equal_knots(degree: int):
    inner = [1.0, 1.0, 2.0][: 3 if degree else 0]
    knots = np.array([0.0] * (degree + 1) + inner + [3.0] * (degree + 1))
    coefficients = np.cos(np.arange(2.0 * (knots.size - degree - 1))).reshape(-1, 2)
    points = np.array([-0.5, 0.0, 0.3, 1.0, 1.5, 2.0, 3.0, 3.5])
    expected = BSpline(knots, coefficients, degree)(points)
    np.testing.assert_allclose(bspline(points, knots, coefficients, degree), expected, rtol=1e-12, atol=1e-12)
    apart = np.sort(knots + 0.01 * np.arange(knots.size))  # differences in knots that are equal would cross them
    check(weighted, (np.array([0.3, 1.5, 2.7]), apart, coefficients, degree), (0, 1, 2))


def test_knots_at_the_ends_that_are_not_equal():
    knots = np.arange(8.0)
    coefficients = np.array([1.0, 3.0, -1.0, 2.0])
    points = np.array([3.2, 3.0, 4.0, 1.0, 6.5])
    np.testing.assert_allclose(bspline(points, knots, coefficients, 3), BSpline(knots, coefficients, 3)(points))


def test_numbers_and_arrays_of_any_shape():
    knots = bspline_knots(POINTS, 3)
    curve = BSpline(knots, TABLE, 3)
    assert bspline(0.7, knots, VALUES, 3) == pytest.approx(curve(0.7)[0], rel=1e-14)
    np.testing.assert_allclose(bspline(0.7, knots, TABLE, 3), curve(0.7), rtol=1e-14)
    square = INSIDE.reshape(2, 2).T
    np.testing.assert_allclose(bspline(square, knots, TABLE, 3), curve(square), rtol=1e-14)
    assert bspline(square[:0], knots, TABLE, 3).shape == (0, 2, 2)
    assert np.isnan(bspline(np.nan, knots, VALUES, 3))
    z = VALUES * (1.0 + 2.0j)
    np.testing.assert_allclose(bspline(0.7, knots, z, 3), curve(0.7)[0] * (1.0 + 2.0j), rtol=1e-14)
    np.testing.assert_allclose(
        bspline_coefficients(POINTS, z, knots, 3), (1.0 + 2.0j) * bspline_coefficients(POINTS, VALUES, knots, 3)
    )


def test_a_spline_of_degree_three_is_the_cubic_spline():
    knots = bspline_knots(POINTS, 3)
    coefficients = bspline_coefficients(POINTS, VALUES, knots, 3)
    second = irad.grad(irad.grad(bspline))(1.2, knots, coefficients, 3)
    assert second == pytest.approx(CubicSpline(POINTS, VALUES)(1.2, 2), rel=1e-10)


def test_what_does_not_fit_is_refused():
    knots = bspline_knots(POINTS, 3)
    with pytest.raises(ValueError, match="bspline: 11 knots for 6 coefficients of degree 3; there must be 10"):
        bspline(0.5, knots, VALUES[:6], 3)
    with pytest.raises(ValueError, match="bspline: degree -1"):
        bspline(0.5, knots, VALUES, -1)
    swapped = knots.copy()
    swapped[[4, 5]] = swapped[[5, 4]]
    for x in (0.5, INSIDE):
        with pytest.raises(ValueError, match="knots must ascend"):
            bspline(x, swapped, VALUES, 3)
    with pytest.raises(ValueError, match="no interval between the knots"):
        bspline(0.5, np.zeros(11), VALUES, 3)
    with pytest.raises(ValueError, match="bspline_knots: 3 points for degree 3"):
        bspline_knots(POINTS[:3], 3)
    with pytest.raises(ValueError, match="knots must ascend"):
        bspline_knots(np.zeros(7), 3)
    with pytest.raises(ValueError, match="bspline_coefficients: 6 values for 7 points"):
        bspline_coefficients(POINTS, VALUES[:6], knots, 3)
    with pytest.raises(ValueError, match="the points do not determine the spline"):
        bspline_coefficients(4.0 + 0.1 * POINTS, VALUES, knots, 3)


# ------------------------------------------------------------------------------------------------ grids

AXES = POINTS, np.array([0.0, 1.0, 4.0, 5.0]), np.array([-1.0, 0.0, 0.5, 1.0, 3.0])
GRID = np.cos(np.arange(140.0)).reshape(7, 4, 5)
AT = np.array([[0.1, 0.2, 0.3], [1.6, 4.5, -0.5], [5.0, 0.0, 2.9]])


@njit
def weighted_grid(points, first, second, third, values, fill):
    axes = (first, second, third)
    found = cubic_grid(points, axes, grid_coefficients(axes, values), fill)
    return (found * np.arange(1.0, found.size + 1.0)).sum()


def test_cubic_grid():
    coefficients = grid_coefficients(AXES, GRID)
    beyond = np.vstack((AT, [[9.0, 1.0, 1.0], [1.0, 1.0, -2.0]]))
    scipys = RegularGridInterpolator(AXES, GRID, method="cubic", bounds_error=False, fill_value=None)
    found = cubic_grid(beyond, AXES, coefficients)
    np.testing.assert_allclose(found, scipys(beyond), rtol=1e-3)  # SciPy solves by iteration, to few digits
    for point, value in zip(beyond, found, strict=True):
        exact = GRID
        for axis, x in zip(AXES, point, strict=True):
            exact = CubicSpline(axis, exact)(x)
        assert value == pytest.approx(exact, rel=1e-11)
    np.testing.assert_array_equal(cubic_grid(beyond, AXES, coefficients, -7.0), [*found[:3], -7.0, -7.0])
    assert np.isnan(cubic_grid(np.array([[np.nan, 1.0, 1.0]]), AXES, coefficients, -7.0)[0])
    assert cubic_grid(AT[:0], AXES, coefficients).size == 0
    turned = cubic_grid(AT, AXES, grid_coefficients(AXES, GRID * 1j))
    np.testing.assert_allclose(turned, 1j * found[:3])


def test_derivatives_of_a_cubic_grid():
    inside = np.vstack((AT[:2], [[-3.0, 1.0, 1.0]]))
    check(weighted_grid, (inside, *AXES, GRID, 2.0), (0, 1, 2, 3, 4))
    assert irad.grad(weighted_grid, 5)(inside, *AXES, GRID, 2.0) == 3.0


def test_grids_that_do_not_fit():
    with pytest.raises(ValueError, match=r"grid_coefficients: 3 knots for axis 0, .* 3 values; 4 or more"):
        grid_coefficients((np.arange(3.0),), np.zeros(3))
    with pytest.raises(ValueError, match=r"grid_coefficients: 7 knots for axis 0, .* 4 values"):
        grid_coefficients((POINTS, POINTS), np.zeros((4, 7)))
    with pytest.raises(ValueError, match=r"grid_coefficients: .* 1 axes, and values with 2 axes"):
        grid_coefficients((POINTS,), np.zeros((7, 4)))
    with pytest.raises(ValueError, match="cubic_grid: points with 2 columns, 1 axes"):
        cubic_grid(np.zeros((1, 2)), (POINTS,), VALUES)
    with pytest.raises(ValueError, match="knots must ascend"):
        cubic_grid(np.zeros((1, 1)), (POINTS[::-1].copy(),), VALUES)
