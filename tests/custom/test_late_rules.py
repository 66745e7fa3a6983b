"""Rules that come or go once derivatives are compiled: these are compiled again, wherever they are inlined."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba import njit

import irad
import irad.implicit
import irad.integrate

X = np.array([1.0, 2.0, 3.0])
ONES = np.ones(3)


@njit
def square(x):
    return x * x


@njit
def energy(x):
    total = 0.0
    for each in x:
        total += square(each) * x[0]
    return total


@njit
def vector(x):
    return energy(x) * x


@njit
def step(x):
    return 0.5 * x + 0.1 * square(x)


@njit
def area(a):
    return irad.integrate.quad(lambda t, a: square(t * a), 0.0, 1.0, (a,))[0]


@njit
def root(a):
    return irad.implicit.newton(lambda z, a: square(z) * z + z - a, 0.5, (a,))


loop = irad.checkpoint_loop(step, 3, snapshots=2)
hessian = irad.hessian(energy)


@njit
def trace_of_hessian(x):
    return np.trace(hessian(x))


def augmented(config, x):
    return irad.rules.AugmentedReturn(x.value * x.value, None, x.value)


def reverse(config, cotangent, tape, x):
    return (20.0 * tape * cotangent,)


def forward(config, x):
    return x.value * x.value, 20.0 * x.value * x.tangent


@pytest.fixture
def late_rule(with_rule: Callable[..., None]) -> Callable[[], None]:
    """Declares that the slope of `square` is 20 x, until the end of the test."""

    def declare() -> None:
        with_rule(square, augmented, reverse)
        irad.rules.forward(square)(forward)

    return declare


def of_loop(slope: float) -> float:
    """Derivative of the loop at 1 if that of `square` is ``slope`` times x."""
    x, found = 1.0, 1.0
    for _ in range(3):
        found *= 0.5 + 0.1 * slope * x
        x = 0.5 * x + 0.1 * x * x
    return found


# What the second derivative of `energy` is with the rule follows from the code of the rule: 20 x[i] x[0] is
# differentiated with respect to both, and the value of `square` is x * x.
RULED = np.array([[42.0, 4.0, 6.0], [40.0, 20.0, 0.0], [60.0, 0.0, 20.0]])
PLAIN = np.array([[6.0, 4.0, 6.0], [4.0, 2.0, 0.0], [6.0, 0.0, 2.0]])
CASES: dict[str, tuple[Callable[[], Any], Any, Any]] = {
    "gradient": (lambda: irad.grad(energy)(X), [16.0, 4.0, 6.0], [34.0, 40.0, 60.0]),
    "pushforward": (lambda: irad.jvp(energy, (X,), (ONES,))[1], 26.0, 134.0),
    "Jacobian": (
        lambda: irad.jacobian(vector)(X),
        14.0 * np.eye(3) + np.outer(X, [16.0, 4.0, 6.0]),
        14.0 * np.eye(3) + np.outer(X, [34.0, 40.0, 60.0]),
    ),
    "Hessian": (lambda: hessian(X), PLAIN, RULED),
    "product with the Hessian": (lambda: irad.hvp(energy)(X, ONES), PLAIN @ ONES, RULED @ ONES),
    "Jacobian of the gradient": (lambda: irad.jacobian(irad.grad(energy))(X), PLAIN, RULED),
    "checkpointed loop": (lambda: irad.grad(lambda x: loop(x))(1.0), of_loop(2.0), of_loop(20.0)),
    "integral": (lambda: irad.jvp(area, (2.0,), (1.0,))[1], 4.0 / 3.0, 40.0 / 3.0),
    "root": (lambda: irad.grad(root)(2.0), 0.25, 1.0 / 22.0),
}


@pytest.mark.parametrize("name", CASES)
def test_derivatives_are_compiled_again(name: str, late_rule: Callable[[], None]) -> None:
    derivative, before, after = CASES[name]
    np.testing.assert_allclose(derivative(), before, rtol=1e-8)
    late_rule()
    np.testing.assert_allclose(derivative(), after, rtol=1e-8)


def test_derivative_of_a_function_that_calls_the_hessian(late_rule: Callable[[], None]) -> None:
    np.testing.assert_allclose(irad.grad(trace_of_hessian)(X), [10.0, 0.0, 0.0], rtol=1e-8, atol=1e-12)
    late_rule()
    # of 42 x[0] + 20 x[0] + 20 x[0]: in code of the rule the value of `square` is x * x
    assert irad.grad(trace_of_hessian)(X)[0] == pytest.approx(82.0)
