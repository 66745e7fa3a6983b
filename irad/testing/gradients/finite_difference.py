"""Derivatives from function values alone: the independent truth that gradients are checked against."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, isnan, nan
from typing import Final

import numpy as np

from irad.data.floats import Vector
from irad.testing.gradients.slope import Estimate, Shape, Slope, noise_of, slope

_FIRST_STEPS: Final = (0.05, 0.0007)
_SMALLEST: Final = 0.1  # what counts as the size of smaller numbers
_NARROW: Final = 0.3  # the first step as a part of a number that is smaller than the others
_NOISE_SINGLE: Final = 2e-7


def slope_at(f: Callable[[float], float], at: float, noise: float | None = None, *, single: bool = False) -> Slope:
    """The slope of ``f`` at ``at``; where ``f`` raises as functions do outside their domain, it has no value.

    Args:
        f: a function of one number.
        at: where.
        noise: what is wrong with each value; measured if None.
        single: the values are good to single precision only, if they do not show it either.
    """
    scale = max(abs(at), _SMALLEST)
    narrow = [_NARROW * abs(at) / scale] if 0.0 < abs(at) < _FIRST_STEPS[1] else []

    def along(t: float) -> float:
        try:
            return f(at + t * scale)
        except (ArithmeticError, ValueError):
            return nan

    if noise is None:
        noise = noise_of(along)
    if single:
        noise = max(noise, _NOISE_SINGLE * abs(along(0.0)))
    return slope(along, noise=noise, first_steps=(*_FIRST_STEPS, *narrow)).times(1.0 / scale)


def derivative(f: Callable[[float], float], at: float, noise: float | None = None, *, single: bool = False) -> Estimate:
    """The derivative of ``f`` at ``at``; where it is not smooth the error is at least what both sides differ by."""
    found = slope_at(f, at, noise, single=single)
    if found.shape is Shape.SMOOTH:
        return Estimate(found.value, found.error)
    error = max(found.error, abs(found.left - found.right))
    return Estimate(found.value, inf if isnan(error) else error)


def gradient(f: Callable[[Vector], float], at: Vector, *, single: bool = False) -> tuple[Vector, Vector]:
    """Partial derivatives of ``f`` at ``at`` and their errors."""
    sizes = np.maximum(np.abs(at), _SMALLEST)
    noise = noise_of(lambda t: f(at + t * sizes)) if at.size else 0.0

    def along(i: int) -> Callable[[float], float]:
        def partial(x: float) -> float:
            point = at.copy()
            point[i] = x
            return f(point)

        return partial

    estimates = [derivative(along(i), float(at[i]), noise, single=single) for i in range(at.size)]
    return np.array([e.value for e in estimates]), np.array([e.error for e in estimates])
