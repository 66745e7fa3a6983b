"""`gradcheck` at a kink: what is not differentiable is called that, and what is wrong is still called wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba import njit

from irad import rules
from irad.testing import GradcheckError, Verdict, gradcheck
from irad.testing.gradients.slope import slope
from irad.testing.gradients.trial import Trial


@njit
def positive_part(x):
    return x if x > 0.0 else 0.0


@njit
def leaky(x):
    return positive_part(x) - 0.01 * positive_part(-x)


@njit
def leaky_sum(x):
    total = 0.0
    for i in range(x.size):
        total += leaky(x[i])
    return total


@njit
def differences_of_parts(x):
    total = 0.0
    for i in range(x.size):
        total += (positive_part(x[i]) if i % 2 else -positive_part(x[i])) + 0.5 * x[i]
    return total


@pytest.mark.parametrize(
    ("function", "at", "words"),
    [
        (
            leaky,
            0.0,
            r"with respect to x cannot be checked: .* slope is 0\.01 on one side and 1 on the other.* returns 0,",
        ),
        (leaky_sum, np.array([1.0, 0.0]), r"with respect to x\[1\] cannot be checked: .* not differentiable there"),
        (differences_of_parts, np.zeros(100), r"random direction \d+ cannot be checked: .* not differentiable there"),
    ],
    ids=["leaky", "leaky_sum", "differences_of_parts"],
)
def test_what_conventions_add_up_to_is_not_called_wrong(function: Callable[..., float], at: Any, words: str):
    with pytest.raises(GradcheckError, match=f"(?s){words}") as caught:
        gradcheck(function, at)
    assert caught.value.report.verdict is Verdict.UNDECIDED


# ------------------------------------------------------------------------------------------- a rule that is wrong


@njit
def folded(x, at_zero, elsewhere):
    return abs(x)


rules.easy_rule(folded, lambda x, at_zero, elsewhere: at_zero if x == 0.0 else elsewhere * np.sign(x), None, None)


@njit
def all_folded(x, at_zero, elsewhere):
    total = 0.0
    for i in range(x.size):
        total += folded(x[i], at_zero, elsewhere)
    return total


@njit
def hardly_kinked(x, at_zero, elsewhere):
    return x + 1e-6 * folded(x, at_zero, elsewhere)


@pytest.mark.parametrize("at_zero", [1.0, -1.0, 0.25])
def test_what_lies_between_both_sides_is_right(at_zero: float):
    report = gradcheck(folded, 0.0, at_zero, 1.0, argnums=0)
    assert (report.verdict, report.worst.kinks) == (Verdict.RIGHT, ("x",))


def test_what_no_convention_gives_is_wrong_at_a_kink():
    with pytest.raises(GradcheckError, match="with respect to x is wrong: got 7, expected 1"):
        gradcheck(folded, 0.0, 7.0, 1.0, argnums=0)


def test_a_kink_too_slight_to_be_told_excuses_nothing():
    with pytest.raises(GradcheckError, match="with respect to x is wrong"):
        gradcheck(hardly_kinked, 0.0, -2e5, 1.0, argnums=0)


def test_what_is_undefined_at_a_kink_is_not_differentiable_there():
    with pytest.raises(GradcheckError, match=r"(?s)cannot be checked: .*not differentiable there.*returns nan"):
        gradcheck(folded, 0.0, np.nan, 1.0, argnums=0)
    with pytest.raises(GradcheckError, match="wrong: got nan"):
        gradcheck(folded, 1.0, 0.0, np.nan, argnums=0)


@pytest.mark.parametrize("size", [4, 200], ids=["each", "along directions"])
def test_a_kink_in_one_float_does_not_excuse_another(size: int):
    x = np.linspace(1.0, 2.0, size)
    x[1] = 0.0
    assert gradcheck(all_folded, x, 0.0, 1.0, argnums=0).worst.kinks
    with pytest.raises(GradcheckError, match=r"with respect to x\[\d+\] is wrong") as caught:
        gradcheck(all_folded, x, 0.0, 1.5, argnums=0)
    assert caught.value.report.worst.worst != "x[1]"


@pytest.mark.parametrize(
    ("f", "clear"),
    [
        (abs, True),
        (lambda t: max(t, 1.5 * t), True),
        (lambda t: t + 1e-4 * abs(t), False),
        (lambda t: t * t, False),
        (lambda t: float(np.cbrt(t)), False),
    ],
)
def test_clear_kinks(f: Callable[[float], float], clear: bool):
    assert slope(f).is_clear_kink is clear


def test_an_infinite_number_does_not_hide_a_wrong_one_beside_it():
    trial = Trial(leaky_sum, (np.ones(2),), (True,))
    assert not trial.agree(np.array([np.inf, 5.0]), np.array([np.inf, 1.0]))
    assert not trial.same(np.array([np.inf, 5.0]), np.array([np.inf, 1.0]))
    assert trial.same(np.array([np.inf, 1.0]), np.array([np.inf, 1.0]))
