"""Derivatives from function values alone: the independent truth that gradients are checked against."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, isfinite, nan
from typing import Final

import numpy as np

from irad.data.floats import Vector

_FIRST_STEPS: Final = (0.05, 0.0007)
_KINK_STEP: Final = 1e-5
_KINK_STEP_SINGLE: Final = 0.02
_ROUNDING: Final = 1e-14
_ROUNDING_SINGLE: Final = 1e-6
_NOISE_SINGLE: Final = 2e-7
SHRINK: Final = 1.6
ROWS: Final = 8


@dataclass(frozen=True, slots=True)
class Estimate:
    """A derivative and how far off it may be; ``error`` is infinite where no step gave a finite value."""

    value: float
    error: float


def derivative(f: Callable[[float], float], at: float, *, single: bool = False) -> Estimate:
    """Central differences of ``f`` at ``at``, extrapolated to step 0, of all steps the one that agrees best.

    Sweeps from a wide and from narrower first steps: the wide one wins where ``f`` is smooth, the others near kinks and
    ends of its domain. A kink at ``at`` itself is an error of its size. Of a ``single`` function the values are good to
    single precision only: narrow steps, where values differ by their rounding or not at all, count for little.

    Source:
        Ridders 1982, "Accurate computation of F'(x) and F'(x)F''(x)".
    """
    scale = max(abs(at), 0.1)
    steps = [*(step * scale for step in _FIRST_STEPS), 0.3 * abs(at)][: 3 if 0 < abs(at) < _FIRST_STEPS[1] else 2]
    best = Estimate(nan, inf)
    noise = _NOISE_SINGLE * abs(f(at)) if single else 0.0
    for step in steps:
        best = min(best, _sweep(f, at, step, noise), key=lambda estimate: estimate.error)
        if best.error <= 1e-10 * max(1.0, abs(best.value)):
            break
    kink_step = _KINK_STEP_SINGLE if single else _KINK_STEP
    kink = _kink(f, at, min(kink_step * scale, abs(at) / 8 or inf), _ROUNDING_SINGLE if single else _ROUNDING)
    return Estimate(best.value, max(best.error, kink)) if kink > 1e-4 * max(1.0, abs(best.value)) else best


def gradient(f: Callable[[Vector], float], at: Vector, *, single: bool = False) -> tuple[Vector, Vector]:
    """Partial derivatives of ``f`` at ``at`` and their errors."""

    def along(i: int) -> Callable[[float], float]:
        def partial(x: float) -> float:
            point = at.copy()
            point[i] = x
            return f(point)

        return partial

    estimates = [derivative(along(i), float(at[i]), single=single) for i in range(at.size)]
    return np.array([e.value for e in estimates]), np.array([e.error for e in estimates])


def _sweep(f: Callable[[float], float], at: float, step: float, noise: float) -> Estimate:
    """The best of one sweep; ``noise`` is the error of each value of ``f``."""
    return extrapolate(lambda width: _central(f, at, width), step, noise, power=2)


def extrapolate(quotient: Callable[[float], float], step: float, noise: float, *, power: int) -> Estimate:
    """A difference quotient at width 0, from widths that shrink from ``step`` on.

    Args:
        quotient: of a width; NaN where it has no value.
        step: the widest.
        noise: what is wrong with each value of the function: the narrower, the worse the quotient.
        power: the quotient's error is a series in this power of the width: 2 for central, 1 for one-sided differences.

    Source:
        Ridders 1982, as above.
    """
    best = Estimate(nan, inf)
    previous: list[float] = []
    for row in range(ROWS):
        width = step / SHRINK**row
        current = [quotient(width)]
        factor = SHRINK**power
        for k, before in enumerate(previous):
            current.append((current[k] * factor - before) / (factor - 1))
            error = max(abs(current[-1] - current[k]), abs(current[-1] - before)) + noise / width
            if isfinite(error) and error < best.error:
                best = Estimate(current[-1], error)
            factor *= SHRINK**power
        previous = current
    return best


def _kink(f: Callable[[float], float], at: float, step: float, precision: float) -> float:
    """How much the slopes on both sides differ, if they still do at an eighth of the step; 0 where ``f`` is smooth."""
    try:
        middle = f(at)
        wide, narrow = (abs(f(at + h) - 2 * middle + f(at - h)) / h for h in (step, step / 8))
    except (ArithmeticError, ValueError):
        return 0.0
    rounding = precision * abs(middle) / step
    return narrow if narrow > 0.5 * wide and narrow > rounding else 0.0


def _central(f: Callable[[float], float], at: float, step: float) -> float:
    """NaN where a step leaves the domain: then it says nothing about the derivative."""
    above, below = at + step, at - step
    try:
        return (f(above) - f(below)) / (above - below)
    except (ArithmeticError, ValueError):
        return nan
