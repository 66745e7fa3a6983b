"""`lsqr` against closed forms, for more equations than unknowns and for fewer."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

import irad
from irad.implicit import lsqr


@njit
def product(x, m, s):
    return s * (m @ x)


@njit
def fitted(b, m, s, start, weights):
    return (lsqr(product, b, start, (m, s), 1e-13) * weights).sum()


def closed(b, m, s, start, weights):
    """Plain transposes, so that complex steps can be taken."""
    m = m * s
    if m.shape[0] >= m.shape[1]:
        return weights @ np.linalg.solve(m.T @ m, m.T @ b)
    return weights @ (start + m.T @ np.linalg.solve(m @ m.T, b - m @ start))


def slopes(b, m, s, start, weights):
    def along(*changes):
        h = 1e-30
        values = [each + 1j * h * change for each, change in zip((b, m, s), changes, strict=True)]
        return closed(*values, start, weights).imag / h

    of_b = np.array([along(unit, 0.0, 0.0) for unit in np.eye(b.size)])
    of_m = np.array([along(0.0, unit.reshape(m.shape), 0.0) for unit in np.eye(m.size)]).reshape(m.shape)
    return of_b, of_m, along(0.0, 0.0, 1.0)


SHAPES = [(6, 3), (3, 3), (3, 6), (5, 1), (1, 4)]


GRADIENT = irad.value_and_grad(fitted, argnums=(0, 1, 2))


@pytest.mark.slow
def test_first_order():
    rng = np.random.default_rng(5)
    for rows, columns in SHAPES:
        m, b = rng.normal(size=(rows, columns)), rng.normal(size=rows)
        given = b, m, 1.7, rng.normal(size=columns), rng.normal(size=columns)
        value, found = GRADIENT(*given)
        assert value == pytest.approx(closed(*given), rel=1e-10)
        expected = slopes(*given)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-10)
        tangents = rng.normal(size=rows), rng.normal(size=m.shape), 0.4
        wanted = sum(np.sum(one * other) for one, other in zip(expected, tangents, strict=True))
        assert irad.jvp(fitted, given, (*tangents, None, None))[1] == pytest.approx(wanted, rel=1e-8)


@pytest.mark.slow
def test_second_order():
    """The solution is homogeneous of degree -1 in s."""
    by_s = irad.grad(fitted, argnums=2)
    rng = np.random.default_rng(6)
    for rows, columns in ((5, 2), (2, 4)):
        m, b, zero = rng.normal(size=(rows, columns)), rng.normal(size=rows), np.zeros(columns)
        given = b, m, 1.7, zero, rng.normal(size=columns)
        direction = rng.normal(size=m.shape)
        tangent = irad.jvp(by_s, given, (None, direction, 0.3, None, None))[1]
        wanted = -(slopes(*given)[1] * direction).sum() / 1.7 + 0.3 * 2.0 * closed(*given) / 1.7**2
        assert tangent == pytest.approx(wanted, rel=1e-7)


def test_values():
    rng = np.random.default_rng(7)
    m, b = rng.normal(size=(30, 8)) * np.geomspace(1.0, 1e3, 8), rng.normal(size=30)
    expected = np.linalg.lstsq(m, b)[0]
    for unit in (1.0, 2.0**600, 1e-300):
        np.testing.assert_allclose(lsqr(product, unit * b, np.zeros(8), (m, 1.0)) / unit, expected, rtol=1e-7)
    for unit in (1e-200, 1e200):
        np.testing.assert_allclose(lsqr(product, b, np.zeros(8), (m, unit)) * unit, expected, rtol=1e-7)
    np.testing.assert_allclose(lsqr(product, b, expected, (m, 1.0)), expected, rtol=1e-7)
    assert lsqr(product, np.zeros(30), np.zeros(8), (m, 1.0)).tolist() == [0.0] * 8
    # orthogonal to the columns
    assert lsqr(product, [0, 0, 1], np.zeros(2, int), (np.eye(3, 2), 1.0)).tolist() == [0.0, 0.0]
    wide = rng.normal(size=(4, 9))
    np.testing.assert_allclose(lsqr(product, b[:4], np.zeros(9), (wide, 1.0)), np.linalg.pinv(wide) @ b[:4], rtol=1e-8)
    # of less than full rank: the shortest solution
    flat = np.outer([1.0, 2.0, 3.0], [1.0, -1.0])
    np.testing.assert_allclose(
        lsqr(product, np.ones(3), np.zeros(2), (flat, 1.0)), np.linalg.pinv(flat) @ np.ones(3), rtol=1e-8
    )


@pytest.mark.slow
def test_matrices_without_full_rank():
    flat = np.outer([1.0, 2.0, 3.0], [1.0, -1.0])
    for given in (
        (np.ones(3), flat, 1.0, np.zeros(2), np.array([1.0, 0.0])),
        (np.array([1.0, 0.0]), np.ones((2, 3)), 1.0, np.zeros(3), np.ones(3)),
    ):
        with pytest.raises(ValueError, match="not have full rank"):
            GRADIENT(*given)
        tangents = np.ones(given[0].size), np.eye(*given[1].shape), 0.0
        with pytest.raises(ValueError, match="not have full rank"):
            irad.jvp(fitted, given, (*tangents, None, None))


def test_errors():
    with pytest.raises(ValueError, match="did not converge"):
        lsqr(product, np.ones(3), np.zeros(3), (np.diag([1.0, 2.0, 3.0]), 1.0), maxiter=1)
    with pytest.raises(ValueError, match="more or fewer numbers than b has"):
        lsqr(product, np.ones(4), np.zeros(2), (np.ones((3, 2)), 1.0))
    with pytest.raises(ValueError, match="not finite"):
        lsqr(product, np.array([np.nan, 1.0]), np.zeros(2), (np.eye(2), 1.0))
    for start in (np.zeros((2, 2)), None):
        with pytest.raises(irad.SignatureError, match=r"lsqr is given .* where a vector is needed"):
            lsqr(product, np.ones(2), start, (np.eye(2), 1.0))
    with pytest.raises(irad.SignatureError, match=r"lsqr is given .* where a vector is needed"):
        njit(lambda m: lsqr(product, np.ones(2), None, (m, 1.0)))(np.eye(2))
