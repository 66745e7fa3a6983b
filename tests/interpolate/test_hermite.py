"""Piecewise cubics by values and slopes: values against SciPy, derivatives against differences and forward mode."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit
from scipy.interpolate import Akima1DInterpolator, CubicHermiteSpline, CubicSpline, PchipInterpolator

import irad
from irad.interpolate import (
    akima_slopes,
    clamped_slopes,
    hermite,
    pchip_slopes,
    periodic_slopes,
    spline_slopes,
)
from tests.interpolate.test_interpolate import check

KNOTS = np.array([0.0, 0.5, 1.5, 2.0, 3.5, 3.75])
VALUES = np.array([1.0, -1.0, 0.5, 2.0, 2.5, 2.25])
TABLE = np.stack((VALUES, VALUES**2 - KNOTS), 1)
EVERYWHERE = np.array([-1.0, 0.0, 0.5, 1.0, 3.75, 4.0])
INSIDE = np.array([0.1, 0.7, 1.9, 3.2])
ENDS = np.array([0.5, -2.0])


@njit
def slopes_of(kind, knots, values, ends, flag):
    if kind == 0:
        return pchip_slopes(knots, values)
    if kind == 1:
        return akima_slopes(knots, values, flag)
    if kind == 2:
        return spline_slopes(knots, values, flag)
    if kind == 3:
        return clamped_slopes(knots, values, ends[0], ends[1])
    closed = values.copy()
    closed[-1] = closed[0]
    return periodic_slopes(knots, closed)


KINDS = {
    "pchip": (0, False, PchipInterpolator),
    "akima": (1, False, lambda x, y: Akima1DInterpolator(x, y, extrapolate=True)),
    "makima": (1, True, lambda x, y: Akima1DInterpolator(x, y, method="makima", extrapolate=True)),
    "not-a-knot": (2, False, CubicSpline),
    "natural": (2, True, lambda x, y: CubicSpline(x, y, bc_type="natural")),
    "clamped": (3, False, lambda x, y: CubicSpline(x, y, bc_type=((1, np.full(2, 0.5)), (1, np.full(2, -2.0))))),
    "periodic": (4, False, lambda x, y: CubicSpline(x, y, bc_type="periodic")),
}
HAND = np.cos(np.arange(24.0))


@njit
def weighted_slopes(knots, values, ends, kind, flag):
    return (slopes_of(kind, knots, values, ends, flag).ravel() * HAND[: values.size]).sum()


@njit
def weighted(x, knots, values, slopes, periodic):
    found = hermite(x, knots, values, slopes, periodic).ravel()
    return (found * HAND[: found.size]).sum()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [2, 3, 4, 6])
def test_values_are_those_of_scipy(kind: str, count: int):
    number, flag, reference = KINDS[kind]
    knots, values = KNOTS[:count].copy(), TABLE[:count].copy()
    if kind == "periodic":
        values[-1] = values[0]
    slopes, expected = slopes_of(number, knots, values, ENDS, flag), reference(knots, values)
    found = hermite(EVERYWHERE, knots, values, slopes, kind == "periodic")
    np.testing.assert_allclose(found, expected(EVERYWHERE), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(slopes, expected(knots, 1), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_derivatives_of_slopes(kind: str):
    """With respect to knots, values and the slopes of clamped ends; TABLE turns in both columns."""
    for count in (2, 3, 4, 6):
        arguments = KNOTS[:count].copy(), TABLE[:count].copy(), ENDS, *KINDS[kind][:2]
        check(weighted_slopes, arguments, (0, 1, 2))


@pytest.mark.parametrize("periodic", [False, True])
def test_derivatives_of_the_curve(periodic: bool):
    points = np.array([0.1, 0.7, 1.9, 3.2, -0.2, 11.1 if periodic else 3.9])
    check(weighted, (points, KNOTS, TABLE, pchip_slopes(KNOTS, TABLE), periodic), (0, 1, 2, 3))


def test_numbers_and_arrays_of_any_shape():
    slopes = pchip_slopes(KNOTS, TABLE)
    curve = CubicHermiteSpline(KNOTS, TABLE, slopes)
    assert hermite(0.7, KNOTS, VALUES, slopes[:, 0].copy()) == pytest.approx(curve(0.7)[0], rel=1e-14)
    np.testing.assert_allclose(hermite(0.7, KNOTS, TABLE, slopes), curve(0.7), rtol=1e-14)
    points = np.array([[0.1, 0.7, 4.0], [1.9, 3.2, -1.0]]).T
    np.testing.assert_allclose(hermite(points, KNOTS, TABLE, slopes), curve(points), rtol=1e-13)
    assert hermite(points[:0], KNOTS, TABLE, slopes).shape == (0, 2, 2)
    assert np.isnan(hermite(np.nan, KNOTS, VALUES, VALUES))


def test_values_of_other_types():
    whole, z = np.arange(4), np.array([0, 1, 4, 9]) * (1.0 + 2.0j)
    slopes = spline_slopes(whole, z)
    np.testing.assert_allclose(slopes, np.array([0.0, 2.0, 4.0, 6.0]) * (1.0 + 2.0j), atol=1e-12)
    np.testing.assert_allclose(hermite(1.5, whole, z, slopes), 2.25 + 4.5j)
    single = akima_slopes(KNOTS.astype(np.float32), TABLE.astype(np.float32)[::-1], False)
    np.testing.assert_allclose(single, akima_slopes(KNOTS, TABLE[::-1].copy(), False), rtol=1e-4)
    with pytest.raises(irad.SignatureError, match="pchip_slopes: an array of complex128"):
        pchip_slopes(whole, z)


def test_pchip_is_flat_where_the_data_turn_or_stand():
    """The derivative there is zero, also at an end: what is left is that of the last slope."""
    values = np.stack([np.array([0.0, 0.0, 1.0, 1.0, 3.0, 2.0])] * 2, 1)
    assert (slopes_of(0, KNOTS, values, ENDS, False)[:5] == 0.0).all()
    gradient = irad.grad(weighted_slopes, argnums=(0, 1, 2))(KNOTS, values, ENDS, 0, False)[1]
    assert (gradient[:3] == 0.0).all()
    assert (gradient[3:] != 0.0).all()


@pytest.mark.parametrize("kind", [name for name in KINDS if name != "clamped"])
def test_tiny_values(kind: str):
    """Slopes are homogeneous in the values, so the derivative stays."""
    gradient, given = irad.grad(weighted_slopes, argnums=(0, 1, 2)), (ENDS, *KINDS[kind][:2])
    found = gradient(KNOTS, TABLE * 2.0**-700, *given)[1]
    np.testing.assert_allclose(found, gradient(KNOTS, TABLE, *given)[1], rtol=1e-12, atol=1e-12)


def test_nan_stays():
    values = TABLE.copy()
    values[3] = np.nan
    for kind in (0, 1):
        slopes = slopes_of(kind, KNOTS, values, ENDS, False)
        assert np.isnan(slopes[2:5]).all()
        assert np.isfinite(slopes[0]).all()


def test_akima_on_two_straight_lines():
    """The slope at the corner is not defined: the mean, as in SciPy."""
    knots, values = np.arange(5.0), np.array([[0.0, 0.0, 0.0, 1.0, 2.0]] * 2).T.copy()
    assert (slopes_of(1, knots, values, ENDS, False)[2] == 0.5).all()
    for found in irad.grad(weighted_slopes, argnums=(0, 1, 2))(knots, values, ENDS, 1, False):
        assert np.isfinite(found).all()


def test_second_derivative():
    slopes = spline_slopes(KNOTS, VALUES)
    second = irad.grad(irad.grad(hermite))(1.2, KNOTS, VALUES, slopes)
    assert second == pytest.approx(CubicSpline(KNOTS, VALUES)(1.2, 2), rel=1e-11)


def test_what_does_not_fit_is_refused():
    names = "pchip_slopes", "akima_slopes", "spline_slopes", "clamped_slopes", "periodic_slopes"
    for kind, name in enumerate(names):
        with pytest.raises(ValueError, match=f"{name}: 1 knots; there must be two or more"):
            slopes_of(kind, np.zeros(1), np.zeros((1, 2)), ENDS, False)
        with pytest.raises(ValueError, match=f"{name}: 2 values for 6 knots"):
            slopes_of(kind, KNOTS, TABLE[:2].copy(), ENDS, False)
        for knots in (KNOTS[::-1].copy(), np.zeros(6), np.full(6, np.nan)):
            with pytest.raises(ValueError, match="knots must ascend"):
                slopes_of(kind, knots, TABLE, ENDS, False)
    with pytest.raises(ValueError, match="the last value differs from the first"):
        periodic_slopes(KNOTS, TABLE)
    with pytest.raises(ValueError, match="hermite: 6 values and 5 slopes for 6 knots"):
        hermite(0.1, KNOTS, VALUES, VALUES[:5])
    with pytest.raises(ValueError, match="hermite: values and slopes have different shapes"):
        hermite(INSIDE, KNOTS, TABLE, TABLE[:, :1].copy())
    with pytest.raises(ValueError, match="hermite: 1 knots"):
        hermite(0.1, KNOTS[:1], VALUES[:1], VALUES[:1])
    for x in (0.1, INSIDE):
        with pytest.raises(ValueError, match="knots must ascend"):
            hermite(x, KNOTS[::-1].copy(), VALUES, VALUES)
