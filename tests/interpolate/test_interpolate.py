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
    with pytest.raises(ValueError, match="linear: 1 knots; there must be two or more"):
        linear(0.0, np.zeros(1), np.zeros(1))
    with pytest.raises(ValueError, match="moments: 2 values for 5 knots"):
        moments(KNOTS, VALUES[:2])
    with pytest.raises(ValueError, match="2 columns, 1 axes, and values with 1 axes"):
        grid(np.zeros((1, 2)), (KNOTS,), VALUES)


@njit
def all_of(x, points, knots, axes, values, table):
    second = moments(knots, values)
    return (
        linear(x, knots, values),
        linear(points, knots, values),
        cubic(x, knots, values, second),
        cubic(points, knots, values, second),
        grid(np.stack((points, points), 1), axes, table),
    )


SLOW = {np.uint8, np.float32, np.complex64}


@pytest.mark.parametrize(
    "type_",
    [pytest.param(t, marks=[pytest.mark.slow] if t in SLOW else []) for t in (int, complex, *sorted(SLOW, key=str))],
)
def test_types(type_):
    """All in double precision, also of integers, unsigned ones beyond the ends among them."""
    of_knots = float if np.issubdtype(type_, np.complexfloating) else type_
    knots, points = np.array([1, 2, 4, 7]).astype(of_knots), np.array([0, 1, 3, 7, 9]).astype(of_knots)
    values, table = np.array([3, 1, 2, 9]).astype(type_), np.arange(16).reshape(4, 4).astype(type_)
    if np.iscomplexobj(values):
        values, table = values * (1 + 2j), table * (1 + 2j)
    double = values.astype(complex) if np.iscomplexobj(values) else values.astype(float)
    found = all_of(points[2], points, knots, (knots, knots * 1.0), values.astype(type_), table.astype(type_))
    straight, bent = np.interp(points, knots, double), CubicSpline(knots.astype(float), double)(points)
    square = RegularGridInterpolator((knots, knots), table)(np.clip(np.stack((points, points), 1), 1, 7))
    for each, wanted in zip(found, (straight[2], straight, bent[2], bent, square), strict=True):
        assert np.asarray(each).dtype == double.dtype
        np.testing.assert_allclose(each, wanted, rtol=1e-12, atol=1e-12)


def test_points_of_any_shape():
    points = np.array([[0.1, 0.7], [1.9, 3.2], [-1.0, 9.0]])
    np.testing.assert_allclose(linear(points.T, KNOTS, VALUES), np.interp(points.T, KNOTS, VALUES))
    assert linear(points[:0], KNOTS, VALUES).shape == (0, 2)


@njit
def one_of(which, x, points, knots, values):
    if which == 0:
        return linear(x, knots, values)
    if which == 1:
        return linear(points, knots, values)[0]
    if which == 2:
        return cubic(x, knots, values, knots)
    if which == 3:
        return cubic(points, knots, values, knots)[0]
    if which == 4:
        return moments(knots, values)[0]
    return grid(points.reshape(-1, 1), (knots,), values)[0]


def test_sizes_and_order_of_knots():
    points = np.array([0.3])
    for which in range(6):
        with pytest.raises(ValueError, match=r"4 values for 5 knots|5 knots .* 4 values"):
            one_of(which, 0.3, points, KNOTS, VALUES[:4])
        for knots in (KNOTS[::-1].copy(), np.full(5, np.nan)):
            with pytest.raises(ValueError, match="knots must ascend"):
                one_of(which, 0.3, points, knots, VALUES)
    equal = np.array([0.0, 0.0, 1.0, 2.0, 2.0])  # a jump, which no spline has
    for which in (2, 4):
        with pytest.raises(ValueError, match="knots must ascend, but knot 1 "):
            one_of(which, -0.3, points, equal, VALUES)
    assert [linear(x, equal, VALUES) for x in (-1.0, 0.0, 2.0, 3.0)] == [1.0, -1.0, 0.0, 0.0]
    with pytest.raises(ValueError, match="3 knots for axis 0, along which there are 2 values"):
        grid(np.array([[0.5, 0.5]]), (np.arange(3.0), np.arange(2.0)), np.zeros((2, 3)))
    with pytest.raises(irad.SignatureError, match="linear: an array of complex128"):
        linear(0.5, KNOTS + 0j, VALUES)
    with pytest.raises(irad.SignatureError, match="grid: axes are"):
        grid(np.zeros((1, 1)), [KNOTS], VALUES)
    square = np.ones((5, 1))
    for name, call in (
        ("linear", lambda: linear(0.5, KNOTS, square)),
        ("moments", lambda: moments(square, VALUES)),
        ("cubic", lambda: cubic(0.5, KNOTS, VALUES, square)),
        ("grid", lambda: grid(KNOTS, (KNOTS,), VALUES)),
        ("grid", lambda: grid(square, (square,), VALUES)),
    ):
        with pytest.raises(irad.SignatureError, match=f"{name}: an array with . axes where one with"):
            call()


@pytest.mark.slow
def test_sizes_and_order_of_knots_in_a_gradient():
    gradient = irad.grad(one_of, argnums=(1, 3, 4))
    for which in range(6):
        for knots, values in ((KNOTS, VALUES[:4]), (KNOTS[::-1].copy(), VALUES)):
            with pytest.raises(ValueError, match=r"knots"):
                gradient(which, 0.3, np.array([0.3]), knots, values)
