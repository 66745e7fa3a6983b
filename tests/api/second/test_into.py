"""Second derivatives written to arrays of the caller, in compiled code, too; and what a function returns besides."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

import irad


@njit
def energy(x, w):
    return w**2 * (x[1:] * x[:-1] ** 2).sum()


@njit
def energy_and_size(x, w):
    return energy(x, w), x.size


X, V, W = np.array([1.0, 2.0, 3.0]), np.array([0.5, -1.0, 2.0]), 1.5
HESSIAN = np.array([[4.0, 2.0, 0.0], [2.0, 6.0, 4.0], [0.0, 4.0, 0.0]]) * W**2
GRADIENT = np.array([4.0, 13.0, 4.0]) * W**2


def test_products():
    expected = irad.hvp(energy)(X, V, W)
    np.testing.assert_allclose(expected, HESSIAN @ V, rtol=1e-14)
    product, gradient = np.full(3, np.nan), np.full(3, np.nan)
    assert irad.hvp_into(energy)(product, X, V, W) == energy(X, W)
    np.testing.assert_array_equal(product, expected)
    product[:] = np.nan
    assert irad.hvp_and_grad_into(energy_and_size, has_aux=True)((product, gradient), X, V, W) == (energy(X, W), 3)
    np.testing.assert_array_equal(product, expected)
    np.testing.assert_allclose(gradient, GRADIENT, rtol=1e-14)
    found = irad.hvp(energy, argnums=(0, 1))(X, W, (V, 2.0))
    number = np.full(1, np.nan)
    irad.hvp_into(energy, argnames=("x", "w"))((product, number), X, W, (V, 2.0))
    np.testing.assert_allclose(product, found[0], rtol=1e-14)
    assert number[0] == pytest.approx(found[1], rel=1e-14)


def test_matrices():
    matrix = np.full((3, 3), np.nan)
    for chunk in (1, 3, None):
        matrix[:] = np.nan
        gradient = irad.hessian_into(energy, chunk=chunk)(matrix, X, W)
        np.testing.assert_allclose(matrix, HESSIAN, rtol=1e-14)
        np.testing.assert_allclose(gradient, GRADIENT, rtol=1e-14)
    found, size = irad.hessian(energy_and_size, has_aux=True)(X, W)
    np.testing.assert_allclose(found, HESSIAN, rtol=1e-14)
    assert size == 3


def test_compiled_code():
    @njit
    def newton(x, w, matrix, product, v):
        gradient = irad.hessian_into(energy)(matrix, x, w)
        value = irad.hvp_into(energy)(product, x, v, w)
        return gradient, value

    matrix, product = np.full((3, 3), np.nan), np.full(3, np.nan)
    gradient, value = newton(X, W, matrix, product, V)
    np.testing.assert_allclose(matrix, HESSIAN, rtol=1e-14)
    np.testing.assert_allclose(gradient, GRADIENT, rtol=1e-14)
    np.testing.assert_allclose(product, HESSIAN @ V, rtol=1e-14)
    assert value == energy(X, W)


@njit
def polar_and_more(p, scale):
    return np.array([p[0] * np.cos(p[1]), scale * p[0] * np.sin(p[1]), p[0]]), (p.size, 2.0 * p)


@pytest.mark.parametrize("mode", [None, "forward", "reverse"])
def test_jacobians_with_something_besides(mode):
    p = np.array([2.0, 0.5])
    c, s = np.cos(0.5), np.sin(0.5)
    expected = np.array([[c, -2.0 * s], [3.0 * s, 6.0 * c], [1.0, 0.0]])
    jacobian, aux = irad.jacobian(polar_and_more, has_aux=True, mode=mode)(p, 3.0)
    (value, again), same = irad.value_and_jacobian(polar_and_more, 0, True, mode=mode)(p, 3.0)
    for found, (size, doubled) in ((jacobian, aux), (same, again)):
        np.testing.assert_allclose(found, expected, rtol=1e-14, atol=1e-15)
        assert (size, doubled.tolist()) == (2, [4.0, 1.0])
    out = np.empty((3, 2))
    value, aux = irad.value_and_jacobian_into(polar_and_more, has_aux=True, mode=mode)(out, p, 3.0)
    np.testing.assert_allclose(out, expected, rtol=1e-14, atol=1e-15)
    np.testing.assert_allclose(value, [2.0 * c, 6.0 * s, 2.0], rtol=1e-14)
    assert aux[0] == 2


def test_a_function_that_returns_no_pair():
    with pytest.raises(irad.SignatureError, match=r"with has_aux=True it must return \(value, aux\)"):
        irad.jacobian(energy, has_aux=True)(X, W)
