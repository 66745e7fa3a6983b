"""`full_output=True` of linear solvers: failures that compiled code handles, derivatives with and without success."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

import irad
from irad.implicit import bicgstab, cg, gmres, lsqr, minres, newton

B = np.array([1.0, 2.0, 3.0])
MATRIX = np.array([[4.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 2.0]])


@njit
def product(x, m):
    return m @ x


@njit
def by_cg(b, m, limit):
    found = cg(product, b, None, (m,), maxiter=limit, full_output=True)
    return (found.x**2).sum() if found.success else -5.0 * b[0] + m[0, 0]


@njit
def by_minres(b, m, limit):
    found = minres(product, b, None, (m,), maxiter=limit, full_output=True)
    return (found.x**2).sum() if found.success else -5.0 * b[0] + m[0, 0]


@njit
def by_gmres(b, m, limit):
    found = gmres(product, b, None, (m,), maxiter=limit, full_output=True)
    return (found.x**2).sum() if found.success else -5.0 * b[0] + m[0, 0]


@njit
def by_bicgstab(b, m, limit):
    found = bicgstab(product, b, None, (m,), maxiter=limit, full_output=True)
    return (found.x**2).sum() if found.success else -5.0 * b[0] + m[0, 0]


@njit
def by_lsqr(b, m, limit):
    found = lsqr(product, b, np.zeros(3), (m,), maxiter=limit, full_output=True)
    return (found.x**2).sum() if found.success else -5.0 * b[0] + m[0, 0]


@pytest.mark.slow
@pytest.mark.parametrize("f", [by_cg, by_minres, by_gmres, by_bicgstab, by_lsqr], ids=lambda f: f.__name__)
def test_a_failure_is_handled(f):
    x = np.linalg.solve(MATRIX, B)
    multipliers = np.linalg.solve(MATRIX.T, 2.0 * x)
    both = irad.value_and_grad(f, argnums=(0, 1))
    value, (of_b, of_m) = both(B, MATRIX, 0)
    assert value == pytest.approx(x @ x)
    np.testing.assert_allclose(of_b, multipliers, rtol=1e-7)
    expected = -np.outer(multipliers, x)
    if f in (by_cg, by_minres):  # they read the matrix as a symmetric one all the same
        expected, of_m = expected + expected.T, of_m + of_m.T
    np.testing.assert_allclose(of_m, expected, rtol=1e-7, atol=1e-9)
    value, (of_b, of_m) = both(B, MATRIX, 1)
    assert value == -1.0
    np.testing.assert_array_equal(of_b, [-5.0, 0.0, 0.0])
    np.testing.assert_array_equal(of_m, np.diag([1.0, 0.0, 0.0]))
    assert irad.jvp(f, (B, MATRIX, 0), (B, None, None))[1] == pytest.approx(2.0 * x @ x, rel=1e-7)
    assert irad.jvp(f, (B, MATRIX, 1), (B, None, None)) == (-1.0, -5.0)


@njit
def used_all_the_same(b, limit):
    return lsqr(product, b, np.zeros(3), (MATRIX,), maxiter=limit, full_output=True).x[0]


@njit
def used_of_cg(b, limit):
    return cg(product, b, None, (MATRIX,), maxiter=limit, full_output=True).x[0]


@pytest.mark.slow
def test_the_derivative_without_success_is_nan():
    for f in (used_all_the_same, used_of_cg):
        assert np.isnan(irad.grad(f)(B, 1)).all()
        assert np.isnan(irad.jvp(f, (B, 1), (B, None))[1])


@pytest.mark.slow
def test_second_derivatives():
    inverse, direction = np.linalg.inv(MATRIX), np.array([1.0, -2.0, 0.5])
    slope = irad.grad(by_cg)
    expected = 2.0 * inverse @ inverse @ direction
    np.testing.assert_allclose(irad.jvp(slope, (B, MATRIX, 0), (direction, None, None))[1], expected, rtol=1e-7)
    assert not irad.jvp(slope, (B, MATRIX, 1), (direction, None, None))[1].any()


@njit
def singular(x, a):
    return np.array([x[0] + x[1] - a, 2.0 * x[0] + 2.0 * x[1] - a])


@njit
def bent(x, a):
    return np.array([x[0] ** 2 - a, x[1] + x[0]])


@njit
def cliff(x, a):
    return x - a if x[0] == 1.0 else x * np.nan


@njit
def square(x, a):
    return x * x - a


@pytest.mark.slow
def test_newton_without_a_matrix():
    assert not newton(singular, np.ones(2), 1.0, matrix_free=True, full_output=True).success
    found = newton(bent, np.ones(2), 4.0, matrix_free=True, full_output=True)
    assert found.success
    np.testing.assert_allclose(found.x, [2.0, -2.0], rtol=1e-9)
    with pytest.raises(ValueError, match="found no solution within maxiter steps"):
        newton(singular, np.ones(2), 1.0, matrix_free=True)
    # no value after a step is finite; the derivative of a number is zero
    assert not newton(cliff, np.ones(2), 3.0, matrix_free=True, full_output=True).success
    assert newton(square, 0.0, 4.0, matrix_free=True, full_output=True) == (0.0, False, 0, 1)
    assert newton(square, 1.0, 4.0, matrix_free=True, full_output=True)[:2] == (2.0, True)


@njit
def negated(x, m):
    return -x


@njit
def rotated(x):
    return np.array([x[1], -x[0]])


def test_what_is_counted():
    found = cg(product, B, None, (MATRIX,), full_output=True)
    assert found.success
    assert (found.nit, found.nfev) == (3, 4)
    assert cg(product, B, found.x, (MATRIX,), full_output=True)[1:] == (True, 0, 1)
    assert cg(product, B, None, (-MATRIX,), full_output=True)[1:] == (False, 0, 2)  # not positive definite
    for b in (np.array([1.0, np.nan, 0.0]), np.array([1.0, np.inf, 0.0])):  # an error, not a failure
        with pytest.raises(ValueError, match="not finite"):
            cg(product, b, None, (MATRIX,), full_output=True)


@pytest.mark.slow
def test_every_reason_for_a_failure():
    """The residual is never larger than where the search began, except that of stabilised bi-conjugate gradients."""
    unsolvable = np.diag([1.0, 2.0, 0.0])
    for solver in (minres, gmres, lsqr):
        found = solver(product, B, np.zeros(3), (unsolvable,), full_output=True)
        assert found.success == (solver is lsqr)
        assert np.linalg.norm(unsolvable @ found.x - B) <= np.linalg.norm(B)
    assert minres(product, B, None, (MATRIX,), M=negated, full_output=True)[1:] == (False, 0, 1)
    assert bicgstab(rotated, np.ones(2), full_output=True)[1:] == (False, 0, 2)
    found = gmres(product, B, None, (MATRIX,), maxiter=1, M=negated, full_output=True)
    assert found[1:] == (False, 1, 4)  # products for the two starts and for what is corrected
    assert 0.0 < np.linalg.norm(MATRIX @ found.x - B) < np.linalg.norm(B)
    assert lsqr(product, B, np.zeros(3), (MATRIX,), full_output=True)[1:3] == (True, 3)
