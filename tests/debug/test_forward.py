"""Debug mode in forward mode: where NaNs and infinities in values and tangents began, and ties."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import njit, prange

import irad
from tests.debug.lines import DEBUG, assert_began, error_of


@njit(error_model="numpy")
def roots(x, y):
    total = 0.0
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[j] += np.sqrt(x[i, j])
        total += 1.0 / y[0]
    return total


X, Y = np.array([[1.0, 4.0], [9.0, 0.0]]), np.ones(2)
TANGENTS = (np.ones((2, 2)), np.zeros(2))
push = irad.pushforward(roots, (0, 1), options=DEBUG)


def test_where_a_tangent_became_infinite():
    error = error_of(push, X.copy(), Y.copy(), (TANGENTS[0], np.zeros(2)))
    loops = {"in range(x.shape[0])": 1, "in range(x.shape[1])": 1}
    assert_began(error, roots, "np.sqrt(x[i, j])", loops, "0.5 / 0.0 = inf")
    assert error.sweep == "derivative"
    assert "the tangent of y at [1] is inf: it began with" in str(error)
    assert "in the derivative of sqrt" in str(error)


def test_the_value_comes_first_and_what_was_given_is_named():
    error = error_of(push, -X, Y.copy(), TANGENTS)
    assert (error.sweep, error.operation) == ("value", "sqrt(-1.0) = nan")
    given = TANGENTS[0].copy()
    given[1, 0] = np.nan
    error = error_of(push, X + 1.0, Y.copy(), (given, np.zeros(2)))
    assert "the tangent of x was nan at [1, 0] from the start" in str(error)


def test_numbers_are_those_without_debug_mode_and_nothing_is_said_of_what_does_not_come_out():
    plain = irad.pushforward(roots, (0, 1))
    still = np.array([[1.0, 1.0], [1.0, 0.0]])  # the root of zero does not change
    (value, tangent), (expected, expected_tangent) = (
        f(X.copy(), Y.copy(), (still, np.zeros(2))) for f in (push, plain)
    )
    assert (value, tangent) == pytest.approx((expected, expected_tangent), rel=1e-15)
    assert np.isfinite(tangent)


def test_directions_series_and_parallel_loops():
    @njit(parallel=True, error_model="numpy")
    def spread(x):
        y = np.empty_like(x)
        for i in prange(x.size):
            y[i] = np.log(x[i])
        return y

    x = np.array([1.0, 0.5, 2.0**-1000])
    directions = irad.BatchDuplicated(x, (np.ones(3), np.full(3, 1e16)))
    error = error_of(lambda: irad.autodiff(irad.Forward, spread, directions, options=DEBUG))
    assert_began(error, spread, "np.log(x[i])", {"prange": 2}, f"1e+16 * {2.0**1000} = inf")
    error = error_of(lambda: irad.jet(spread, (x,), ((np.ones(3),),), order=2, options=DEBUG))
    assert "the series of the value of" in str(error)
    assert "at [1][2] is -inf" in str(error)
    assert_began(error, spread, "np.log(x[i])", {"prange": 2}, "in the derivative of log")


@irad.custom_jvp
def special(x):
    return x * x


@special.defjvp
def special_tangent(primals, tangents):
    return primals[0] ** 2, tangents[0] * np.inf


def test_rules_and_ties():
    @njit
    def ruled(x):
        return special(x[0]) * 2.0

    error = error_of(lambda: irad.jvp(ruled, (Y,), (Y,), options=DEBUG))
    assert "the rule for" in str(error)
    assert "test_forward" in str(error)

    @njit
    def relu(x):
        return x if x > 0.0 else 0.0

    with pytest.warns(irad.TieWarning, match=r"0\.0 > 0\.0"):
        assert irad.jvp(relu, (0.0,), (1.0,), options=DEBUG) == (0.0, 0.0)


def test_compiled_code_gets_the_error():
    @njit
    def outer(x: Any) -> Any:
        try:
            return push(x * 0.0, np.ones(2), (x, np.zeros(2)))[0]
        except Exception:
            return -1.0

    assert outer(np.ones((2, 2))) == -1.0
