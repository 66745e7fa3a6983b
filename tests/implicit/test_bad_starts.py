"""`newton` from bad starts, for which Newton's method with a line search needs the one with a trust region."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

import irad
from irad.implicit import newton

ROSENBROCK, SINGULAR, SCALED, WOOD, BROWN, BROYDEN, FREUDENSTEIN, CIRCLE, BOGGS, CUBES = range(10)


@njit
def problem(x, which, a):
    """Test problems of Moré, Garbow and Hillstrom, ACM Trans. Math. Softw. 7 (1981) 17-41, and others."""
    y = np.zeros(x.size)
    if which == ROSENBROCK:
        y[0], y[1] = 10.0 * (x[1] - x[0] ** 2), a - x[0]
    elif which == SINGULAR:  # Powell's
        y[0], y[1] = x[0] + 10.0 * x[1], np.sqrt(5.0) * (x[2] - x[3])
        y[2], y[3] = (x[1] - 2.0 * x[2]) ** 2, np.sqrt(10.0) * (x[0] - x[3]) ** 2
    elif which == SCALED:  # Powell's, badly
        y[0], y[1] = 1e4 * x[0] * x[1] - a, np.exp(-x[0]) + np.exp(-x[1]) - 1.0001
    elif which == WOOD:
        one, two = x[1] - x[0] ** 2, x[3] - x[2] ** 2
        y[0], y[1] = -200.0 * x[0] * one - a + x[0], 200.0 * one + 20.2 * (x[1] - 1.0) + 19.8 * (x[3] - 1.0)
        y[2], y[3] = -180.0 * x[2] * two - a + x[2], 180.0 * two + 20.2 * (x[3] - 1.0) + 19.8 * (x[1] - 1.0)
    elif which == BROWN:  # almost linear
        y += x + x.sum() - (x.size + 1.0)
        y[-1] = np.prod(x) - a
    elif which == BROYDEN:  # tridiagonal
        y += (3.0 - 2.0 * x) * x + a
        y[1:] -= x[:-1]
        y[:-1] -= 2.0 * x[1:]
    elif which == FREUDENSTEIN:  # and Roth
        y[0] = -13.0 + x[0] + ((5.0 - x[1]) * x[1] - 2.0) * x[1]
        y[1] = -28.0 - a + x[0] + ((x[1] + 1.0) * x[1] - 14.0) * x[1]
    elif which == CIRCLE:
        y[0], y[1] = x[0] ** 2 + x[1] ** 2 - 1.0 - a, np.exp(x[0] - 1.0) + x[1] ** 3 - 2.0
    elif which == BOGGS:
        y[0], y[1] = x[0] ** 2 - x[1] + a, x[0] - np.cos(0.5 * np.pi * x[1])
    else:
        y += np.exp(x) - a
        y[1:] += x[:-1] ** 3
    return y


FOUND_BY_NEWTON = [
    (ROSENBROCK, [-120.0, 100.0]),
    (SINGULAR, [300.0, -100.0, 0.0, 100.0]),
    (SCALED, [0.0, 1.0]),
    (WOOD, [-3.0, -1.0, -3.0, -1.0]),
    (BROYDEN, [-100.0] * 10),
]
FOUND_BY_BOTH = [
    (BROWN, [0.5] * 10),
    (BROWN, [0.5] * 40),
    (FREUDENSTEIN, [0.5, -2.0]),
    (FREUDENSTEIN, [50.0, -20.0]),
    (CIRCLE, [20.0, 5.0]),
    (BOGGS, [-1.0, -1.0]),
    (CUBES, [5.0, -3.0, 2.0]),
]


@njit
def solved(start, which, a, unit, atol):
    return newton(in_units, unit * start, (which, a, unit), atol=atol, full_output=True)


@njit
def in_units(x, which, a, unit):
    return 1e-6 * problem(x / unit, which, a)


@pytest.mark.slow
def test_roots_from_bad_starts():
    for which, start in FOUND_BY_NEWTON + FOUND_BY_BOTH:
        atol = 1e-8 if which == SINGULAR else 0.0
        for unit in (1.0, 1e8):
            found = solved(np.array(start), which, 1.0, unit, unit * atol)
            assert found.success, (which, start)
            np.testing.assert_allclose(problem(found.x / unit, which, 1.0), 0.0, atol=1e-7 if atol else 1e-9)
        found = solved(np.array(start), which, 1.0, 1.0, atol)
        assert (found.nit > 100) == ((which, start) in FOUND_BY_BOTH and which != CUBES)
    found = solved(np.ones(10), CUBES, -1.0, 1.0, 0.0)  # it has no root
    assert not found.success


@njit
def first_of(start, which, a):
    return newton(problem, start, (which, a))[0]


@pytest.mark.slow
def test_their_derivatives():
    slope = irad.grad(first_of, argnums=2)
    for which, start in FOUND_BY_BOTH:
        given, h = np.array(start), 1e-6
        expected = (first_of(given, which, 1.0 + h) - first_of(given, which, 1.0 - h)) / (2.0 * h)
        assert slope(given, which, 1.0) == pytest.approx(expected, rel=1e-5, abs=1e-8), (which, start)
