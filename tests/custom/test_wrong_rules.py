"""Rules that do not fit their function: what was expected, what was got, and where the rule stands."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import njit

import irad
from irad import rules
from irad.errors import RuleError
from irad.rules import AugmentedReturn


@njit
def scale(a, k):
    return a * k


@pytest.fixture(autouse=True)
def no_rule_left() -> Iterator[None]:
    yield
    rules.remove(scale)


def good_augmented(config, a, k):
    return AugmentedReturn(a.value * k.value, np.zeros_like(a.value), None)


def good_reverse(config, cotangent, tape, a, k):
    return None, 1.0


def error_of(augmented: Any = good_augmented, reverse: Any = good_reverse) -> str:
    rules.augmented_primal(scale)(augmented)
    rules.reverse(scale)(reverse)

    @njit
    def f(a, k):
        return scale(a, k).sum()

    with pytest.raises(RuleError) as caught:
        irad.grad(f, argnums=(0, 1))(np.array([1.0, 2.0]), 3.0)
    function = reverse if augmented is good_augmented else augmented
    place = f"{Path(__file__)}:"
    assert place in str(caught.value)
    assert function.__name__ in str(caught.value)
    assert len(str(caught.value).splitlines()) <= 25
    return f"{caught.value.problem}: {caught.value.reason}; {caught.value.remedy}"


def test_no_augmented_return():
    def augmented(config, a, k):
        return a.value * k.value

    message = error_of(augmented=augmented)
    assert "expected irad.rules.AugmentedReturn(primal, shadow, tape)" in message
    assert "got a float64[::1] array" in message


def test_a_primal_of_another_type():
    def augmented(config, a, k):
        return AugmentedReturn(k.value, np.zeros_like(a.value), None)

    message = error_of(augmented=augmented)
    assert "expected a float64[::1] array, got a float64" in message


def test_a_shadow_of_another_type():
    def augmented(config, a, k):
        return AugmentedReturn(a.value * k.value, np.zeros((2, 2)), None)

    message = error_of(augmented=augmented)
    assert "the wrong shadow: expected a float64[::1] array, got a float64[:, ::1] array" in message


def test_no_shadow():
    def augmented(config, a, k):
        return AugmentedReturn(a.value * k.value, None, None)

    assert "the wrong shadow: expected a float64[::1] array, got None" in error_of(augmented=augmented)


def test_a_shadow_of_another_shape():
    def augmented(config, a, k):
        return AugmentedReturn(a.value * k.value, np.zeros(7), None)

    rules.augmented_primal(scale)(augmented)
    rules.reverse(scale)(good_reverse)

    @njit
    def f(a, k):
        return scale(a, k).sum()

    with pytest.raises(RuleError, match=r"whose shape differs from that of its array: \(7,\), not \(2,\)"):
        irad.grad(f)(np.array([1.0, 2.0]), 3.0)


def test_too_few_cotangents():
    def reverse(config, cotangent, tape, a, k):
        return (1.0,)

    message = error_of(reverse=reverse)
    assert "the wrong number of cotangents: expected a tuple of 2: (None, a float64), got a tuple of 1" in message


def test_no_tuple_of_cotangents():
    def reverse(config, cotangent, tape, a, k):
        return 1.0

    assert "expected a tuple of 2: (None, a float64), got a float64" in error_of(reverse=reverse)


def test_a_cotangent_for_an_argument_with_a_shadow():
    def reverse(config, cotangent, tape, a, k):
        return cotangent * k.value, 1.0

    message = error_of(reverse=reverse)
    assert "a cotangent for argument 0, which has a shadow: expected None" in message


def test_no_cotangent_for_a_number():
    def reverse(config, cotangent, tape, a, k):
        return None, None

    message = error_of(reverse=reverse)
    assert "the wrong cotangent for argument 1: expected a float64, got None" in message


def test_a_part_is_missing():
    @rules.augmented_primal(scale)
    def augmented(config, a, k):
        return AugmentedReturn(a.value * k.value, np.zeros_like(a.value), None)

    @njit
    def f(a, k):
        return scale(a, k).sum()

    with pytest.raises(RuleError, match="the rule for scale has no reverse") as caught:
        irad.grad(f)(np.array([1.0, 2.0]), 3.0)
    assert "@irad.rules.reverse(scale)" in str(caught.value)


def test_a_rule_that_numba_cannot_compile():
    def augmented(config, a, k):
        return AugmentedReturn(a.value * k.value, np.zeros_like(a.value), k.shadow)

    message = error_of(augmented=augmented)
    assert "Numba cannot compile the augmented_primal of the rule for scale" in message
    assert "shadow" in message


def test_a_tape_of_another_form():
    def reverse(config, cotangent, tape, a, k):
        return None, tape[0]

    message = error_of(reverse=reverse)
    assert "Numba cannot compile the reverse of the rule for scale" in message
    assert "None" in message


def test_too_few_parameters():
    def reverse(config, cotangent, tape, a):
        return (None,)

    assert "(config, cotangent, tape, annotated arguments…)" in error_of(reverse=reverse)


def test_a_rule_for_a_function_of_lists():
    @njit
    def total(items):
        result = 0.0
        for item in items:
            result += item
        return result

    @rules.augmented_primal(total)
    def augmented(config, items):
        return AugmentedReturn(0.0, None, None)

    @rules.reverse(total)
    def reverse(config, cotangent, tape, items):
        return (None,)

    @njit
    def f(x):
        return total([x, 2.0 * x])

    try:
        with pytest.raises(RuleError, match="give functions with rules numbers, arrays and tuples of these"):
            irad.grad(f)(1.0)
    finally:
        rules.remove(total)
