"""`cg`, `minres`, `gmres` and `bicgstab` against dense solutions, in every order of the modes."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

import irad
from irad.implicit import bicgstab, cg, gmres, minres


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


@pytest.mark.parametrize("solver", [cg, minres, gmres, bicgstab], ids=lambda f: f.__name__)
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


# --- preconditioners and indefinite matrices --------------------------------------------------------------------------

CHAIN = np.diag(np.geomspace(1.0, 1e4, 12)) + np.diag(np.full(11, 0.4), 1) + np.diag(np.full(11, -0.3), -1)
SIDE = np.cos(np.arange(12.0))


@njit
def inverse(v, m, s):
    """The exact inverse, not symmetric: a method that has it, or its transpose where that is due, needs one step."""
    return np.linalg.solve(m * s, v)


@njit
def diagonal(v, m, s):
    return v / (np.diag(m) * s)


@njit
def in_two_steps(b, m, s):
    x = gmres(product, b, None, (m, s), 1e-12, 0.0, 20, 2, M=inverse)
    return x[0] + (x * x).sum()


@njit
def steps_of_others(b, m, s):
    return bicgstab(product, b, None, (m, s), 1e-12, 0.0, 2, inverse), cg(product, b, None, (m + m.T, s), M=diagonal)


def test_derivatives_do_not_depend_on_the_preconditioner():
    x = np.linalg.solve(2.0 * CHAIN, SIDE)
    multipliers = np.linalg.solve(2.0 * CHAIN.T, 2.0 * x + np.eye(12)[0])
    expected = multipliers, -2.0 * np.outer(multipliers, x), -multipliers @ CHAIN @ x
    with pytest.raises(ValueError, match="did not converge"):
        gmres(product, SIDE, args=(CHAIN, 2.0), rtol=1e-12, maxiter=2)
    found = irad.grad(in_two_steps, argnums=(0, 1, 2))(SIDE, CHAIN, 2.0)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
    tangent = irad.jvp(in_two_steps, (SIDE, CHAIN, 2.0), (SIDE, CHAIN, 0.5))[1]
    wanted = expected[0] @ SIDE + (expected[1] * CHAIN).sum() + expected[2] * 0.5
    assert tangent == pytest.approx(wanted, rel=1e-9)


def test_preconditioners():
    one, other = steps_of_others(SIDE, CHAIN, 2.0)
    np.testing.assert_allclose(one, np.linalg.solve(2.0 * CHAIN, SIDE), rtol=1e-9)
    symmetric = CHAIN + CHAIN.T
    expected = np.linalg.solve(2.0 * symmetric, SIDE)
    np.testing.assert_allclose(other, expected, rtol=1e-8)
    np.testing.assert_allclose(
        cg(product, SIDE, np.ones(12), (symmetric, 2.0), maxiter=12, M=diagonal), expected, rtol=1e-8
    )
    np.testing.assert_allclose(
        minres(product, SIDE, np.ones(12), (symmetric, 2.0), maxiter=14, M=diagonal), expected, rtol=1e-8
    )
    for solver in (cg, minres):
        with pytest.raises(ValueError, match=r"preconditioner .*is not positive definite"):
            solver(product, SIDE, args=(symmetric, 2.0), M=njit(lambda v, m, s: -v))
        with pytest.raises(ValueError, match=r"preconditioner .* more or fewer"):
            solver(product, SIDE, args=(symmetric, 2.0), M=njit(lambda v, m, s: v[1:]))


INDEFINITE = np.array([[1.0, 2.0, 0.0, 0.0], [2.0, -3.0, 0.5, 0.0], [0.0, 0.5, 0.0, 1.0], [0.0, 0.0, 1.0, 4.0]])


@njit
def by_minres(b, m, s):
    x = minres(product, b, None, (m + m.T, s), 1e-13)
    return (x * x).sum()


def test_an_indefinite_matrix():
    b = np.array([1.0, 2.0, -0.5, 3.0])
    symmetric = 2.0 * INDEFINITE
    x = np.linalg.solve(2.0 * symmetric, b)
    multipliers = np.linalg.solve(2.0 * symmetric, 2.0 * x)
    of_m = -2.0 * np.outer(multipliers, x)
    expected = multipliers, of_m + of_m.T, -multipliers @ symmetric @ x
    found = irad.grad(by_minres, argnums=(0, 1, 2))(b, INDEFINITE, 2.0)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
    tangent = irad.jvp(by_minres, (b, INDEFINITE, 2.0), (b, INDEFINITE, 0.5))[1]
    wanted = expected[0] @ b + (expected[1] * INDEFINITE).sum() + expected[2] * 0.5
    assert tangent == pytest.approx(wanted, rel=1e-9)
    with pytest.raises(ValueError, match="did not converge"):
        minres(product, b, args=(INDEFINITE, 1.0), maxiter=2)
    with pytest.raises(ValueError, match=r"minres .*(singular|did not converge)"):
        minres(product, np.array([1.0, 2.0, 3.0, 1.0]), args=(np.diag([1.0, -1.0, 2.0, 0.0]), 1.0))
    with pytest.raises(ValueError, match=r"minres .*(singular|did not converge)"):
        minres(product, b, args=(np.full((4, 4), 0.3), 1.0))
    within = np.array([1.0, 2.0, 3.0, 0.0])
    np.testing.assert_allclose(
        minres(product, within, args=(np.diag([1.0, -1.0, 2.0, 0.0]), 1.0)), [1.0, -2.0, 1.5, 0.0], atol=1e-9
    )
