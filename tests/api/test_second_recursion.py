"""Second derivatives of recursive functions; the truth are closed forms, and the same functions as loops."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

import irad

X, V = np.array([1.2, 0.7, 2.1, 0.4]), np.array([1.0, -0.5, 0.3, 2.0])


@njit
def power(x, n):
    return 1.0 if n == 0 else x * power(x, n - 1)


@njit
def fourth(x):
    return power(x, 4)


@njit
def halves(x, low, high):
    if high - low == 1:
        return np.sin(x[low])
    middle = (low + high) // 2
    return halves(x, low, middle) * halves(x, middle, high)


@njit
def product(x):
    return halves(x, 0, x.size)


@njit
def scaled(x, k, n):
    """Makes an array in each call, and has a parameter beside it."""
    if n == 0:
        return k * np.sin(x[0])
    return scaled(x * k, k, n - 1) * x[n % x.size]


@njit
def scaled_by_loop(x, k, n):
    total = 1.0
    while n > 0:
        total *= x[n % x.size]
        x, n = x * k, n - 1
    return total * k * np.sin(x[0])


@njit
def halved(x):
    """Makes two arrays in each call, and calls itself with both."""
    if x.size == 1:
        return np.sin(x[0])
    middle = x.size // 2
    return halved(1.1 * x[:middle]) * halved(0.9 * x[middle:])


@njit
def in_a_loop(x, n):
    total = 0.0
    for k in range(2):
        y = x * (k + 1.0)
        total += in_a_loop(0.3 * y, n - 1) * y[k] if n > 0 else (y**3).sum()
    return total


@njit
def copied(x, n):
    y = x.copy()
    return (y * y).sum() if n == 0 else copied(y, n - 1) * y[0]


@njit
def copied_or_scaled(x, n):
    y = x.copy()
    if n == 0:
        return (y * y * y).sum()
    for i in range(y.size):
        y[i] = y[i] * x[(i + 1) % x.size]
    z = y if n % 2 else y * x
    return copied_or_scaled(z, n - 1) + z[0]


@njit
def returned(x, n):
    return x * x if n == 0 else returned(np.sin(x), n - 1) * x


def test_numbers():
    assert irad.hvp(fourth)(1.5, 1.0) == pytest.approx(27.0)
    assert irad.grad(irad.grad(fourth))(1.5) == pytest.approx(27.0)
    rate = irad.pushforward(fourth)
    along = njit(lambda v, x: rate(x, v)[1])
    assert irad.grad(along, (0, 1))(2.0, 1.5) == pytest.approx((13.5, 54.0))


def test_third_and_fourth_derivatives_of_numbers():
    third = irad.grad(irad.grad(irad.grad(power)))
    assert [third(1.5, n) for n in (0, 2, 3, 4, 5)] == pytest.approx([0.0, 0.0, 6.0, 36.0, 135.0])
    assert irad.grad(third)(1.5, 4) == pytest.approx(24.0)


def curvature_along(f):
    curvature = irad.hvp(f)
    return njit(lambda v, x, w: (curvature(x, v) * w).sum())


def test_third_derivatives_of_arrays():
    """The truth: the product of sines along v and w, differentiated by hand once more."""
    tangent, cotangent = np.tan(X), 1.0 / np.tan(X)
    w = np.array([0.3, 0.1, -1.0, 2.0])
    first, second = (V * cotangent).sum(), (w * cotangent).sum()
    mixed = (V * w / np.sin(X) ** 2).sum()
    slope = -1.0 / np.sin(X) ** 2
    wanted = cotangent * (first * second - mixed)
    wanted += V * slope * second + first * w * slope + 2.0 * V * w / np.sin(X) ** 2 / tangent
    found = irad.grad(curvature_along(product), 1)(V, X, w)
    np.testing.assert_allclose(found, wanted * np.sin(X).prod(), rtol=1e-12)


@pytest.mark.parametrize(
    "f", [lambda x: scaled(x, 0.8, 3), lambda x: halved(x), lambda x: in_a_loop(x, 2), lambda x: copied(x, 2)]
)
def test_third_derivatives_where_each_call_makes_an_array(f):
    w, step = 2.0 * V, 1e-5
    along = curvature_along(njit(f))
    found = irad.grad(along, 1)(V, X, w)
    differences = [(along(V, X + e, w) - along(V, X - e, w)) / (2 * step) for e in step * np.eye(X.size)]
    np.testing.assert_allclose(found, differences, rtol=1e-7, atol=1e-8)
    first = irad.grad(njit(f))
    second = irad.grad(njit(lambda v, x: (first(x) * v).sum()), 1)
    in_reverse = irad.grad(njit(lambda v, x, w: (second(v, x) * w).sum()), 1)
    np.testing.assert_allclose(found, in_reverse(V, X, w), rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("f", [lambda x: copied_or_scaled(x, 3), lambda x: returned(x, 2).sum()])
def test_third_derivatives_that_are_refused(f):
    with pytest.raises(irad.UnsupportedError):
        irad.grad(curvature_along(njit(f)), 1)(V, X, 2.0 * V)


def test_hessian_of_an_array():
    sine, cosine = np.sin(X), np.cos(X)
    wanted = np.outer(cosine / sine, cosine / sine) * sine.prod()
    np.fill_diagonal(wanted, -sine.prod())
    np.testing.assert_allclose(irad.hessian(product)(X), wanted, rtol=1e-12)
    np.testing.assert_allclose(irad.vjp(irad.grad(product), X)[1](V)[0], wanted @ V, rtol=1e-12)


def test_a_loss_of_value_and_gradient():
    def loss_of(f):
        value_and_slope = irad.value_and_grad(f)

        @njit
        def loss(x, k):
            value, slope = value_and_slope(x, k, 3)
            return value * value + (slope**2).sum()

        return loss

    recursive, wanted = loss_of(scaled), irad.grad(loss_of(scaled_by_loop), (0, 1))(X, 0.8)
    found = irad.grad(recursive, (0, 1))(X, 0.8)
    np.testing.assert_allclose(found[0], wanted[0], rtol=1e-12)
    assert found[1] == pytest.approx(wanted[1], rel=1e-12)
    tangent = irad.jvp(recursive, (X, 0.8), (V, 0.3))[1]
    assert tangent == pytest.approx(wanted[0] @ V + 0.3 * wanted[1], rel=1e-12)


def test_what_is_refused():
    @njit
    def writes(x, n):
        if n == 0:
            return x[0] * x[0]
        x[0] *= 2.0
        return writes(x, n - 1)

    @njit
    def writes_twice(x):
        return writes(x, 2)

    with pytest.raises(irad.SignatureError, match="writes to its arguments"):
        irad.hvp(writes_twice)(X.copy(), V)
    pulled = njit(lambda x: irad.vjp(fourth, x)[1](1.0)[0])
    with pytest.raises(irad.UnsupportedError, match="fourth is recursive"):
        irad.grad(pulled)(1.5)
