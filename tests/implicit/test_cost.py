"""What a derivative costs does not depend on how many steps the solver takes; several directions share the solution."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from numba import njit

import irad
from irad import implicit
from irad.rules import AugmentedReturn

STEP, RESIDUAL, PULLBACK, PUSHFORWARD = range(4)
_counts = [0, 0, 0, 0]


@ctypes.CFUNCTYPE(None, ctypes.c_int64)
def note(kind):
    _counts[kind] += 1


@njit
def residual(x, a):
    note(RESIDUAL)
    return x * x - a


@irad.rules.augmented_primal(residual)
def residual_augmented(config, x, a):
    return AugmentedReturn(residual(x.value, a.value), None, x.value)


@irad.rules.reverse(residual)
def residual_reverse(config, cotangent, tape, x, a):
    note(PULLBACK)
    by_x = 2.0 * tape * cotangent if irad.rules.is_active(x) else None
    return by_x, -cotangent if irad.rules.is_active(a) else None


@irad.rules.forward(residual)
def residual_forward(config, x, a):
    note(PUSHFORWARD)
    tangent = 0.0
    if irad.rules.is_active(x):
        tangent += 2.0 * x.value * x.tangent
    if irad.rules.is_active(a):
        tangent -= a.tangent
    return residual(x.value, a.value), tangent


@implicit.solves(residual)
def root(settings, a):
    """A number of Newton's steps, each a call of the residual."""
    x, steps = settings
    for _ in range(steps):
        note(STEP)
        x -= residual(x, a) / (2.0 * x)
    return x


def tangent(settings, a):
    return irad.jvp(root, (settings, a), ((0.0, None), 1.0))[1]


@pytest.mark.parametrize(
    ("derivative", "used"), [(irad.grad(root, argnums=1), PULLBACK), (tangent, PUSHFORWARD)], ids=["reverse", "forward"]
)
def test_a_derivative_costs_the_same_after_few_steps_and_after_many(derivative, used):
    found = []
    for steps in (8, 500):
        _counts[:] = [0, 0, 0, 0]
        assert derivative((3.0, steps), 4.0) == pytest.approx(0.25, rel=1e-9)
        assert _counts[STEP] == steps
        found.append([_counts[RESIDUAL] - steps, _counts[PULLBACK], _counts[PUSHFORWARD]])
    assert found[0] == found[1]
    assert found[0][used - 1] > 0
    assert sum(found[0]) <= 8


# --------------------------------------------------------------------------------------------------- several directions


@njit
def quadratic(x, a, b):
    return x * x + a[0] * x - a[1] * b


@implicit.solves(quadratic)
def closed(guess, a, b):
    return np.sqrt(0.25 * a[0] * a[0] + a[1] * b) - 0.5 * a[0]


@njit
def positive(a, b):
    return closed(1.0, a, b)


A, B = np.array([1.0, 2.0]), 3.0


def truth():
    """The derivatives with respect to a[0], a[1] and b."""
    size = np.sqrt(0.25 * A[0] ** 2 + A[1] * B)
    return np.array([0.25 * A[0] / size - 0.5, 0.5 * B / size, 0.5 * A[1] / size])


def test_several_tangents_at_once():
    of_a, of_b = (np.array([1.0, 0.5]), np.array([-2.0, 0.0])), (0.0, 1.5)
    found = irad.autodiff(irad.Forward, positive, irad.BatchDuplicated(A, of_a), irad.BatchDuplicated(B, of_b))
    expected = [truth() @ np.array([*a, b]) for a, b in zip(of_a, of_b, strict=True)]
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_several_cotangents_at_once():
    shadows, seeds = (np.zeros(2), np.ones(2)), (2.0, -0.5)
    found = irad.autodiff(irad.Reverse, positive, irad.BatchDuplicated(A, shadows), irad.Active(B), seed=seeds)
    for lane, seed in enumerate(seeds):
        np.testing.assert_allclose(shadows[lane] - lane, seed * truth()[:2], rtol=1e-10)
        assert found[1][lane] == pytest.approx(seed * truth()[2], rel=1e-10)
