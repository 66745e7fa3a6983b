"""Pullbacks and Jacobians in a function that is differentiated; the truth are closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

import irad

X, V = np.array([1.2, 0.7, 2.1, 0.4]), np.array([1.0, -0.5, 0.3, 2.0])


@njit
def turned(x, factor, count):
    y = x * factor
    x[0] *= 2.0
    return np.sin(y) * x[0], count


def _pulled(x, factor):
    """The same by hand, for complex numbers as well."""
    z = x * x
    value, slope = np.sin(z * factor), np.cos(z * factor)
    cotangent = value * 2.0 * z[0] * x
    by_x = cotangent * slope * factor * 2.0 * z[0]
    by_x[0] += 2.0 * (cotangent * value).sum()
    return (by_x * x).sum() + (cotangent * slope * z * 2.0 * z[0]).sum() * factor


def test_a_pullback_in_the_function():
    @njit
    def pulled(x, factor):
        z = x * x
        value, pullback = irad.vjp(turned, z, factor, 3)
        z[:] = 7.0  # the pullback has copies
        by_x, by_factor, _ = pullback((value[0] * x, None))
        return (by_x * x).sum() + by_factor * factor

    assert pulled(X, 1.1) == pytest.approx(_pulled(X, 1.1), rel=1e-12)
    wanted = _pulled(X + 1e-30j * V, 1.1 + 0.3e-30j).imag / 1e-30
    assert irad.jvp(pulled, (X, 1.1), (V, 0.3))[1] == pytest.approx(wanted, rel=1e-12)
    by_x, by_factor = irad.grad(pulled, (0, 1))(X, 1.1)
    assert by_x @ V + 0.3 * by_factor == pytest.approx(wanted, rel=1e-12)


def test_a_pullback_of_arguments_in_another_order():
    @njit
    def product(a, b, c):
        return a * a * b * c

    @njit
    def pulled(x):
        by_c, by_a = irad.vjp(product, x, 3.0, 2.0, argnums=(2, 0))[1](1.0)
        return 10.0 * by_c + by_a  # 30 x² + 12 x

    assert irad.value_and_grad(pulled)(5.0) == (810.0, 312.0)


def test_a_pullback_of_what_is_written():
    @njit
    def write(out, x):
        for i in range(x.size):
            out[i] = x[i] ** 2 * out[i]

    @njit
    def pulled(x):
        out = 3.0 * x
        _, pullback = irad.vjp(write, out, x)
        by_out, by_x = pullback((x, None))  # x³ and 6 x³
        return (by_out**2).sum() + (by_x**3).sum()

    wanted = 6.0 * X**5 + 1944.0 * X**8
    np.testing.assert_allclose(irad.grad(pulled)(X), wanted, rtol=1e-12)
    assert irad.jvp(pulled, (X,), (V,))[1] == pytest.approx(wanted @ V, rel=1e-12)

    overlapping = njit(lambda x: irad.vjp(write, x, x)[1]((x, None))[0].sum())
    with pytest.raises(irad.SignatureError, match="overlap"):
        irad.grad(overlapping)(X.copy())


def test_a_pullback_of_what_cannot_run_again():
    noisy = njit(lambda x: x * x * np.random.normal())
    pulled = njit(lambda x: irad.vjp(noisy, x)[1](1.0)[0])
    with pytest.raises(irad.UnsupportedError, match=r"pullback of .* is differentiated, and .* has side effects"):
        irad.grad(pulled)(1.0)
    slope_of_noisy = irad.value_and_grad(noisy)  # the remedy
    np.random.seed(1)
    draw = np.random.normal()
    np.random.seed(1)
    assert njit(lambda: np.random.seed(1))() is None
    assert irad.grad(njit(lambda x: slope_of_noisy(x)[1]))(3.0) == pytest.approx(2.0 * draw)


@njit
def cubes_by_first(x):
    return x**3 * x[0]


@njit
def sum_by_first(x):
    return (x**3).sum() * x[0]


def test_jacobians_in_the_function():
    """Rows or columns; what is differentiated are columns."""
    by_rows, hessian, product = (
        irad.jacobian(cubes_by_first, mode="reverse"),
        irad.hessian(sum_by_first),
        irad.hvp(sum_by_first),
    )

    @njit
    def nested(x):
        squares = (irad.jacobian(cubes_by_first)(x) ** 2).sum() + (by_rows(x) ** 2).sum()
        return squares + np.trace(hessian(x)) + (product(x, x) ** 2).sum()

    # J = diag(3 x² x₀) + x³ e₀ᵀ; H x = 3 ∇f; ∇f = 3 x² x₀ + Σx³ e₀; tr H = 6 Σx x₀ + 6 x₀²
    def by_hand(x):
        square, cube, first = x**2, x**3, x[0]
        jacobian = (9.0 * square**2 * first**2 + cube**2).sum() + 6.0 * first**6
        gradient = 3.0 * square * first + cube.sum() * np.eye(4)[0]
        return 2.0 * jacobian + 6.0 * x.sum() * first + 6.0 * first**2 + 9.0 * (gradient**2).sum()

    assert nested(X) == pytest.approx(by_hand(X), rel=1e-12)
    wanted = by_hand(X + 1e-30j * V).imag / 1e-30
    assert irad.jvp(nested, (X,), (V,))[1] == pytest.approx(wanted, rel=1e-12)
    assert irad.grad(nested)(X) @ V == pytest.approx(wanted, rel=1e-12)


def test_a_jacobian_in_a_function_that_was_never_called():
    """What it is compiled from serves plain calls as well; here the derivative comes first."""

    @njit
    def scaled(x, c):
        return x.copy() * np.sin(c)

    @njit
    def total(a, c):
        return irad.jacobian(scaled, 1)(np.array([a, c]), c).sum()

    assert irad.grad(total, (0, 1))(0.1, 0.2) == pytest.approx((np.cos(0.2), np.cos(0.2) - 0.3 * np.sin(0.2)))
    assert total(0.1, 0.2) == pytest.approx(0.3 * np.cos(0.2))
