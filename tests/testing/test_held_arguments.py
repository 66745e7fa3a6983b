"""Arguments of `check_rule` in irad.Const are passed as they are: functions, settings, guesses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import njit

import irad
from irad.errors import SignatureError
from irad.rules import AugmentedReturn
from irad.testing import Property, RuleFault, check_rule, unchecked_rules

pytestmark = pytest.mark.filterwarnings("ignore:.*First-class function:numba.core.errors.NumbaWarning")

A = np.array([0.7, -1.2])


@njit
def cube(x):
    return x**3


@njit
def scaled(f, x, scale):
    """Where the scale is another number than 2, or the function is not passed, it raises."""
    if scale[0] != 2.0:
        raise TypeError("the settings were changed")
    return scale[0] * f(x[0]) * x[1]


def scaled_augmented(config, f, x, scale):
    return AugmentedReturn(scaled(f.value, x.value, scale.value), None, x.value.copy())


def scaled_reverse(config, cotangent, tape, f, x, scale):
    x.shadow[0] += cotangent * scale.value[0] * 3.0 * tape[0] ** 2 * tape[1]
    x.shadow[1] += cotangent * scale.value[0] * f.value(tape[0])


def scaled_forward(config, f, x, scale):
    first, second = x.value
    slope = 3.0 * first**2 * second * x.tangent[0] + f.value(first) * x.tangent[1]
    return scaled(f.value, x.value, scale.value), scale.value[0] * slope


@pytest.fixture
def ruled():
    irad.rules.augmented_primal(scaled)(scaled_augmented)
    irad.rules.reverse(scaled)(scaled_reverse)
    irad.rules.forward(scaled)(scaled_forward)
    yield scaled
    irad.rules.remove(scaled)


def test_a_function_and_settings(ruled: Any):
    assert "scaled" in unchecked_rules()
    check_rule(ruled, irad.Const(cube), A, irad.Const((2.0, 7)), single=False)
    assert "scaled" not in unchecked_rules()


def test_settings_would_change_otherwise(ruled: Any):
    with pytest.raises(TypeError, match="the settings were changed"):
        check_rule(ruled, irad.Const(cube), A, (2.0, 7), single=False)


@pytest.mark.parametrize("wrong", ["derivative", "tape"])
def test_what_is_wrong_is_found(ruled: Any, wrong: str):
    def reverse(config, cotangent, tape, f, x, scale):
        x.shadow[0] += cotangent * scale.value[0] * 3.0 * tape[0] ** 2 * tape[1]
        if wrong == "tape":
            x.shadow[1] += cotangent * scale.value[0] * f.value(x.value[0])
        else:
            x.shadow[1] += cotangent * f.value(tape[0])

    irad.rules.reverse(scaled)(reverse)
    with pytest.raises(RuleFault) as caught:
        check_rule(ruled, irad.Const(cube), A, irad.Const((2.0, 7)), single=False)
    assert caught.value.property is (Property.CHANGED if wrong == "tape" else Property.DERIVATIVE)


def test_a_wrong_tangent_is_found(ruled: Any):
    irad.rules.forward(scaled)(lambda config, f, x, scale: (scaled(f.value, x.value, scale.value), x.tangent[0]))
    with pytest.raises(RuleFault) as caught:
        check_rule(ruled, irad.Const(cube), A, irad.Const((2.0, 7)), single=False)
    assert caught.value.property is Property.DERIVATIVE


def test_no_float_is_left(ruled: Any):
    with pytest.raises(SignatureError, match="called without any float that has a derivative"):
        check_rule(ruled, irad.Const(cube), irad.Const(A), irad.Const((2.0, 7)))
