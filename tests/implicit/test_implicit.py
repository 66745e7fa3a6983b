"""`irad.implicit`: derivatives of solutions against closed forms; what a solver does is not looked at."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

import irad
from irad import implicit


@njit
def square(x, a):
    return x * x - a


@implicit.solves(square)
def bisected(guess, a):
    """Its own code has the derivative zero: it only compares."""
    low, high = 0.0, 16.0
    for _ in range(80):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if middle * middle < a else (low, middle)
    return high


@njit
def cube_of_root(guess, a):
    return bisected(guess, a) ** 3


def test_a_solver_without_a_derivative_of_its_own():
    value, (by_guess, by_a) = irad.value_and_grad(cube_of_root, argnums=(0, 1))(1.0, 4.0)
    assert value == pytest.approx(8.0)
    assert by_guess == 0.0
    assert by_a == pytest.approx(1.5 * 2.0, rel=1e-12)  # a^1.5
    assert irad.jvp(cube_of_root, (1.0, 4.0), (5.0, 2.0))[1] == pytest.approx(6.0, rel=1e-12)


slope = irad.grad(cube_of_root, 1)


def test_second_derivatives_are_those_of_the_solution():
    """Those of the solver's code would be zero here: the rule calls the solver through its rule."""
    second = 0.75 * 4.0**-0.5
    assert irad.grad(slope, 1)(1.0, 4.0) == pytest.approx(second, rel=1e-12)
    assert irad.jvp(slope, (1.0, 4.0), (None, 1.0))[1] == pytest.approx(second, rel=1e-12)
    assert irad.grad(lambda a: irad.jvp(cube_of_root, (1.0, a), (None, 1.0))[1])(4.0) == pytest.approx(
        second, rel=1e-12
    )


@njit
def system(x, a, b):
    return np.array([x[0] * x[0] + a[0] * x[1] - b, x[1] * a[1] - x[0]])


def closed(a0, a1, b):
    """x1 = x0/a1, x0² + a0/a1 x0 = b"""
    x0 = -0.5 * a0 / a1 + np.sqrt((0.5 * a0 / a1) ** 2 + b)
    return np.array([x0, x0 / a1])


@implicit.solves(system)
def solution(guess, a, b):
    x0 = -0.5 * a[0] / a[1] + np.sqrt((0.5 * a[0] / a[1]) ** 2 + b)
    return np.array([round(x0, 12), round(x0 / a[1], 12)])


@njit
def weighted(guess, a, b):
    x = solution(guess, a, b)
    return x[0] + 2.0 * x[1]


def test_a_system():
    a, b, guess = np.array([1.0, 2.0]), 3.0, np.ones(2)
    np.testing.assert_allclose(solution(guess, a, b), closed(*a, b), rtol=1e-11)
    by_guess, by_a, by_b = irad.grad(weighted, argnums=(0, 1, 2))(guess, a, b)
    h = 1e-30
    expected = [closed(1.0 + h * 1j, 2.0, b), closed(1.0, 2.0 + h * 1j, b), closed(1.0, 2.0, b + h * 1j)]
    expected = [(x[0] + 2.0 * x[1]).imag / h for x in expected]
    np.testing.assert_allclose([*by_a, by_b], expected, rtol=1e-10)
    assert not by_guess.any()
    tangent = irad.jvp(weighted, (guess, a, b), (None, np.array([0.5, -1.0]), 2.0))[1]
    assert tangent == pytest.approx(np.dot(expected, [0.5, -1.0, 2.0]), rel=1e-10)


def test_second_derivatives_of_a_system():
    a, b, guess, direction = np.array([1.0, 2.0]), 3.0, np.ones(2), np.array([0.5, -1.0])
    by_b = irad.jvp(irad.grad(weighted, argnums=2), (guess, a, b), (None, direction, 2.0))[1]
    step, h = 1e-30j, 1e-5
    found = [np.array(closed(*(a + e * direction), b + e * 2.0 + step)) for e in (h, -h)]
    slopes = [(x[0] + 2.0 * x[1]).imag / 1e-30 for x in found]
    assert by_b == pytest.approx((slopes[0] - slopes[1]) / (2.0 * h), rel=1e-8)


def test_what_is_no_solution_has_no_derivative():
    wrong = implicit.solves(square)(lambda guess, a: guess)
    assert wrong(3.0, 4.0) == 3.0
    with pytest.raises(ValueError, match="does not solve"):
        irad.grad(wrong, argnums=1)(3.0, 4.0)
    with pytest.raises(ValueError, match="does not solve"):
        irad.jvp(wrong, (np.nan, 4.0), (None, 1.0))
    assert irad.grad(implicit.solves(square, tolerance=6.0)(lambda guess, a: guess), argnums=1)(3.0, 4.0) == 1 / 6


def test_a_multiple_root_has_no_derivative():
    with pytest.raises(ZeroDivisionError):
        irad.grad(bisected_at_zero, argnums=1)(0.0, 0.0)


@implicit.solves(square)
def bisected_at_zero(guess, a):
    return 0.0 * a


implicit_complex = implicit.solves(square)(lambda guess, a: a + 1j * guess)


def test_unknowns_that_cannot_be_solved_for():
    with pytest.raises(irad.SignatureError, match="the solver of an implicit equation returns"):
        irad.grad(lambda a: implicit_complex(1.0, a).real)(1.0)
