"""A NaN or an infinity that only the derivative has."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit, prange

import irad
from irad import rules
from irad.rules import AugmentedReturn
from tests.debug.lines import DEBUG, assert_began, error_of


@njit(error_model="numpy")
def square_roots(x):
    total = 0.0
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            total += np.sqrt(x[i, j])  # here
    return total


@njit(error_model="numpy", parallel=True)
def square_roots_in_parallel(x):
    total = 0.0
    for i in prange(x.shape[0]):
        for j in range(x.shape[1]):
            total += np.sqrt(x[i, j])  # here
    return total


@pytest.mark.parametrize(("plan", "dtype"), [("default", np.float32), ("save_all", np.float64)])
def test_the_square_root_at_zero(plan, dtype):
    x = np.ones((4, 5), dtype)
    x[2, 3] = 0.0
    error = error_of(irad.grad(square_roots, options=irad.Options(debug=True, plan=plan)), x)
    assert_began(error, square_roots, "# here", {"for i in": 2, "for j in": 3}, "in the derivative of sqrt")
    assert error.sweep == "derivative"
    assert error.result == "the derivative with respect to x at [2, 3] is inf"


def test_the_square_root_at_zero_in_a_parallel_loop():
    x = np.ones((40, 5))
    x[31, 3] = 0.0
    error = error_of(irad.grad(square_roots_in_parallel, options=DEBUG), x)
    assert_began(error, square_roots_in_parallel, "# here", {"prange": 31, "for j in": 3}, "in the derivative of sqrt")


@njit(error_model="numpy")
def power(x):
    return x**0.5


@njit(error_model="numpy")
def distance(x):
    total = 0.0
    for i in range(x.size):
        total += x[i] * x[i]
    return np.sqrt(total)  # here


@njit(error_model="numpy")
def quotient(x):
    y = np.exp(x)
    return np.sqrt(1.0 / y)


@pytest.mark.parametrize(("function", "at"), [(power, 0.0), (distance, np.zeros(3))])
def test_other_points_without_derivative(function, at):
    error = error_of(irad.value_and_grad(function, options=DEBUG), at)
    assert error.sweep == "derivative"
    assert "the derivative" in error.result


def test_an_overflow_that_spoils_only_the_derivative():
    """The value, 0, is right; the adjoint divides one infinity by the other."""
    assert irad.grad(quotient, options=DEBUG)(1.0) == irad.grad(quotient)(1.0)
    gradient = irad.grad(quotient)(1000.0)
    assert np.isnan(gradient)
    error = error_of(irad.grad(quotient, options=DEBUG), 1000.0)
    assert error.sweep == "value"
    assert error.operation == "exp(1000.0) = inf"
    assert "became nan" in error.problem


def test_a_pullback():
    value, pullback = irad.vjp(square_roots, np.array([[1.0, 0.0]]), options=DEBUG)
    assert value == 1.0
    for _ in range(2):
        error = error_of(pullback, 1.0)
        assert_began(error, square_roots, "# here", {"for i in": 0, "for j in": 1}, "in the derivative of sqrt")
    [gradient] = pullback(0.0)
    assert np.array_equal(gradient, [[0.0, 0.0]])


def test_a_pullback_finds_what_the_forward_sweep_began():
    value, pullback = irad.vjp(quotient, 1000.0, options=DEBUG)
    assert value == 0.0
    assert error_of(pullback, 1.0).operation == "exp(1000.0) = inf"


def test_autodiff_and_given_memory():
    x = np.array([[1.0, 0.0]])
    shadow = np.zeros_like(x)
    with pytest.raises(irad.NonFiniteError, match=r"the derivative with respect to x at \[0, 1\] is inf"):
        irad.autodiff(irad.Reverse, square_roots, irad.Duplicated(x, shadow), options=DEBUG)
    with pytest.raises(irad.NonFiniteError, match=r"the derivative with respect to x at \[0, 1\] is inf"):
        irad.value_and_grad_into(square_roots, options=DEBUG)(shadow, x)


@pytest.fixture
def with_rule():
    made = []

    def add(function, augmented, reverse):
        rules.augmented_primal(function)(augmented)
        rules.reverse(function)(reverse)
        made.append(function)

    yield add
    for function in made:
        rules.remove(function)


def test_a_rule_that_returns_nan(with_rule):
    @njit
    def twice(x):
        return 2.0 * x

    def augmented(config, x):
        return AugmentedReturn(2.0 * x.value, None, None)

    def reverse(config, cotangent, tape, x):
        return (cotangent * 2.0 if x.value < 3.5 else np.nan,)

    with_rule(twice, augmented, reverse)

    @njit
    def f(x):
        total = 0.0
        for i in range(x.size):
            total += x[i] * twice(x[i])
        return total

    gradient = irad.grad(f, options=DEBUG)
    assert np.array_equal(gradient(np.arange(3.0)), 4.0 * np.arange(3.0))
    error = error_of(gradient, np.arange(6.0))
    assert "the rule for" in error.operation
    assert f"{reverse.__code__.co_filename}:{reverse.__code__.co_firstlineno}" in str(error)
    assert error.sweep == "derivative"
    assert [number for _, number in error.loops] == [5]  # the reverse sweep comes to the last one first


def test_a_rule_that_computes_nan(with_rule):
    @njit
    def twice(x):
        return 2.0 * x

    def augmented(config, x):
        return AugmentedReturn(np.nan, None, None)

    def reverse(config, cotangent, tape, x):
        return (2.0 * cotangent,)

    with_rule(twice, augmented, reverse)

    @njit
    def f(x):
        return x * twice(x)

    error = error_of(irad.grad(f, options=DEBUG), 1.0)
    assert "the rule for" in error.operation
    assert f"{augmented.__code__.co_filename}:{augmented.__code__.co_firstlineno}" in str(error)
    assert error.sweep == "value"


def test_a_rule_that_writes_nan_into_a_shadow(with_rule):
    @njit
    def twice(x):
        return 2.0 * x

    def augmented(config, x):
        return AugmentedReturn(2.0 * x.value, np.zeros_like(x.value), None)

    def reverse(config, cotangent, tape, x):
        x.shadow[1] = np.nan
        return (None,)

    with_rule(twice, augmented, reverse)

    @njit
    def f(x):
        return twice(x).sum()

    error = error_of(irad.grad(f, options=DEBUG), np.ones(3))
    assert error.location.line == reverse.__code__.co_firstlineno
    assert "the rule for" in error.problem


def test_arguments_that_are_nan_are_named():
    x = np.ones((2, 3))
    x[1, 2] = np.nan
    error = error_of(irad.grad(square_roots, options=DEBUG), x)
    assert error.sweep == "argument"
    assert "the argument x was nan at [1, 2]" in error.problem


def test_an_infinite_argument_is_named():
    @njit(error_model="numpy")
    def f(scale, x):
        return (x * scale).sum() - scale

    error = error_of(irad.grad(f, 1, options=DEBUG), np.inf, np.ones(2))
    assert error.sweep == "argument"
    assert "the argument scale was inf" in error.problem


def test_a_cotangent_that_is_nan_is_named():
    _, pullback = irad.vjp(square_roots, np.ones((1, 1)), options=DEBUG)
    assert "the cotangent was nan" in error_of(pullback, np.nan).problem


def test_a_shadow_that_is_nan_is_named():
    x, shadow = np.ones((1, 2)), np.array([[0.0, np.nan]])
    with pytest.raises(
        irad.NonFiniteError, match=r"the memory given for the derivative with respect to x was nan at \[0, 1\]"
    ):
        irad.autodiff(irad.Reverse, square_roots, irad.Duplicated(x, shadow), options=DEBUG)


def test_a_nan_argument_that_does_no_harm_is_no_error():
    @njit
    def f(x, use):
        return x[0] * 2.0 if use < 0 else x[1]

    x = np.array([np.nan, 1.0])
    assert np.array_equal(irad.grad(f, options=DEBUG)(x, 1), [0.0, 1.0])
