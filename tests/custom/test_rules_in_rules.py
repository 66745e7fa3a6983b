"""Second derivatives of functions with rules, where the rules call functions with rules: those apply."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from numba import njit

import irad
from irad import rules
from irad.rules import AugmentedReturn, is_active


@njit
def sine(x):
    return np.sin(x) + 0.0 * np.floor(x)


@njit
def cosine(x):
    return np.cos(x) + 0.0 * np.floor(x)


def _rule(f, derivative, sign):
    """Both modes; on purpose the derivative is ten times as large, so that it is seen whether the rule applies."""

    @rules.augmented_primal(f)
    def augmented(config, x):
        return AugmentedReturn(f(x.value), None, None)

    @rules.reverse(f)
    def reverse(config, cotangent, tape, x):
        return (cotangent * sign * 10.0 * derivative(x.value) if is_active(cotangent) else 0.0,)

    @rules.forward(f)
    def forward(config, x):
        return f(x.value), sign * 10.0 * derivative(x.value) * x.tangent


@pytest.fixture(autouse=True)
def _registered() -> Iterator[None]:
    _rule(sine, cosine, 1.0)
    _rule(cosine, sine, -1.0)
    yield
    rules.remove(sine)
    rules.remove(cosine)


@njit
def _loss(x):
    return sine(x)


_slope = irad.grad(_loss)


@njit
def _slope_of(x):
    return _slope(x)


def test_forward_over_reverse_and_reverse_over_reverse():
    x = 0.7
    assert irad.grad(_loss)(x) == pytest.approx(10.0 * np.cos(x))
    assert irad.jvp(_slope_of, (x,), (1.0,))[1] == pytest.approx(-100.0 * np.sin(x))
    assert irad.grad(_slope_of)(x) == pytest.approx(-100.0 * np.sin(x))


def test_third_order():
    second = irad.grad(_slope_of)

    @njit
    def curvature(x):
        return second(x)

    assert irad.jvp(curvature, (0.7,), (1.0,))[1] == pytest.approx(-1000.0 * np.cos(0.7))
