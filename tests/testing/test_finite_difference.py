from __future__ import annotations

import math

import numpy as np
import pytest

from irad.testing.gradients.slope import derivative, gradient


@pytest.mark.parametrize(
    ("f", "at", "exact"),
    [
        (math.sin, 1.0, math.cos(1.0)),
        (math.exp, 3.0, math.exp(3.0)),
        (math.log, 1e-4, 1e4),
        (lambda x: 1 / x, 0.01, -1e4),
        (lambda x: x**3, 0.0, 0.0),
        (lambda x: 1e9 * x, 123.0, 1e9),
        (lambda x: 1e-9 * x * x, 5.0, 1e-8),
        (math.sqrt, 1e-6, 500.0),
        (abs, 2e-3, 1.0),
        (abs, -2e-3, -1.0),
        (lambda x: 5.0, 1.0, 0.0),
    ],
)
def test_smooth_functions(f, at: float, exact: float):
    estimate = derivative(f, at)
    assert estimate.value == pytest.approx(exact, rel=1e-8, abs=1e-12)
    assert abs(estimate.value - exact) <= 100 * estimate.error + 1e-9 * max(1.0, abs(exact))


@pytest.mark.parametrize(
    "f",
    [
        abs,
        lambda x: max(x, 2 * x) + 7,
        lambda x: math.copysign(1.0, x),
        lambda x: math.floor(x) * 1.0,
        lambda x: math.sqrt(abs(x)),
        lambda x: math.inf,
        lambda x: math.nan,
    ],
)
def test_no_derivative_is_no_small_error(f):
    assert not derivative(f, 0.0).error < 0.5


def test_steps_out_of_the_domain_are_left_out():
    def f(x: float) -> float:
        if x > 1.0005:
            raise ValueError("outside")
        return x * x

    assert derivative(f, 1.0).value == pytest.approx(2.0, rel=1e-9)
    assert derivative(lambda x: f(x + 5), 1.0).error == math.inf


def test_other_errors_come_through():
    def f(x: float) -> float:
        raise TypeError("wrong")

    with pytest.raises(TypeError):
        derivative(f, 1.0)


def test_gradient():
    point = np.array([0.5, 2.0, -1.0])
    values, errors = gradient(lambda x: float(x[0] * x[1] ** 2 + math.exp(x[2])), point)
    np.testing.assert_allclose(values, [4.0, 2.0, math.exp(-1)], rtol=1e-10)
    assert np.all(errors < 1e-8)
    np.testing.assert_array_equal(point, [0.5, 2.0, -1.0])


def test_gradient_of_nothing():
    values, errors = gradient(lambda x: 1.0, np.zeros(0))
    assert values.size == errors.size == 0


@pytest.mark.parametrize("single", [False, True])
def test_rounding_to_single_precision_is_not_a_kink(single: bool):
    """The noise is given to it, or it has to measure it."""
    estimate = derivative(lambda x: float(np.float32(math.sin(x))), 1.0, single=single)
    assert estimate.error < 1e-4
    assert abs(estimate.value - math.cos(1.0)) <= 10.0 * estimate.error
    assert estimate.value == pytest.approx(math.cos(1.0), rel=1e-4)


def test_a_kink_of_a_function_in_single_precision_is_found():
    assert derivative(lambda x: float(np.float32(abs(x))), 0.0, single=True).error > 0.5


def test_values_that_do_not_change_in_single_precision_say_nothing():
    estimate = derivative(lambda x: float(np.float32(100.0 + 1e-3 * x)), 1.0, single=True)
    assert abs(estimate.value - 1e-3) <= estimate.error
