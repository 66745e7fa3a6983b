"""Slopes with their errors, and what is not a slope, of functions for which both are known."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from irad.testing.gradients.slope import Shape, noise_of, slope


def measured(f: Callable[[float], float], **options: tuple[float, float]):
    return slope(f, noise=noise_of(f, **options), **options)


def single(x: float) -> float:
    return float(np.float32(x))


@pytest.mark.parametrize(
    ("f", "exact", "accuracy"),
    [
        (lambda t: math.sin(1.0 + t), math.cos(1.0), 1e-11),
        (lambda t: 1e12 * math.sin(1.0 + t), 1e12 * math.cos(1.0), 1e-11),
        (lambda t: 1e-12 * math.sin(1.0 + t), 1e-12 * math.cos(1.0), 1e-11),
        (lambda t: math.exp(-1e4 * (1.0 + t)) + t, 1.0, 1e-11),
        (lambda t: math.tanh(1e4 * t), 1e4, 1e-9),
        (lambda t: math.sin(1e3 * t), 1e3, 1e-9),
        (lambda t: abs(1e-5 + t), 1.0, 1e-9),
        (lambda t: abs(t - 1e-6), -1.0, 1e-9),
        (lambda t: t + (1.0 if t > 1e-3 else 0.0), 1.0, 1e-9),
        (lambda t: 1e6 + math.sin(1.0 + t), math.cos(1.0), 1e-6),
        (lambda t: single(math.sin(1.0 + t)), math.cos(1.0), 1e-4),
        (lambda t: 5.0 - math.cos(t), 0.0, 0.0),
        (lambda t: t**3, 0.0, 0.0),
        (lambda t: 5.0, 0.0, 0.0),
        (lambda t: t * abs(t), 0.0, 0.0),
    ],
)
def test_slopes_and_their_errors(f: Callable[[float], float], exact: float, accuracy: float):
    found = measured(f)
    assert found.shape is Shape.SMOOTH
    assert abs(found.value - exact) <= 10 * found.error
    assert found.error <= accuracy * abs(exact) + 1e-13


@pytest.mark.parametrize(
    ("f", "left", "right"),
    [
        (abs, -1.0, 1.0),
        (lambda t: 5.0 + abs(t), -1.0, 1.0),
        (lambda t: max(t, 2.0 * t) + math.sin(t), 2.0, 3.0),
        (lambda t: math.sqrt(t * t), -1.0, 1.0),
        (lambda t: 1e-9 * max(t, 0.0), 0.0, 1e-9),
    ],
)
def test_kinks(f: Callable[[float], float], left: float, right: float):
    found = measured(f)
    assert found.shape is Shape.KINK
    assert (found.left, found.right) == pytest.approx((left, right) if left < right else (right, left), rel=1e-9)


@pytest.mark.parametrize(
    "f",
    [
        lambda t: 1.0 if t > 0.0 else 0.0,
        lambda t: 6.0 if t >= 0.0 else 5.0,
        lambda t: math.sqrt(abs(t)),
        lambda t: 5.0 + math.sqrt(abs(t)),
        lambda t: math.sqrt(t) if t >= 0.0 else math.nan,
        lambda t: t * math.sin(1.0 / t) if t else 0.0,
        lambda t: math.sin(1e15 * t),
    ],
)
def test_what_has_no_slope(f: Callable[[float], float]):
    assert measured(f).shape is Shape.ROUGH


def test_no_value():
    assert slope(lambda t: math.nan).shape is Shape.UNDEFINED


@pytest.mark.parametrize(("low", "high"), [(0.0, math.inf), (-math.inf, 0.0), (0.0, 1e-3), (-1e-2, 1e-4)])
def test_steps_stay_in_the_range(low: float, high: float):
    seen = []

    def f(t: float) -> float:
        seen.append(t)
        return math.exp(t)

    found = measured(f, room=(low, high))
    assert found.shape is Shape.SMOOTH
    assert found.value == pytest.approx(1.0, rel=1e-7)
    assert all(low <= t <= high for t in seen)


def test_many_kinks_that_look_smooth_from_afar():
    generator = np.random.default_rng(5)
    x = generator.uniform(0.0, 2.0, 3000)
    direction = x * generator.standard_normal(3000)
    found = measured(lambda t: float(np.sort(x + t * direction) @ np.arange(3000.0)))
    exact = float(direction[np.argsort(x)] @ np.arange(3000.0))
    assert abs(found.value - exact) <= 10 * found.error


@pytest.mark.parametrize("at", [700.0, -700.0])
def test_values_near_the_ends_of_the_range(at: float):
    def f(t: float) -> float:
        return math.exp(at * (1.0 + t)) if at * (1.0 + t) < 709.0 else math.inf

    found = measured(f)
    assert found.shape is Shape.SMOOTH
    assert found.value == pytest.approx(at * math.exp(at), rel=1e-8, abs=0.0)


def test_a_smooth_place_whose_sides_show_only_from_close_by():
    assert measured(lambda t: math.log1p(math.exp(415.0 * t)) + 30.0).shape is Shape.SMOOTH


def test_no_values_on_one_side():
    found = slope(lambda t: math.log1p(t) if t >= 0.0 else math.nan)
    assert found.value == pytest.approx(1.0, rel=1e-8)
    assert math.isnan(found.left)


@pytest.mark.parametrize("level", [1e-3, 1e-6, 1e-9])
def test_noise_is_measured(level: float):
    generator = np.random.default_rng(3)
    found = noise_of(lambda t: math.exp(t) + level * generator.standard_normal())
    assert 0.1 * level < found < 10.0 * level


def test_noise_of_values_in_single_precision_is_measured():
    assert 1e-9 < noise_of(lambda t: single(math.sin(1.0 + t))) < 1e-7
