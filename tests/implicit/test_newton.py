"""`newton` and `brentq`: solutions and derivatives against closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

import irad
from irad.implicit import brentq, newton


@njit
def square(x, a):
    return x * x - a


@njit
def root(guess, a):
    return newton(square, guess, (a,))


def test_a_number():
    assert newton(square, 1, 4.0) == pytest.approx(2.0, abs=1e-10)  # one argument needs no tuple
    value, (by_guess, by_a) = irad.value_and_grad(root, argnums=(0, 1))(1.0, 4.0)
    assert value == pytest.approx(2.0, abs=1e-10)
    assert by_guess == 0.0
    assert by_a == pytest.approx(0.25, rel=1e-9)
    assert irad.jvp(root, (1.0, 4.0), (7.0, 1.0))[1] == pytest.approx(0.25, rel=1e-9)


def test_terms_that_cancel():
    """The root is the rounding of 1 at most, so no value is small beside the root; a step changes none any more."""

    @njit
    def equation(x, a):
        return np.exp(x) - 1.0 - a

    solve = irad.value_and_grad(lambda a: newton(equation, 0.0, (a,)))
    for a in (1e-3, 1e-8, 1e-12):
        value, slope = solve(a)
        assert value == pytest.approx(np.log1p(a), abs=4e-16)
        assert slope == pytest.approx(1.0 / (1.0 + a), rel=1e-12)

    @njit
    def without_root(x, a):
        return np.abs(x) + a

    with pytest.raises(ValueError, match="found no solution"):
        newton(without_root, 0.3, (1.0,))


def test_errors():
    with pytest.raises(ValueError, match="found no solution"):
        newton(square, 0.7, (-1.0,))
    with pytest.raises(ZeroDivisionError, match="is zero"):
        irad.grad(root, argnums=1)(0.0, 0.0)  # the guess is a root, a double one
    with pytest.raises(ValueError, match="same sign"):
        brentq(square, 3.0, 5.0, (4.0,))
    with pytest.raises(ValueError, match="no root within"):
        brentq(square, 0.0, 5.0, (4.0,), maxiter=2)


@njit
def balance(x, a):
    """Of a matrix and a number: X·X = a[0]·1 + y·e, where y is the sum of X minus a[1]."""
    matrix, y = x
    return matrix * matrix - a[0] - 0.1 * y, matrix.sum() - y - a[1]


@njit
def balanced(a):
    matrix, y = newton(balance, (np.ones((2, 2)), 0.0), (a,))
    return matrix[0, 1] * y


def balanced_closed(a):
    """All entries are m: m² = a0 + 0.1 y, y = 4 m - a1."""
    m = 0.2 + np.sqrt(0.04 + a[0] - 0.1 * a[1])
    return m * (4.0 * m - a[1])


@pytest.mark.slow
def test_a_matrix_and_a_number():
    a = np.array([2.0, 3.0])
    h = 1e-30
    expected = [balanced_closed(a + h * 1j * unit).imag / h for unit in np.eye(2)]
    value, slope = irad.value_and_grad(balanced)(a)
    assert value == pytest.approx(balanced_closed(a), rel=1e-9)
    np.testing.assert_allclose(slope, expected, rtol=1e-8)


@njit
def settled(x, a):
    found = x**3 + 3.0 * x - a
    found[1:] -= x[:-1]
    found[:-1] -= x[1:]
    return found


@njit
def free(a):
    return (newton(settled, np.zeros(6), (a,), 1e-12, matrix_free=True) ** 2).sum()


def settled_slope(a, weights_of):
    x = newton(settled, np.zeros(6), (a,), rtol=1e-13)
    matrix = np.diag(3.0 * x**2 + 3.0) - np.eye(6, k=1) - np.eye(6, k=-1)
    return np.linalg.solve(matrix.T, weights_of(x))


@pytest.mark.slow
def test_without_a_matrix():
    a = np.linspace(1.0, 4.0, 6)
    expected = settled_slope(a, lambda x: 2.0 * x)
    np.testing.assert_allclose(irad.grad(free)(a), expected, rtol=1e-8)
    assert irad.jvp(free, (a,), (a,))[1] == pytest.approx(np.dot(expected, a), rel=1e-8)


@njit
def cube(x, a):
    return x**3 - a


def test_brentq():
    """The code itself has no derivative: bisection compares."""
    found = irad.value_and_grad(lambda a: brentq(cube, 0.0, 10.0, (a,)))(8.0)
    assert found == pytest.approx((2.0, 1.0 / 12.0), rel=1e-11)
    assert brentq(cube, 10.0, 0.0, 8.0) == pytest.approx(2.0, rel=1e-11)
    assert brentq(cube, 2.0, 10.0, 8.0) == 2.0  # at an end
    optimize = pytest.importorskip("scipy.optimize")
    for f in (cube, njit(lambda x, a: np.tanh(5.0 * x) - 0.1 * a), njit(lambda x, a: np.exp(x) - a)):
        expected = optimize.brentq(f, -3.0, 5.0, (3.0,))
        assert brentq(f, -3.0, 5.0, (3.0,)) == pytest.approx(expected, rel=1e-11)
