"""Solvers in other units: what multiplies the function or the unknown multiplies the solution, and that is all."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

import irad
from irad.implicit import argmin, cg, fixed_point, gmres, least_squares, newton

UNITS = [(1.0, 1.0), (1e-12, 1.0), (1e12, 1.0), (1.0, 1e-12), (1.0, 1e12), (1e12, 1e-12)]
POWERS = [(2.0**-40, 1.0), (1.0, 2.0**40), (2.0**40, 2.0**-40)]


@njit
def pair(x, scale, unit, a):
    y = x / unit
    return scale * np.array([y[0] ** 2 + y[1] - a, y[1] ** 3 - y[0] + 0.3])


@njit
def by_newton(scale, unit, a):
    x = newton(pair, np.full(2, unit), (scale, unit, a))
    return (x[0] + 2.0 * x[1]) / unit


@njit
def without_matrix(scales, units, a):
    x = newton(pair, units * 1.0, (scales, units, a), matrix_free=True)
    return x[0] / units[0] + 2.0 * x[1] / units[1]


def test_equations_and_unknowns_in_different_units_without_a_matrix():
    both, one = irad.value_and_grad(without_matrix, argnums=2), np.ones(2)
    expected = both(one, one, 0.7)
    assert expected == pytest.approx(irad.value_and_grad(by_newton, argnums=2)(1.0, 1.0, 0.7), rel=1e-9)
    sides = one, np.array([1e12, 1.0]), np.array([1.0, 1e-12])
    for scales in sides:
        for units in sides:
            assert both(scales, units, 0.7) == pytest.approx(expected, rel=1e-8)


@njit
def halved(x, scale, unit, a):
    return unit * (0.5 * np.cos(x / unit) + a)


@njit
def by_fixed_point(scale, unit, a):
    return fixed_point(halved, 0.0, (scale, unit, a)) / unit


@njit
def misfit(x, scale, unit, a):
    y = x / unit
    return scale * np.array([y[0] - a, y[0] * y[1] - 1.0, y[1] ** 2 - a, 0.1 * y[0] * y[0]])


@njit
def by_least_squares(scale, unit, a):
    x = least_squares(misfit, np.full(2, unit), (scale, unit, a))
    return (x[0] + 2.0 * x[1]) / unit


@njit
def springs(x, scale, unit, a):
    return scale / unit * np.array([2.0 * x[0] - x[1], a * x[1] - x[0]])


@njit
def by_cg(scale, unit, a):
    return cg(springs, scale * np.array([1.0, 2.0]), None, (scale, unit, a))[1] / unit


@njit
def by_gmres(scale, unit, a):
    return gmres(springs, scale * np.array([1.0, 2.0]), None, (scale, unit, a))[1] / unit


@njit
def bowl(x, scale, unit, a):
    return scale * (np.cosh(x / unit) - a * x / unit)


@njit
def by_argmin(scale, unit, a):
    return argmin(bowl, 0.0, (scale, unit, a)) / unit


SOLVERS = [by_newton, by_fixed_point, by_least_squares, by_cg, by_gmres, by_argmin]


@njit
def with_a_zero(x, scale, unit):
    y = x / unit
    return scale * np.array([y[0] - 0.7, 2.0 * y[0] - 1.4, y[1], y[1] * y[0]])


def test_least_squares_with_an_unknown_that_is_zero():
    for scale, unit in UNITS:
        for start in (np.ones(2), np.array([0.0, 1.0])):
            x = least_squares(with_a_zero, start * unit, (scale, unit)) / unit
            np.testing.assert_allclose(x, [0.7, 0.0], rtol=1e-9, atol=1e-14)


@pytest.mark.slow
@pytest.mark.parametrize("solver", SOLVERS, ids=lambda f: f.__name__)
def test_units_do_not_matter(solver):
    """Powers of two leave every bit; others leave what rounding leaves. By both modes; the slope by differences."""
    both = irad.value_and_grad(solver, argnums=2)
    value, slope = both(1.0, 1.0, 0.7)
    h = 1e-5
    assert slope == pytest.approx((solver(1.0, 1.0, 0.7 + h) - solver(1.0, 1.0, 0.7 - h)) / (2.0 * h), rel=1e-6)
    for units in UNITS:
        assert both(*units, 0.7) == pytest.approx((value, slope), rel=1e-8)
        assert irad.jvp(solver, (*units, 0.7), (None, None, 1.0)) == pytest.approx((value, slope), rel=1e-8)
    for units in POWERS:
        assert both(*units, 0.7) == (value, slope)


@pytest.mark.slow
@pytest.mark.parametrize("solver", [by_newton, by_fixed_point], ids=lambda f: f.__name__)
def test_second_derivatives_in_other_units(solver):
    second = irad.grad(irad.grad(solver, argnums=2), argnums=2)
    expected = second(1.0, 1.0, 0.7)
    for units in UNITS:
        assert second(*units, 0.7) == pytest.approx(expected, rel=1e-7)


@njit
def several(x, kind, a):
    if kind == 0:
        return 1e-14 * (np.exp(x / 0.025) - 1.0) - a
    if kind == 1:
        return x * x - a
    if kind == 2:
        return abs(x) + 1.0
    if kind == 3:
        return np.sqrt(x) - 1.0
    if kind == 4:
        return np.sin(x)
    return np.exp(x) - 1.0 - a


def test_small_roots_are_found_and_others_refused():
    for amperes in (1e-3, 1e-6, 1e-9, 1e-12):
        volts = 0.025 * np.log1p(amperes / 1e-14)
        assert newton(several, 0.3, (0, amperes)) == pytest.approx(volts, rel=1e-9)
    assert newton(several, 1.0, (1, 1e-24)) == pytest.approx(1e-12, rel=1e-12)
    assert newton(several, 1e6, (1, 1e-24)) == pytest.approx(1e-12, rel=1e-12)
    assert newton(several, 1.0, (4, 0.0)) == 0.0
    for x0, kind, a in ((0.3, 2, 0.0), (1e8, 1, -1.0), (0.0, 3, 0.0)):
        with pytest.raises(ValueError, match="found no solution"):
            newton(several, x0, (kind, a))
    assert newton(several, 0.0, (5, 1e-12), atol=1e-15) == pytest.approx(1e-12, abs=1e-15)
    with pytest.raises(ValueError, match="not finite"):
        newton(several, -1.0, (3, 0.0))


@njit
def counted(x, count):
    return np.ones(count)


@njit
def fitting(count):
    return newton(counted, np.zeros(3), (count,))


@pytest.mark.parametrize("solver", [newton, fixed_point, least_squares], ids=lambda f: f.__name__)
def test_too_few_values(solver):
    with pytest.raises(ValueError, match="2 values for 3 unknowns"):
        solver(counted, np.zeros(3), (2,))


def test_too_many_values_and_other_structures():
    for count in (2, 4):
        with pytest.raises(ValueError, match=f"{count} values for 3 unknowns"):
            fitting(count)
    with pytest.raises(irad.SignatureError, match="returns a float64 for a float64"):
        newton(njit(lambda x: x[0]), np.zeros(3))
