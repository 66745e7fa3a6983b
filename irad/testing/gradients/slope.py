"""The derivative of a function of one number at 0, from its values: a sweep of step sizes, and how far off it may be.

It tells kinks from smooth places, stays within a range, and takes into account how exact the function's values are.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from math import comb, floor, inf, isfinite, log2, nan, sqrt
from typing import Final

import numpy as np

FIRST_STEPS: Final = (0.1, 3e-3, 1e-4, 3e-6, 1e-7)
_SHRINK: Final = 1.6  # from each step of a sweep to the next
_ROWS: Final = 8
_ENOUGH: Final = 1e-11  # an estimate as good as this is not improved by narrower steps
_NOISY: Final = 50.0  # times noise by width: an error that narrower steps only make larger
_SAME: Final = 5.0  # times their errors that estimates of one slope may differ by
_DOUBT: Final = 1e-4  # parts of the slope by which estimates differ that many small kinks set apart
_SIDES: Final = 20.0  # times their errors that the slopes of both sides have to differ by to be a kink
_UNLIKE: Final = 1e-2  # parts of the slope by which those of both sides differ where there is none
_CONVERGED: Final = 1e-3  # parts of the slope that its error is at most
_NEGLIGIBLE: Final = 1e-6  # parts of the largest value: an error that is negligible
_EXTREME: Final = 1e150  # values beyond it, or below its inverse, are scaled
_EPSILON: Final = float(np.finfo(np.float64).eps)
_NOISE_POINTS: Final = 9
NOISE_STEP: Final = 1e-10  # between points whose values are compared, in parts of the numbers
_NOISE_STEPS: Final = (NOISE_STEP, 1e-5)  # of values in double precision; of values rounded to single
_NOISE_ORDERS: Final = range(4, 8)


@dataclass(frozen=True, slots=True)
class Estimate:
    """A derivative and how far off it may be; ``error`` is infinite where no step gave a finite value."""

    value: float
    error: float


class Shape(enum.Enum):
    """What a function looks like at a point."""

    SMOOTH = "smooth"
    KINK = "kink"
    ROUGH = "rough"
    UNDEFINED = "undefined"


@dataclass(frozen=True, slots=True)
class Slope:
    """The derivative at 0.

    Attributes:
        value: the estimate; at a kink the mean of both sides.
        error: how far off it may be; infinite where no step gave a value.
        left: the slope on the side of negative numbers; NaN if that side was not looked at.
        right: that on the other side.
        shape: ``ROUGH`` where neither the slope nor those of both sides converge, ``UNDEFINED`` where the value is
            not finite.
        steepest: the largest difference quotient of the first steps, in the sweep where that is least.
        terms: how large the terms are that add up to the derivative, as its rounding shows; 0 if that was not measured.
        from_values: whether this comes from real function values, and not from a complex step.
    """

    value: float
    error: float
    left: float = nan
    right: float = nan
    shape: Shape = Shape.SMOOTH
    steepest: float = 0.0
    terms: float = 0.0
    from_values: bool = True

    @property
    def is_clear_kink(self) -> bool:
        """Whether the sides differ by so much that neither curvature nor noise can make it."""
        gap, steepest = abs(self.left - self.right), max(abs(self.left), abs(self.right))
        return self.shape is Shape.KINK and gap > _UNLIKE * steepest and self.error < _CONVERGED * gap

    def has_between(self, given: float, slack: float) -> bool:
        """Whether a number lies between the slopes of both sides; of one side, where the other has none."""
        sides = [side for side in (self.left, self.right) if isfinite(side)]
        return bool(sides) and min(sides) - slack <= given <= max(sides) + slack

    def times(self, factor: float) -> Slope:
        """That of a function ``factor`` times as large."""
        names = ("value", "error", "left", "right", "steepest", "terms")
        return replace(self, **{name: getattr(self, name) * factor for name in names})


def slope(
    f: Callable[[float], float],
    *,
    noise: float = 0.0,
    room: tuple[float, float] = (-inf, inf),
    first_steps: Sequence[float] = FIRST_STEPS,
    careful: bool = False,
) -> Slope:
    """The derivative of ``f`` at 0.

    Args:
        f: gives NaN outside its domain: such steps are left out.
        noise: what is wrong with each value; at least rounding is assumed.
        room: the range that ``f`` may be called in; 0 lies in it. At its ends differences are one-sided.
        first_steps: the widest step of each sweep, from wide to narrow.
        careful: the noise is measured where each sweep starts, too. The square of a difference that cancels at 0 has
            no noise there, and far more at a distance.
    """
    values = _Values(f, room)
    centre = values(0.0)
    if isfinite(centre) and centre != 0.0 and not 1.0 / _EXTREME < abs(centre) < _EXTREME:
        unit = 2.0 ** floor(log2(abs(centre)))  # smaller or larger values are representable, and their squares
        return slope(
            lambda t: f(t) / unit, noise=noise / unit, room=room, first_steps=first_steps, careful=careful
        ).times(unit)
    if not isfinite(centre):
        return Slope(nan, inf, shape=Shape.UNDEFINED)
    if room == (0.0, 0.0):
        return Slope(nan, inf, shape=Shape.ROUGH)
    noise = max(noise, _EPSILON * abs(centre) / 2)
    sweeps: list[tuple[Estimate, Estimate, Estimate]] = []
    gentlest = inf
    for step in sorted(first_steps, reverse=True):
        width = _fitting(step, room)
        off = max(noise, _EPSILON / 2 * values.largest_at(width), values.noise_at(width) if careful else 0.0)
        central = _extrapolate(partial(_central, values), width, off, power=2)
        left = _extrapolate(partial(_one_sided, values, centre, sign=-1), width, 2 * off, power=1)
        right = _extrapolate(partial(_one_sided, values, centre), width, 2 * off, power=1)
        sweeps.append((central, left, right))
        gentlest = min(gentlest, values.steepest_at(width))
        enough = max(_ENOUGH * abs(central.value), _NOISY * noise / width)
        if min(central.error, max(left.error, right.error)) <= enough and not _unlike(left, right, central.value):
            break
    central, left, right = (_settled(found) for found in zip(*sweeps, strict=True))
    return replace(_classified(central, left, right, values.largest), steepest=gentlest)


def _extrapolate(quotient: Callable[[float], float], step: float, noise: float, *, power: int) -> Estimate:
    """A difference quotient at width 0, from widths that shrink from ``step`` on.

    Args:
        quotient: of a width; NaN where it has no value.
        step: the widest.
        noise: what is wrong with each value of the function: the narrower, the worse the quotient.
        power: the quotient's error is a series in this power of the width: 2 for central, 1 for one-sided differences.

    Source:
        Ridders 1982, "Accurate computation of F'(x) and F'(x)F''(x)".
    """
    best = Estimate(nan, inf)
    previous: list[float] = []
    for row in range(_ROWS):
        width = step / _SHRINK**row
        current = [quotient(width)]
        factor = _SHRINK**power
        for k, before in enumerate(previous):
            current.append((current[k] * factor - before) / (factor - 1))
            error = max(abs(current[-1] - current[k]), abs(current[-1] - before)) + noise / width
            if isfinite(error) and error < best.error:
                best = Estimate(current[-1], error)
            factor *= _SHRINK**power
        previous = current
    return best


def _settled(found: Sequence[Estimate]) -> Estimate:
    """The best of the estimates of several sweeps, from wide to narrow.

    A wide sweep may converge to another slope than that at 0, and be sure of it: beyond a kink, or where so many kinks
    lie close together that they look smooth from afar. So it counts only if no narrower one contradicts it. Where
    the two differ by little there may be many kinks, and the narrower as wrong: the error is as large as they differ.
    """
    best, doubt = found[-1], 0.0
    for estimate in reversed(found[:-1]):
        off = abs(estimate.value - best.value)
        if isfinite(best.error) and off > _SAME * (estimate.error + best.error):
            doubt = doubt or (off if off < _DOUBT * abs(best.value) else 0.0)
        elif estimate.error < best.error:
            best = estimate
    return Estimate(best.value, max(best.error, doubt))


def _fitting(step: float, room: tuple[float, float]) -> float:
    """The step, or what there is room for: on both sides, or at an end of the range on the one."""
    below, above = -room[0], room[1]
    both = min(below, above)
    return min(step, both if both > step / _SHRINK ** (2 * _ROWS) else max(below, above))


class _Values:
    """The function's values, each computed once; NaN out of range."""

    def __init__(self, f: Callable[[float], float], room: tuple[float, float]) -> None:
        self._f, self._room, self._known = f, room, dict[float, float]()

    @property
    def largest(self) -> float:
        """The largest magnitude among the finite values."""
        return max(abs(value) for value in self._known.values() if isfinite(value))

    def largest_at(self, width: float) -> float:
        """The largest magnitude at a distance."""
        return max((abs(value) for value in (self(width), self(-width)) if isfinite(value)), default=0.0)

    def steepest_at(self, width: float) -> float:
        """The largest magnitude of the difference quotients of both sides."""
        quotients = (abs(self(t) - self(0.0)) / width for t in (width, -width))
        return max(filter(isfinite, quotients), default=0.0)

    def noise_at(self, width: float) -> float:
        """The noise of the values at a distance, measured towards 0: there is room."""
        return max(
            noise_of(lambda t: self(width + t), (-width, 0.0)), noise_of(lambda t: self(t - width), (0.0, width))
        )

    def __call__(self, t: float) -> float:
        if not self._room[0] <= t <= self._room[1]:
            return nan
        if t not in self._known:
            self._known[t] = self._f(t)
        return self._known[t]


def _central(values: _Values, width: float) -> float:
    return (values(width) - values(-width)) / (2 * width)


def _one_sided(values: _Values, centre: float, width: float, sign: int = 1) -> float:
    return sign * (values(sign * width) - centre) / width


def _differ(left: Estimate, right: Estimate) -> bool:
    return abs(left.value - right.value) > _SIDES * (left.error + right.error)


def _unlike(left: Estimate, right: Estimate, value: float) -> bool:
    """Whether the slopes of both sides leave a doubt that they are one; not where only one side is known."""
    return abs(left.value - right.value) > 2 * (left.error + right.error) + _UNLIKE * abs(value)


def _classified(central: Estimate, left: Estimate, right: Estimate, largest: float) -> Slope:
    sides = (left.value, right.value)
    if _differ(left, right):
        return Slope((left.value + right.value) / 2, left.error + right.error, *sides, shape=Shape.KINK)
    one = left if not isfinite(right.error) else right
    both = Estimate((left.value + right.value) / 2, max(left.error, right.error) + abs(left.value - right.value) / 2)
    best = min(central, both if isfinite(both.error) else one, key=lambda estimate: estimate.error)
    if not isfinite(best.error):
        return Slope(nan, inf, *sides, shape=Shape.ROUGH)
    unlike = _unlike(left, right, best.value)
    allowed = max(_CONVERGED * abs(best.value), _NEGLIGIBLE * largest)
    rough = best.error > allowed or (unlike and abs(left.value - right.value) > allowed)
    return Slope(best.value, best.error, *sides, shape=Shape.ROUGH if rough else Shape.SMOOTH)


def noise_of(f: Callable[[float], float], room: tuple[float, float] = (-inf, inf)) -> float:
    """How much the values of ``f`` near 0 are off: the standard deviation of what is not smooth in them.

    Values that do not change over the closest points say nothing about that: they may have been rounded to single
    precision on the way. Then points further apart are looked at.

    Source:
        Moré and Wild 2011, "Estimating computational noise".
    """
    sign = 1.0 if room[1] >= -room[0] else -1.0
    centre = f(0.0)
    for step in _NOISE_STEPS:
        values = [f(sign * j * min(step, max(-room[0], room[1]) / _NOISE_POINTS)) for j in range(_NOISE_POINTS)]
        if not all(map(isfinite, values)):
            return 0.0
        rises = [b >= a for a, b in pairwise(values) if a != b]
        if len(set(values)) > 2 or len(set(rises)) > 1:  # two values that alternate are noise, a single step is not
            return max(_noise_in(values), _EPSILON * abs(centre) / 2)
    return _EPSILON * abs(centre) / 2


def _noise_in(values: Sequence[float]) -> float:
    """The least that differences of several orders show."""
    peak = max(map(abs, values))  # squares of numbers near the ends of the range are not representable
    differences = np.asarray(values) / peak
    found = []
    for order in range(1, max(_NOISE_ORDERS) + 1):
        differences = np.diff(differences)
        if order in _NOISE_ORDERS:
            found.append(sqrt(float(np.mean(differences**2)) / comb(2 * order, order)))
    return peak * min(found)
