"""Second derivatives of functions that call libraries, forward over reverse and reverse over reverse.

Matrices have sizes that are known when the functions are compiled, so that LLVM unrolls the loops of the adjoints.
"""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit
from scipy import stats

import irad

X, V = np.array([1.2, 0.7, 2.1, 0.4]), np.array([1.0, -0.5, 0.3, 2.0])


@njit
def matrix(x):
    a = np.zeros((3, 3))
    for i in range(3):
        for j in range(3):
            a[i, j] = x[i] * x[3] + x[j] ** 2
        a[i, i] += (i + 2) * x[i]
    return a


@njit
def determinant(x):
    return np.linalg.slogdet(matrix(x))[1] + np.linalg.det(matrix(x))


@njit
def triangle(x):
    return (np.linalg.cholesky(matrix(x) @ matrix(x).T) ** 3).sum()


@njit
def singular_vectors(x):
    u, s, vt = np.linalg.svd(matrix(x)[:2])
    return s[0] ** 2 * u[0, 0] * vt[0, 1] * u[1, 0]


@njit
def eigenvectors(x):
    w, v = np.linalg.eig(matrix(x))
    return w[0] ** 2 + v[0, 0] ** 2 * v[1, 1] ** 2


@njit
def pseudo_inverse(x):
    return (np.linalg.pinv(matrix(x)[:, :2].copy()) ** 2).sum()


@pytest.mark.parametrize("f", [determinant, triangle, singular_vectors, eigenvectors, pseudo_inverse])
def test_factorisations(f):
    gradient, step = irad.grad(f), 1e-5
    wanted = (gradient(X + step * V) - gradient(X - step * V)) / (2.0 * step)
    forward, reverse = irad.hvp(f)(X, V), irad.vjp(gradient, X)[1](V)[0]
    np.testing.assert_allclose(forward, wanted, rtol=1e-6, atol=1e-7 * np.abs(wanted).max())
    np.testing.assert_allclose(reverse, forward, rtol=1e-9, atol=1e-10 * np.abs(wanted).max())


@njit
def drawn(a):
    np.random.seed(3)
    return np.random.gamma(a) ** 2


def test_draws_as_quantiles():
    """As quantiles: not along the path of the sampler, which rejects and accepts."""
    a, step = 1.2, 1e-3
    level = stats.gamma.cdf(np.sqrt(drawn(a)), a)
    below, here, above = stats.gamma.ppf(level, [a - step, a, a + step]) ** 2
    wanted = (below - 2.0 * here + above) / step**2
    assert irad.hvp(drawn)(a, 1.0) == pytest.approx(wanted, rel=1e-5)
    assert irad.grad(irad.grad(drawn))(a) == pytest.approx(wanted, rel=1e-5)
