"""Exceptions of rules: caught around the derivative, caught by the primal, in parallel loops."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from numba import njit, objmode, prange

import irad
from irad.rules import AugmentedReturn


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_reverse_of_a_call_that_raised_does_not_run(with_rule, dtype):
    @njit
    def f(x, a):
        if x < 0.0:
            raise ValueError("negative")
        return x * x + a[0]

    def augmented(config, x, a):
        return AugmentedReturn(f(x.value, a.value), None, np.full(3, x.value))

    def reverse(config, cotangent, tape, x, a):
        a.shadow[0] += 1.0  # whatever the cotangent: counts
        return 2.0 * tape[2] * cotangent, None

    with_rule(f, augmented, reverse)

    @njit
    def guarded(x, a):
        total = x.dtype.type(0.0)
        for i in range(x.size):
            try:
                total += f(x[i], a)
            except Exception:
                total += 5 * x[i]
        return total

    derivative = irad.value_and_grad(guarded, (0, 1))
    a = np.array([3.0], dtype)
    for x, value, by_x, runs in [
        ([-1.0], -5.0, [5.0], 0.0),
        ([1.0, -1.0, -1.0], -6.0, [2.0, 5.0, 5.0], 1.0),
        ([-1.0, 2.0], 2.0, [5.0, 4.0], 1.0),
    ]:
        found, (found_by_x, found_by_a) = derivative(np.array(x, dtype), a)
        assert found == value
        np.testing.assert_array_equal(found_by_x, by_x)
        np.testing.assert_array_equal(found_by_a, [runs])


def refuse(x, sign):
    if x * sign > 0.0:
        raise LookupError("not there")
    return x


def look_for_exception():
    assert sys.exc_info() == (None, None, None)


@pytest.mark.parametrize("forward_sign", [1.0, -1.0])
def test_compiled_code_may_catch_what_a_rule_raises_in_object_mode(with_rule, forward_sign):
    @njit
    def square(x):
        return x * x

    def augmented(config, x):
        with objmode(y="float64"):
            y = refuse(x.value, forward_sign)
        return AugmentedReturn(y * y, None, y)

    def reverse(config, cotangent, tape, x):
        with objmode(y="float64"):
            y = refuse(tape, 1.0)
        return (2.0 * y * cotangent,)

    with_rule(square, augmented, reverse)

    @njit
    def f(x):
        return 3.0 * square(x)

    @njit
    def guarded(x):
        try:
            return 3.0 * square(x)
        except Exception:
            return x

    def or_none(derivative):
        @njit
        def call(x):
            result = -1.0
            try:
                result = derivative(x)
            except Exception:
                result = -2.0
            with objmode():
                look_for_exception()
            return result

        return call

    derivative, both = irad.grad(f), irad.value_and_grad(guarded)
    for _ in range(2):
        assert or_none(derivative)(1.0) == -2.0
        with pytest.raises(LookupError, match="not there") as caught:
            derivative(1.0)
        assert [each.name for each in caught.traceback][-1] == "refuse"
        if forward_sign == 1.0:
            assert both(1.0) == (1.0, 1.0)
            assert both(-1.0) == (3.0, -6.0)
            assert or_none(derivative)(-1.0) == -6.0
        else:
            with pytest.raises(LookupError, match="not there"):
                both(1.0)


def test_a_rule_that_raises_in_object_mode_in_a_parallel_loop(with_rule):
    @njit
    def square(x):
        return x * x

    def augmented(config, x):
        return AugmentedReturn(x.value * x.value, None, x.value)

    def reverse(config, cotangent, tape, x):
        with objmode(y="float64"):
            y = refuse(tape, 1.0)
        return (2.0 * y * cotangent,)

    with_rule(square, augmented, reverse)

    @njit(parallel=True)
    def f(x):
        total = 0.0
        for i in prange(x.size):
            total += square(x[i])
        return total

    derivative = irad.grad(f)
    for place in (0, 63):
        x = np.full(64, -1.0)
        x[place] = 1.0
        with pytest.raises(RuntimeError, match="in a parallel loop"):
            derivative(x)
    np.testing.assert_array_equal(derivative(np.full(64, -1.0)), np.full(64, -2.0))
