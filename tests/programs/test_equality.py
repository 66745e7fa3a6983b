"""Comparisons choose a branch; a number that they pin to a constant keeps its derivative there."""

from __future__ import annotations

import math

import numba
import numpy as np
import pytest
from numba import njit

import irad


@njit
def branch(x):
    if x == 2.0:
        return x * 5.0 + math.sin(x)
    return x * 3.0


@njit
def early_return(x):
    if x != 2.0:
        return 1.0
    return x * x


@njit
def conditional_expression(x):
    return x * x if x == 2.0 else 7.0


@njit
def callee(x, special):
    if x == special:
        return x * x * x
    return 0.0


@njit
def argument_of_callee(x):
    return callee(x, 2.0)


@njit
def where(x):
    return np.where(np.full(3, x) == 2.0, x * x * x, 3.0).sum()


@numba.vectorize
def _ufunc(x):
    if x == 2.0:
        return x * x
    return 3.0 * x


@njit
def ufunc(x):
    return _ufunc(x)


@njit(fastmath=True)
def fast(x):
    if x == 2.0:
        return x * x
    return 3.0 * x


@pytest.mark.parametrize(
    ("f", "expected"),
    [
        (branch, 5.0 + math.cos(2.0)),
        (early_return, 4.0),
        (conditional_expression, 4.0),
        (argument_of_callee, 12.0),
        (where, 36.0),
        (ufunc, 4.0),
        (fast, 4.0),
    ],
)
def test_derivative_of_the_branch_at_a_constant(f, expected):
    assert irad.grad(f)(2.0) == pytest.approx(expected)
    assert irad.grad(f, options=irad.Options(plan="save_all"))(2.0) == pytest.approx(expected)


@njit
def single(x):
    if x == np.float32(2.0):
        return x * x
    return x


def test_single_precision():
    assert irad.grad(single)(np.float32(2.0)) == 4.0


@njit
def elements(x):
    total = 0.0
    for i in range(x.size):
        if x[i] == 1.0:
            total += x[i] * x[i] * i
        elif x[i] != 3.0:
            total += math.exp(x[i])
    return total


def test_elements_of_an_array():
    found = irad.grad(elements)(np.array([1.0, 1.0, 3.0, 2.0]))
    np.testing.assert_allclose(found, [0.0, 2.0, 0.0, math.exp(2.0)])


@njit(fastmath=True)
def same(x, y):
    if x == y:
        return 3.0 * x + y
    return x


@njit(fastmath=True)
def at_zero(x):
    if x == 0.0:
        return 5.0 * x + 2.0
    return 1.0


def test_fast_maths_does_not_merge_equal_numbers():
    assert irad.grad(same, (0, 1))(1.5, 1.5) == (3.0, 1.0)
    assert irad.grad(at_zero)(0.0) == 5.0


@njit
def not_above(a, b):
    return a <= b


def between(x):
    return x * x if 2.0 <= x <= 2.0 else 3.0 * x


def counted(x):
    n = 0
    if x >= 2.0:
        n += 1
    if x <= 2.0:
        n += 1
    return x * x if n == 2 else 3.0 * x


def neither_below_nor_above(x):
    if x < 2.0:
        return 3.0 * x
    if x > 2.0:
        return 3.0 * x
    return x * x


def negated(x):
    return 3.0 * x if x < 2.0 or x > 2.0 else x * x


def not_above_but_not_below(x):
    return x * x if x <= 2.0 and not x < 2.0 else 3.0 * x


def one_of_two(x):
    return x * x if (x >= 2.0) ^ (x > 2.0) else 3.0 * x


def no_distance(x):
    return x * x if math.fabs(x - 2.0) <= 0.0 else 3.0 * x


def no_difference(x):
    return x * x if x - 2.0 == 0.0 else 3.0 * x


def no_square(x):
    return x * x if (x - 2.0) ** 2 <= 0.0 else 3.0 * x


def differences(x):
    return x * x if x - 2.0 <= 0.0 and 2.0 - x <= 0.0 else 3.0 * x


def signs(x):
    return x * x if x >= 2.0 and -x >= -2.0 else 3.0 * x


def extrema(x):
    return x * x if max(x, 2.0) <= 2.0 and min(x, 2.0) >= 2.0 else 3.0 * x


def whole(x):
    return x * x if int(x) == 2 and int(x) == x else 3.0 * x


def by_calls(x):
    return x * x if not_above(x, 2.0) and not_above(2.0, x) else 3.0 * x


def bounds_of_a_table(x):
    n = 0
    for low, high in ((0.0, 2.0), (2.0, 3.0)):
        n += not_above(low, x) and not_above(x, high)
    return x * x if n == 2 else 3.0 * x


def at_last(x):
    while x > 2.0:
        x -= 1.0
    return x * x if x >= 2.0 else 3.0 * x


def quotient(x):
    q = x / 2.0
    return 4.0 * q * q if q >= 1.0 and q <= 1.0 else 3.0 * x


def bits(x):
    return x * x if np.float64(x).view(np.int64) == 0x4000000000000000 else 3.0 * x


def part(x):
    z = complex(x, x)
    return z.real * z.imag if z.real >= 2.0 and z.real <= 2.0 else 3.0 * x


def selection(x):
    y = np.full(2, x)
    return 0.5 * np.where((y >= 2.0) & (y <= 2.0), y * y, 3.0 * y).sum()


def ordered(x, y):
    return 3.0 * x + y if x <= y and y <= x else x


PINNED = (
    between,
    counted,
    neither_below_nor_above,
    negated,
    not_above_but_not_below,
    one_of_two,
    no_distance,
    no_difference,
    no_square,
    differences,
    signs,
    extrema,
    whole,
    by_calls,
    bounds_of_a_table,
    at_last,
    quotient,
    bits,
    part,
    selection,
)


@pytest.mark.parametrize(
    "flags",
    [{}, {"error_model": "numpy", "fastmath": True}, {"fastmath": {"nnan", "nsz"}}],
    ids=["plain", "fastmath", "nnan"],
)
def test_comparisons_for_an_order_pin_no_number(flags):
    def add(first, f, i):
        return njit(**flags)(lambda x: first(x) + f(x[i]))

    order = njit(**flags)(ordered)
    each = njit(**flags)(lambda x: order(x[0], x[1]))
    for i, f in enumerate(PINNED):
        each = add(each, njit(**flags)(f), i + 2)
    x = np.full(len(PINNED) + 2, 2.0)
    found = dict(zip(("x", "y", *(f.__name__ for f in PINNED)), irad.grad(each)(x), strict=True))
    assert found == {"x": 3.0, "y": 1.0, **{f.__name__: 4.0 for f in PINNED}}
    assert irad.jvp(each, (x,), (np.ones_like(x),))[1] == 4.0 * len(PINNED) + 4.0


@njit
def cubes(x):
    total = 0.0
    for i in range(x.size):
        if x[i] == 2.0:
            total += x[i] ** 3
        elif np.float32(3.0) <= x[i] <= 3:
            total += x[0] * x[i] ** 2
        else:
            total += x[i]
    return total


def test_second_derivatives_of_the_branch():
    found = irad.hessian(cubes)(np.array([2.0, 3.0, 1.0], np.float32))
    np.testing.assert_array_equal(found, [[12.0, 6.0, 0.0], [6.0, 4.0, 0.0], [0.0, 0.0, 0.0]])


@njit
def root(x):
    return x**0.5


def test_the_power_one_half_has_the_slope_of_the_root():
    assert irad.grad(root)(4.0) == 0.25
    assert irad.grad(root)(0.0) == math.inf
    assert root(-0.0) == 0.0
    assert math.copysign(1.0, irad.value_and_grad(root)(-0.0)[0]) == 1.0
