"""``irad.grad(f)`` written inside compiled code."""

from __future__ import annotations

import subprocess
import sys

import numba
import numpy as np
import pytest

import irad


@numba.njit
def product(x, y):
    return x * x * y


@numba.njit
def squares(a):
    return (a * a).sum()


def test_each_of_them():
    @numba.njit
    def caller(x, a):
        out = np.empty_like(a)
        value = irad.value_and_grad_into(squares)(out, a)
        return irad.grad(product)(x, 2.0), irad.value_and_grad(product, (0, 1))(x, 2.0), value, out

    gradient, (value, gradients), total, out = caller(3.0, np.arange(3.0))
    assert (gradient, value, gradients, total) == (12.0, 18.0, (12.0, 9.0), 5.0)
    np.testing.assert_array_equal(out, [0.0, 2.0, 4.0])


def test_second_derivatives():
    @numba.njit
    def volume(x, k):
        return k * x[0] * x[1] ** 2

    @numba.njit
    def caller(v, x):
        both = irad.hvp_and_grad(volume, (0, 1))(x, 2.0, (v, 1.0))
        return irad.hvp(volume)(x, v, 2.0), irad.hessian(volume, chunk=1)(x, 2.0), both

    product, matrix, ((by_x, by_k), (_, slope)) = caller(np.array([1.0, 0.0]), np.array([3.0, 5.0]))
    np.testing.assert_array_equal(product, [0.0, 20.0])
    np.testing.assert_array_equal(matrix, [[0.0, 20.0], [20.0, 12.0]])
    np.testing.assert_array_equal(by_x, [25.0, 50.0])
    assert (by_k, slope) == (25.0, 75.0)


def test_a_function_that_is_an_argument():
    @numba.njit
    def descend(f, x, y):
        slope = irad.grad(f, argnums=0)
        for _ in range(50):
            x -= 0.1 * slope(x, y)
        return x

    assert abs(descend(product, 1.0, 2.0)) < 1e-6


def test_auxiliary_result():
    @numba.njit
    def model(x):
        return x * x, 7

    @numba.njit
    def caller(x):
        return irad.grad(model, has_aux=True)(x)

    assert caller(3.0) == (6.0, 7)


def test_argnums_must_be_known():
    @numba.njit
    def caller(x, k):
        return irad.grad(product, k)(x, 2.0)

    with pytest.raises(irad.SignatureError, match=r"argnums .* known only at run time"):
        caller(3.0, 1)


def test_what_is_differentiated_must_be_a_compiled_function():
    @numba.njit
    def caller(x):
        return irad.grad(x)(2.0)

    with pytest.raises(irad.SignatureError, match="derivative of a float64"):
        caller(3.0)


def test_the_module_may_be_unused_before():
    script = """
import numba, irad
@numba.njit
def f(x): return x * x
@numba.njit
def caller(x): return irad.grad(f)(x)
assert caller(3.0) == 6.0
"""
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.parametrize("function", [irad.check, irad.tape_report], ids=["check", "tape_report"])
def test_what_is_for_python_alone_is_refused_by_name(function):
    @numba.njit
    def caller(a):
        return function(squares, a)

    with pytest.raises(irad.SignatureError, match=f"compiled code calls irad.{function.__name__}") as caught:
        caller(np.ones(2))
    assert caught.value.location.file == __file__
