"""`Options(zero_times_infinity="zero")`: a zero partial derivative wins over an infinite cotangent.

Distances of points from themselves are zero wherever the points are, so finite differences give the gradient.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numba import njit, prange, types

import irad
from irad.testing.gradients.slope import gradient

PLANS = ("default", "save_all")
POINTS = np.array([[0.3, -1.0], [1.2, 0.4], [-0.7, 0.9], [0.1, 2.0]])


def zero(plan: Any = "default", **others: Any) -> irad.Options:
    return irad.Options(plan=plan, zero_times_infinity="zero", verify=True, **others)


@njit
def by_loops(p):
    s = 0.0
    for i in range(p.shape[0]):
        for j in range(p.shape[0]):
            q = 0.0
            for k in range(p.shape[1]):
                d = p[i, k] - p[j, k]
                q += d * d
            s += math.sqrt(q) * (1.0 + i)
    return s


@njit
def by_arrays(p):
    d = p.reshape(p.shape[0], 1, 2) - p.reshape(1, p.shape[0], 2)
    return np.sqrt((d**2).sum(axis=2)).sum()


@njit(parallel=True)
def in_parallel(p):
    s = 0.0
    for i in prange(p.shape[0]):
        for j in range(p.shape[0]):
            s += math.sqrt((p[i, 0] - p[j, 0]) ** 2 + (p[i, 1] - p[j, 1]) ** 2)
    return s


@njit
def by_dots(p, i, j):
    d = p[i] - p[j]
    return math.sqrt(np.dot(d, d))


@njit
def by_complex_numbers(p, i, j):
    z = complex(p[i, 0] - p[j, 0], p[i, 1] - p[j, 1])
    return math.sqrt((z * z.conjugate()).real)


@njit
def by_complex_dots(p, i, j):
    d = p[i] * (1.0 + 2.0j) - p[j] * (1.0 + 2.0j)
    return math.sqrt(np.vdot(d, d).real)


@njit
def by_powers(p, i, j):
    return (abs(p[i, 0] - p[j, 0]) ** 2.5 + (p[i, 1] - p[j, 1]) ** 4) ** 0.25


@njit
def by_quotients(p, i, j):
    return math.sqrt((p[i, 0] - p[j, 0]) ** 2 / (1.0 + p[i, 1] ** 2))


@njit
def length(d, k):
    return 0.0 if k == d.size else d[k] * d[k] + length(d, k + 1)


@njit
def by_recursion(p, i, j):
    return math.sqrt(length(p[i] - p[j], 0))


def over_pairs(distance):
    @njit
    def summed(p):
        s = 0.0
        for i in range(p.shape[0]):
            for j in range(p.shape[0]):
                s += distance(p, i, j) * (1.0 + i)
        return s

    return summed


DISTANCES = (by_dots, by_complex_numbers, by_complex_dots, by_powers, by_quotients, by_recursion)
FUNCTIONS = {f.__name__: f for f in (by_loops, by_arrays, in_parallel)}
FUNCTIONS |= {distance.__name__: over_pairs(distance) for distance in DISTANCES}


def expected(f) -> np.ndarray:
    return gradient(lambda x: float(f(x.reshape(POINTS.shape))), POINTS.ravel())[0].reshape(POINTS.shape)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_distances(name):
    f = FUNCTIONS[name]
    wanted = expected(f)
    for plan in PLANS:
        assert np.isnan(irad.grad(f, options=irad.Options(plan=plan))(POINTS)).all()
        found = irad.grad(f, options=zero(plan))(POINTS)
        np.testing.assert_allclose(found, wanted, 1e-7, 1e-7, err_msg=plan)


@pytest.mark.parametrize("name", ["by_loops", "by_dots"])
def test_single_precision(name):
    f = FUNCTIONS[name]
    found = irad.grad(f, options=zero())(POINTS.astype(np.float32))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected(f), 1e-5, 1e-5)


def test_other_ways_to_ask():
    wanted = expected(by_loops)
    _, pullback = irad.vjp(by_loops, POINTS, options=zero())
    np.testing.assert_allclose(pullback(1.0)[0], wanted, 1e-7)
    shadow = np.zeros_like(POINTS)
    irad.autodiff(irad.Reverse, by_loops, irad.Duplicated(POINTS, shadow), options=zero())
    np.testing.assert_allclose(shadow, wanted, 1e-7)


def test_the_environment_variable(monkeypatch):
    monkeypatch.setenv("IRAD_ZERO_TIMES_INFINITY", "zero")
    np.testing.assert_allclose(irad.grad(njit(by_loops.py_func))(POINTS), expected(by_loops), 1e-7)
    monkeypatch.setenv("IRAD_ZERO_TIMES_INFINITY", "cotangent")
    assert np.isnan(irad.grad(njit(by_loops.py_func))(POINTS)).all()


@pytest.mark.filterwarnings("ignore:First-class function type feature is experimental")
def test_a_function_that_is_called_through_a_pointer():
    @njit("float64(float64)")
    def vanishing(x):
        return math.sqrt(x * x * 0.0)

    @njit(types.float64(types.FunctionType(types.float64(types.float64)), types.float64))
    def called(function, x):
        return function(x)

    for options, wanted in ((irad.Options(), math.nan), (zero(), 0.0), (irad.Options(), math.nan)):
        found = irad.grad(called, argnums=1, options=options)(vanishing, 1.5)
        np.testing.assert_equal(found, wanted)


def test_other_infinities_and_nans_stay():
    @njit(error_model="numpy")
    def root(x, y):
        return math.sqrt(x) * y

    assert irad.grad(root, options=zero())(0.0, 2.0) == math.inf

    @njit(error_model="numpy")
    def product(x, y):
        return x * y

    assert math.isnan(irad.vjp(product, 1.0, 0.0, options=zero())[1](math.nan)[0])
    assert irad.vjp(product, 1.0, 0.0, options=zero())[1](math.inf)[0] == 0.0
    assert irad.vjp(product, 1.0, 2.0, options=zero())[1](-math.inf)[0] == -math.inf
    assert math.isnan(irad.vjp(product, 1.0, 0.0, options=irad.Options())[1](math.inf)[0])


def test_the_zero_is_a_convention_not_a_limit():
    """The contract's example of the price."""

    @njit
    def identity(x):
        return np.cbrt(x * x * x)

    assert math.isnan(irad.grad(identity)(0.0))
    assert irad.grad(identity, options=zero())(0.0) == 0.0


def test_division_by_infinity_is_a_zero_slope():
    @njit(error_model="numpy")
    def quotient(x, y):
        return x / y

    by_x, by_y = irad.vjp(quotient, 3.0, math.inf, options=zero())[1](math.inf)
    assert (by_x, by_y) == (0.0, 0.0)
    assert math.isnan(irad.vjp(quotient, 3.0, math.nan, options=zero())[1](math.inf)[0])
    assert math.isnan(irad.vjp(quotient, 3.0, math.inf)[1](math.inf)[0])


def test_matrix_products_by_blas_are_not_covered():
    """As with zero cotangents: BLAS does not test for zeros. The contract says so."""

    @njit
    def product(a, b):
        return np.sqrt(np.dot(a, b)).sum()

    a, b = np.array([[0.0, 0.0], [1.0, 2.0]]), np.array([[1.0, 0.0], [3.0, 0.0]])
    assert np.isnan(irad.grad(product, options=zero())(a, b)).any()


def test_debug_mode_names_the_line_and_the_option():
    with pytest.raises(irad.NonFiniteError) as raised:
        irad.grad(by_loops, options=irad.Options(debug=True))(POINTS)
    error = raised.value
    assert "it began in the reverse sweep with 0.5 / 0.0 = inf, in the derivative of sqrt" in error.problem
    assert "and became nan with inf * 0.0 = nan, in the derivative of *" in error.problem
    assert error.location is not None
    assert error.location.line == by_loops.py_func.__code__.co_firstlineno + 9
    assert 'irad.Options(zero_times_infinity="zero")' in error.remedy
    found = irad.grad(by_loops, options=zero(debug=True))(POINTS)
    np.testing.assert_allclose(found, expected(by_loops), 1e-7)


def test_an_infinity_that_comes_out_is_not_helped_by_the_option():
    @njit(error_model="numpy")
    def root(x):
        return math.sqrt(x)

    with pytest.raises(irad.NonFiniteError) as raised:
        irad.grad(root, options=irad.Options(debug=True))(0.0)
    assert "zero_times_infinity" not in raised.value.remedy


def test_the_adjoint_as_python():
    text = irad.inspect(by_loops, POINTS, options=zero()).adjoint_as_python()
    for exact in (True, False):
        function = text.namespace(exact=exact)[text.name]
        with np.errstate(all="ignore"):
            _, found = function(POINTS.copy())
        np.testing.assert_allclose(found, expected(by_loops), 1e-7)
