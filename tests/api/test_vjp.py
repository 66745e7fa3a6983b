"""`vjp`: the pullback may be called repeatedly and late."""

from __future__ import annotations

import gc
import math
from collections import namedtuple

import numba
import numpy as np
import pytest

import irad

Pair = namedtuple("Pair", "first second")


@numba.njit
def squares(x):
    return x * x


@numba.njit
def product(a, b):
    return a * b + math.sin(a)


def test_float_value():
    value, pullback = irad.vjp(product, 1.5, 2.0)
    assert value == product(1.5, 2.0)
    assert pullback(1.0) == pytest.approx((2.0 + math.cos(1.5), 1.5), rel=1e-15)
    assert pullback(2) == pytest.approx((4.0 + 2 * math.cos(1.5), 3.0), rel=1e-15)


def test_array_value():
    x = np.arange(4.0)
    value, pullback = irad.vjp(squares, x)
    np.testing.assert_array_equal(value, x * x)
    for seed in (np.ones(4), np.arange(4.0), np.arange(8.0)[::2]):
        (gradient,) = pullback(seed)
        np.testing.assert_array_equal(gradient, 2 * x * seed)


def test_results_of_two_calls_are_independent():
    _, pullback = irad.vjp(squares, np.ones(3))
    (first,) = pullback(np.ones(3))
    (second,) = pullback(np.full(3, 2.0))
    np.testing.assert_array_equal(first, [2, 2, 2])
    np.testing.assert_array_equal(second, [4, 4, 4])


def test_argument_may_be_overwritten_before_the_pullback_runs():
    @numba.njit
    def f(x, y):
        return (np.exp(x) * y).sum()

    x, y = np.linspace(0, 1, 5), np.linspace(1, 2, 5)
    expected = np.exp(x) * y, np.exp(x)
    _, pullback = irad.vjp(f, x, y)
    x[:], y[:] = np.nan, np.nan
    for gradient, truth in zip(pullback(1.0), expected, strict=True):
        np.testing.assert_allclose(gradient, truth, rtol=1e-15)


def test_value_may_be_overwritten_before_the_pullback_runs():
    @numba.njit
    def f(x):
        return np.exp(x)

    x = np.linspace(0, 1, 5)
    value, pullback = irad.vjp(f, x)
    value[:] = np.nan
    np.testing.assert_allclose(pullback(np.ones(5))[0], np.exp(x), rtol=1e-15)


def test_many_pullbacks_alive_called_in_any_order():
    pullbacks = [irad.vjp(squares, np.full(50, float(i)))[1] for i in range(20)]
    gc.collect()
    for i in (7, 0, 19, 7, 3):
        np.testing.assert_array_equal(pullbacks[i](np.ones(50))[0], np.full(50, 2.0 * i))


def test_other_calls_between_the_sweeps_do_not_disturb():
    _, pullback = irad.vjp(squares, np.arange(4.0))
    irad.grad(product)(1.0, 2.0)
    _, other = irad.vjp(squares, np.ones(100))
    np.testing.assert_array_equal(other(np.ones(100))[0], np.full(100, 2.0))
    del other
    gc.collect()
    np.testing.assert_array_equal(pullback(np.ones(4))[0], 2 * np.arange(4.0))


def test_structures():
    @numba.njit
    def f(pair, n):
        x, k = pair
        y = x * k
        return (y * n, k * k), pair.second + 1.0, n

    x = np.arange(3.0)
    value, pullback = irad.vjp(f, Pair(x, 2.0), 3)
    np.testing.assert_array_equal(value[0][0], 6 * x)
    assert value[1:] == (3.0, 3)
    gradient, nothing = pullback(((np.ones(3), 1.0), 10.0, None))
    assert nothing is None
    np.testing.assert_array_equal(gradient.first, np.full(3, 6.0))
    assert gradient.second == 9.0 + 4.0 + 10.0
    gradient, _ = pullback((None, 10.0, None))
    np.testing.assert_array_equal(gradient.first, 0)
    assert gradient.second == 10.0
    gradient, _ = pullback(((None, 1.0), None, None))
    assert gradient.second == 4.0


@pytest.mark.parametrize("step", [2, -1, -2])
def test_strided_argument_gets_a_gradient_with_its_strides(step):
    x = np.arange(8.0)[::step]
    _, pullback = irad.vjp(squares, x)
    (gradient,) = pullback(np.ones(x.size))
    assert gradient.strides == x.strides == irad.grad(lambda x: squares(x).sum())(x).strides
    np.testing.assert_array_equal(gradient, 2 * x)
    (other,) = pullback(np.zeros(x.size))
    np.testing.assert_array_equal(gradient, 2 * x, "it is not a view of what the pullback works on")
    assert not other.any()


def test_fortran_argument():
    A = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    _, pullback = irad.vjp(squares, A)
    np.testing.assert_array_equal(pullback(np.ones((2, 3)))[0], 2 * A)


def test_returned_view_of_an_argument():
    @numba.njit
    def tail(x):
        return x[1:]

    x = np.arange(4.0)
    _, pullback = irad.vjp(tail, x)
    for _ in range(2):
        np.testing.assert_array_equal(pullback(np.arange(1.0, 4.0))[0], [0, 1, 2, 3])


def test_argument_that_is_written():
    @numba.njit
    def double(x):
        for i in range(x.size):
            x[i] *= x[i]
        return x.sum()

    x = np.arange(4.0)
    value, pullback = irad.vjp(double, x)
    assert value == 14.0
    np.testing.assert_array_equal(x, [0, 1, 4, 9])
    for _ in range(2):
        np.testing.assert_array_equal(pullback(1.0)[0], [0, 2, 4, 6])


def test_arguments_that_overlap_and_are_written():
    @numba.njit
    def f(x, y):
        for i in range(x.size):
            x[i] = 2 * x[i]
        return (x * y).sum()

    x = np.arange(1.0, 4.0)
    _, pullback = irad.vjp(f, x, x)
    for _ in range(2):
        dx, dy = pullback(1.0)
        np.testing.assert_allclose(dx, 8 * np.arange(1.0, 4.0))
        np.testing.assert_allclose(dy, dx)


def test_read_only_array_that_repeats_elements():
    @numba.njit
    def f(A):
        return A.sum() + A[0, 0]

    _, pullback = irad.vjp(f, np.broadcast_to(2.0, (2, 3)))
    np.testing.assert_array_equal(pullback(1.0)[0], [[2, 1, 1], [1, 1, 1]])


def test_no_arguments_with_derivative_is_refused():
    @numba.njit
    def f(n):
        return n * 1.5

    with pytest.raises(irad.SignatureError, match="has a derivative"):
        irad.vjp(f, 3)


SEEDS = {
    "another shape": (np.ones(3), r"a different shape from .*: \(3,\), not \(4,\)"),
    "another dtype": (np.ones(4, np.float32), "float32"),
    "more dimensions": (np.ones((4, 1)), r"\[:, ::1\]"),
    "a float": (1.0, "float64"),
    "a tuple": ((np.ones(4),), "Tuple"),
}


@pytest.mark.parametrize(("seed", "words"), SEEDS.values(), ids=SEEDS)
def test_seed_that_does_not_fit_is_refused(seed, words):
    _, pullback = irad.vjp(squares, np.arange(4.0))
    with pytest.raises(irad.SignatureError, match=words):
        pullback(seed)
    np.testing.assert_array_equal(pullback(np.ones(4))[0], 2 * np.arange(4.0))


def test_exception_of_the_primal():
    @numba.njit
    def f(x):
        if x < 0:
            raise ValueError("negative")
        return math.sqrt(x)

    with pytest.raises(ValueError, match="negative"):
        irad.vjp(f, -1.0)
    assert irad.vjp(f, 4.0)[1](1.0) == (0.25,)


def test_loop_state_is_kept_for_repeated_calls():
    @numba.njit
    def f(x, n):
        for _ in range(n):
            x = math.sin(x) * x
        return x

    def truth(x, n, d=1.0):
        for _ in range(n):
            d *= math.cos(x) * x + math.sin(x)
            x = math.sin(x) * x
        return d

    _, pullback = irad.vjp(f, 1.9, 30)
    for seed in (1.0, 3.0):
        gradient, nothing = pullback(seed)
        assert nothing is None
        assert gradient == pytest.approx(seed * truth(1.9, 30), rel=1e-12)


def test_keywords_are_arguments():
    @numba.njit
    def scaled(x, scale, shift=1.0):
        return scale * x**2 + shift

    value, pullback = irad.vjp(scaled, 3.0, shift=0.5, scale=2.0)
    assert value == 18.5
    assert pullback(1.0) == (12.0, 9.0, 1.0)
    with pytest.raises(irad.SignatureError, match="no argument 'scael'"):
        irad.vjp(scaled, 3.0, scael=2.0)


def test_defaults_in_compiled_code():
    @numba.njit
    def scaled(x, scale=3.0):
        return scale * x * x

    @numba.njit
    def caller(x):
        value, pullback = irad.vjp(scaled, x)
        return value, pullback(1.0)

    assert caller(2.0) == (12.0, (12.0, 4.0))


@numba.njit
def fill(out, x, factor):
    for i in range(x.size):
        out[i] = factor * x[i] ** 2
    x[0] = 7.0


def test_a_function_that_only_writes_takes_the_cotangents_of_its_arrays():
    x, out = np.array([1.0, 2.0, 3.0]), np.zeros(3)
    value, pullback = irad.vjp(fill, out, x, 10.0)
    assert value is None
    np.testing.assert_array_equal(out, [10.0, 40.0, 90.0])
    by_out, by_x, by_factor = pullback((np.array([1.0, 1.0, 2.0]), None, None))
    np.testing.assert_array_equal(by_out, 0.0)  # overwritten
    np.testing.assert_array_equal(by_x, [20.0, 40.0, 120.0])
    assert by_factor == 1.0 + 4.0 + 18.0
    _, by_x, by_factor = pullback((None, np.ones(3), None))
    np.testing.assert_array_equal(by_x, [0.0, 1.0, 1.0])
    assert by_factor == 0.0


def test_arrays_in_tuples_that_are_written():
    @numba.njit
    def swap(pair, k):
        a, b = pair
        for i in range(a.size):
            a[i], b[i] = k * b[i], a[i]

    a, b, c = np.array([1.0, 2.0]), np.array([3.0, 5.0]), np.array([1.0, 10.0])
    _, pullback = irad.vjp(swap, (a, b), 2.0)
    (by_a, by_b), by_k = pullback(((c, None), None))
    np.testing.assert_array_equal(by_a, 0.0)
    np.testing.assert_array_equal(by_b, 2.0 * c)
    assert by_k == 3.0 + 50.0


def test_inside_compiled_code_too():
    @numba.njit
    def caller(out, x, weights):
        _, pullback = irad.vjp(fill, out, x, 10.0)
        return pullback((weights, None, None))[1]

    by_x = caller(np.zeros(3), np.array([1.0, 2.0, 3.0]), np.ones(3))
    np.testing.assert_array_equal(by_x, [20.0, 40.0, 60.0])


@pytest.mark.parametrize(
    ("cotangent", "words"),
    [
        (1.0, "the cotangent of what fill writes is a float64"),
        ((np.ones(3),), "the cotangent of what fill writes"),
        ((np.ones(4), None, None), r"a different shape from the array: \(4,\), not \(3,\)"),
        ((np.ones((3, 3)), None, None), r"the cotangent of argument 0 \(out\) of fill"),
        ((None, None, 1.0), r"a cotangent is given for argument 2 \(factor\) of fill"),
    ],
)
def test_cotangents_of_arrays_that_do_not_fit(cotangent, words):
    _, pullback = irad.vjp(fill, np.zeros(3), np.ones(3), 2.0)
    with pytest.raises(irad.SignatureError, match=words):
        pullback(cotangent)
