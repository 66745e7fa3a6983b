"""Arguments and parts of results that may be None."""

from __future__ import annotations

import numba
import numpy as np
import pytest

import irad
from irad.testing.allocations import allocations
from irad.testing.check_gradient import check_quickly

SIGNATURES = ["float64(optional(float64), float64)", "float64(optional(complex128), float64)"]


@pytest.fixture(scope="module", params=SIGNATURES, ids=["float", "complex"])
def scaled(request):
    @numba.njit(request.param)
    def scaled(a, x):
        if a is None:
            return x * x
        return (a * a * x).real

    return scaled


def test_a_number(scaled):
    assert irad.grad(scaled, (0, 1))(2.0, 3.0) == (12.0, 4.0)
    value, pullback = irad.vjp(scaled, 2.0, 3.0)
    assert (value, pullback(0.5)) == (12.0, (6.0, 2.0))
    assert irad.autodiff(irad.Reverse, scaled, irad.Active(2.0), irad.Active(3.0)) == (12.0, 4.0)


def test_none(scaled):
    assert irad.grad(scaled, (0, 1))(None, 3.0) == (None, 6.0)
    assert irad.value_and_grad(scaled)(None, 3.0) == (9.0, None)
    assert irad.vjp(scaled, None, 3.0)[1](0.5) == (None, 3.0)


def test_a_complex_number():
    @numba.njit(SIGNATURES[1])
    def f(a, x):
        return x if a is None else (a * x).imag

    assert irad.grad(f)(1 + 2j, 3.0) == 3j
    assert irad.grad(f)(2.0, 3.0) == 0.0


def test_from_compiled_code(scaled):
    gradient = irad.grad(scaled, (0, 1))

    @numba.njit
    def caller(a, x):
        given = None if x > 5 else a
        by_a, by_x = gradient(given, x)
        return (-1.0 if by_a is None else by_a), by_x

    assert caller(2.0, 3.0) == (12.0, 4.0)
    assert caller(2.0, 6.0) == (-1.0, 12.0)


def test_none_for_a_plain_parameter():
    @numba.njit
    def f(a, x):
        return x if a is None else a * x

    with pytest.raises(irad.SignatureError, match=r"argument 0 \(a\)"):
        irad.grad(f)(None, 1.0)
    assert irad.grad(f, 1)(None, 1.0) == 1.0


def test_single_precision():
    @numba.njit("float32(optional(float32))")
    def f(a):
        return np.float32(0) if a is None else a * a

    found = irad.grad(f)(np.float32(1.5))
    assert (found, type(found)) == (3.0, np.float32)


@numba.njit
def powers(x, n):
    square = None
    if n > 0:
        square = x * x
    total = None
    if n > 1:
        total = (x * x * x).sum()
    return square, (total, x[0] * x[1])


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
@pytest.mark.parametrize("n", [0, 1, 2])
def test_parts_of_a_result(n, dtype):
    check_quickly(powers, np.array([1.5, 2.0, 0.5], dtype), n, forward=True)


def test_no_cotangent_of_a_part():
    x = np.array([2.0, 3.0])
    (square, (total, _)), pullback = irad.vjp(powers, x, 2)
    assert square.tolist() == [4.0, 9.0]
    assert total == 35.0
    assert pullback((None, (1.0, None)))[0].tolist() == [12.0, 27.0]
    assert pullback((np.ones(2), None))[0].tolist() == [4.0, 6.0]
    assert pullback((None, None))[0].tolist() == [0.0, 0.0]


def test_a_cotangent_of_what_is_none():
    x = np.array([2.0, 3.0])
    (square, (total, _)), pullback = irad.vjp(powers, x, 0)
    assert square is None
    assert total is None
    with pytest.raises(irad.SignatureError, match="is None"):
        pullback((np.ones(2), None))
    with pytest.raises(irad.SignatureError, match="is None"):
        pullback((None, (1.0, None)))
    assert pullback((None, (None, 2.0)))[0].tolist() == [6.0, 4.0]
    with pytest.raises(irad.SignatureError, match="is None"):
        irad.autodiff(irad.Reverse, powers, irad.Duplicated(x, np.zeros(2)), irad.Const(0), seed=(np.ones(2), None))


def test_a_cotangent_of_another_type():
    _, pullback = irad.vjp(powers, np.array([2.0, 3.0]), 2)
    with pytest.raises(irad.SignatureError, match=r"value\[1\]\[0\] of powers"):
        pullback((None, (np.ones(2), None)))


def test_a_tuple_that_may_be_none():
    @numba.njit
    def f(x, n):
        pair = None
        if n > 0:
            pair = (x * x, np.full(n, x))
        return pair, x

    check_quickly(f, 1.5, 0, forward=True)
    check_quickly(f, 1.5, 3, forward=True)


def test_a_seed_with_parts():
    x, dx = np.array([2.0, 3.0]), np.zeros(2)
    seed = (np.array([1.0, 10.0]), None)
    irad.autodiff(irad.Reverse, powers, irad.Duplicated(x, dx), irad.Const(1), seed=seed)
    assert dx.tolist() == [4.0, 60.0]


# --------------------------------------------------------------------------------------------- results in forward mode


def test_the_tangent_of_none_is_none():
    @numba.njit
    def squares(x, limit):
        for i in range(x.size):
            x[i] *= x[i]
        if x[0] > limit:
            return None
        return x * 3.0, x.sum(), 7

    x, dx = np.array([1.5, 2.0]), np.array([1.0, -1.0])
    assert irad.jvp(squares, (x, 1.0), (dx, 0.0)) == (None, None)
    assert (x.tolist(), dx.tolist()) == ([2.25, 4.0], [3.0, -4.0])  # the arrays are those of a plain call
    given = irad.Duplicated(x, dx), irad.Const(1.0)
    assert irad.autodiff(irad.Forward, squares, *given) is None
    assert irad.autodiff(irad.ForwardWithPrimal, squares, *given) == (None, None)
    x, dx = np.array([1.5, 2.0]), np.array([1.0, -1.0])
    (_, total, _), (tripled, tangent, seven) = irad.jvp(squares, (x, 9.0), (dx, None))
    assert (total, tangent, tripled.tolist(), seven) == (6.25, -1.0, [9.0, -12.0], None)


def test_a_tangent_that_may_be_none_in_compiled_code():
    @numba.njit
    def products(x, n):
        if n % 3 == 0:
            return None
        return x * float(n)

    push = irad.pushforward(products)

    @numba.njit
    def total(x, n):
        found = 0.0
        for i in range(n):
            value, tangent = push(x, x, i)
            if value is not None and tangent is not None:
                found += tangent.sum()
        return found

    x = np.array([1.0, 2.0])
    assert total(x, 6) == 3.0 * (1 + 2 + 4 + 5)
    with allocations() as count:
        total(x, 100)
        assert count().kept == 0 < count().made


@pytest.mark.parametrize("dtype", [np.float32, np.complex64, np.complex128])
def test_the_tangent_of_a_number_has_its_precision(dtype):
    @numba.njit
    def square(x):
        return x * x if abs(x) > 1.0 else None

    value, tangent = irad.jvp(square, (dtype(2.0),), (dtype(1.0),))
    assert (value, tangent) == (4.0, 4.0)
    assert np.dtype(type(tangent)) == dtype
    assert irad.jvp(square, (dtype(0.5),), (dtype(1.0),)) == (None, None)


def test_a_value_with_auxiliary_data_that_may_be_none():
    @numba.njit
    def square(x):
        return (x * x, 3) if x > 1.0 else None

    push = irad.pushforward(square, has_aux=True)
    assert push(2.0, 1.0) == (4.0, 4.0, 3)
    with pytest.raises(irad.SignatureError, match="returns None for these arguments"):
        push(0.5, 1.0)
