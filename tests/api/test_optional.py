"""Functions that return None on some paths."""

from __future__ import annotations

import numba
import numpy as np
import pytest

import irad


@numba.njit
def falls_off(x):
    if x < 1.0:
        return x * x
    if x > 2.0:
        return x * x * x
    return None


@numba.njit
def maybe_array(x):
    if x[0] < 0.0:
        return None
    return x * x


@numba.njit
def in_place(x, out):
    if x[0] < 0.0:
        return None
    out[:] = x * x
    return x[0]


@pytest.mark.parametrize("plan", ["default", "save_all"])
def test_where_there_is_a_value(plan):
    options = irad.Options(plan=plan)
    assert irad.grad(falls_off, options=options)(0.5) == 1.0
    assert irad.value_and_grad(falls_off, options=options)(3.0) == (27.0, 27.0)


def test_where_there_is_none():
    for derivative in (irad.grad, irad.value_and_grad):
        with pytest.raises(irad.SignatureError, match="returns None"):
            derivative(falls_off)(1.5)
    assert irad.grad(falls_off)(0.5) == 1.0


def test_in_compiled_code():
    gradient = irad.grad(falls_off)

    @numba.njit
    def caller(x):
        return gradient(x) + 1.0

    assert caller(0.5) == 2.0
    with pytest.raises(irad.SignatureError, match="returns None"):
        caller(1.5)


def test_pullback():
    value, pullback = irad.vjp(maybe_array, np.array([1.0, 2.0]))
    np.testing.assert_array_equal(value, [1.0, 4.0])
    np.testing.assert_array_equal(pullback(np.ones(2))[0], [2.0, 4.0])
    with pytest.raises(irad.SignatureError, match="returns None"):
        irad.vjp(maybe_array, np.array([-1.0, 2.0]))


def test_without_a_cotangent_none_is_a_value():
    for first, expected in ((1.0, 1.0), (-1.0, None)):
        x, out = np.array([first, 2.0]), np.zeros(2)
        dx, dout = np.zeros(2), np.ones(2)
        arguments = irad.Duplicated(x, dx), irad.Duplicated(out, dout)
        _, value = irad.autodiff(irad.ReverseWithPrimal, in_place, *arguments, seed=None)
        assert value == expected
        np.testing.assert_array_equal(dx, [2.0, 4.0] if expected else [0.0, 0.0])
        np.testing.assert_array_equal(dout, [0.0, 0.0] if expected else [1.0, 1.0])
