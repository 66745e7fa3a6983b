"""`cg`, `gmres` and `bicgstab` against dense solutions, in every order of the modes."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

import irad
from irad.implicit import bicgstab, cg, gmres


@njit
def product(x, m, s):
    return m @ x * s


MATRIX = np.array([[4.0, 1.0, 0.0], [0.5, 3.0, 1.0], [0.2, 0.0, 2.0]])
B = np.array([1.0, 2.0, 3.0])
DIRECTION = np.array([[0.3, -1.0, 0.1], [0.7, 0.2, 0.0], [0.0, 1.0, -0.4]])


@njit
def by_gmres(b, m, s):
    x = gmres(product, b, args=(m, s), rtol=1e-13)
    return (x * x).sum()


@njit
def by_bicgstab(b, m, s):
    x = bicgstab(product, b, None, (m, s), 1e-13)
    return (x * x).sum()


@njit
def by_cg(b, m, s):
    x = cg(product, b, np.ones(3), (m + m.T, s), 1e-13)
    return (x * x).sum()


def slopes(m, of_m):
    """Closed: f = |x|² with M x s = b, at s = 2; cotangents of b, M and s."""
    x = np.linalg.solve(m * 2.0, B)
    multipliers = np.linalg.solve(m.T * 2.0, 2.0 * x)
    return multipliers, of_m(-np.outer(multipliers, x) * 2.0), -multipliers @ m @ x


@pytest.mark.parametrize(
    "f", [by_gmres, pytest.param(by_bicgstab, marks=pytest.mark.slow), by_cg], ids=lambda f: f.__name__
)
def test_first_order(f):
    is_symmetric = f is by_cg
    expected = slopes(MATRIX + MATRIX.T, lambda by: by + by.T) if is_symmetric else slopes(MATRIX, lambda by: by)
    found = irad.grad(f, argnums=(0, 1, 2))(B, MATRIX, 2.0)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)
    tangent = irad.jvp(f, (B, MATRIX, 2.0), (B, DIRECTION, 0.5))[1]
    assert tangent == pytest.approx(expected[0] @ B + (expected[1] * DIRECTION).sum() + expected[2] * 0.5, rel=1e-10)


@pytest.mark.slow
def test_second_order():
    """f is homogeneous of degree -2 in s: its derivative with respect to s is -2 f / s."""
    by_s = irad.grad(by_gmres, argnums=2)
    tangent = irad.jvp(by_s, (B, MATRIX, 2.0), (None, DIRECTION, 0.5))[1]
    _, by_m, slope = slopes(MATRIX, lambda by: by)
    assert tangent == pytest.approx(-(by_m * DIRECTION).sum() - 1.5 * slope * 0.5, rel=1e-10)


@njit
def rotated(x):
    return np.array([x[1], -x[0]])


def test_errors():
    with pytest.raises(ValueError, match="not positive definite"):
        cg(rotated, np.ones(2))
    with pytest.raises(ValueError, match="did not converge"):
        gmres(product, B, args=(MATRIX, 1.0), maxiter=1)
    with pytest.raises(ValueError, match="did not converge"):
        bicgstab(product, B, args=(MATRIX, 1.0), maxiter=1)
    np.testing.assert_allclose(gmres(rotated, [1.0, 2.0]), [-2.0, 1.0])
    assert gmres(rotated, np.zeros(2)).tolist() == [0.0, 0.0]


@njit
def from_the_mean(x):
    return x - x.mean()


@pytest.mark.parametrize("b", [[1.0, 2.0], [1.0, 3.0], [0.3, 0.7], [1.0, 2.0, 4.0], [1e-9, 2e-9, 5e-9, 1e-8]])
def test_a_singular_matrix(b: list[float]):
    """Zeros are not exact: what rounding leaves of them depends on the numbers and on the processor."""
    with pytest.raises(ValueError, match="singular"):
        gmres(from_the_mean, np.array(b))
    within = np.array(b) - np.mean(b)
    np.testing.assert_allclose(gmres(from_the_mean, within), within, rtol=1e-10)


def test_restarts():
    n = 12
    matrix = np.diag(np.arange(2.0, 2.0 + n)) + np.eye(n, k=1)
    found = gmres(product, np.ones(n), args=(matrix, 1.0), restart=4, maxiter=500)
    np.testing.assert_allclose(found, np.linalg.solve(matrix, np.ones(n)), rtol=1e-8)


@pytest.mark.parametrize("solver", [cg, gmres, bicgstab], ids=lambda f: f.__name__)
def test_sizes_whose_squares_overflow_or_vanish(solver):
    symmetric, right = MATRIX + MATRIX.T, np.array([1.0, -2.0, 3.0])
    expected = np.linalg.solve(symmetric, right)
    for unit in (2.0**-600, 2.0**600, 1e-300):
        found = solver(product, unit * right, args=(symmetric, 1.0)) / unit
        np.testing.assert_allclose(found, expected, rtol=1e-9)
    for unit in (1e-200, 1e200):  # of the matrix
        found = solver(product, right, args=(symmetric, unit)) * unit
        np.testing.assert_allclose(found, expected, rtol=1e-9)


@njit
def quartered(x):
    return 4.0 * x


@njit
def compiled_cg(b, x0):
    return cg(quartered, b, x0)


def test_right_sides_of_every_kind():
    sides = [np.array([1, 0]).astype(kind) for kind in ("?", "u1", "i8", "f4", ">f8")]
    for b in (*sides, np.arange(4.0)[::-2], np.zeros(0)):
        for found in (cg(quartered, b), compiled_cg(b, None)) if b.dtype.isnative else (cg(quartered, b),):
            assert found.dtype == np.float64
            np.testing.assert_allclose(found, b / 4.0)
    for b in (np.ones((2, 2)), np.ones(2) * 1j, 3.0):
        for solver in (lambda b: cg(quartered, b), lambda b: compiled_cg(b, None)):
            with pytest.raises(irad.SignatureError, match=r"cg is given .* where a vector is needed"):
                solver(b)
    for b, x0, message in (
        (np.ones(2), np.ones(3), "begins with more or fewer"),
        (np.array([np.inf, 1.0]), None, "not finite"),
        (np.array([np.nan, 1.0]), None, "not finite"),
    ):
        for solver in (lambda b, x0: cg(quartered, b, x0), compiled_cg):
            with pytest.raises(ValueError, match=message):
                solver(b, x0)
    with pytest.raises(ValueError, match="more or fewer numbers than it is given"):
        gmres(njit(lambda x: x[:1]), np.ones(3))
