"""The derivative of a function of one number at 0, from its values: a sweep of step sizes, and how far off it may be.

It tells kinks from smooth places, stays within a range, and takes into account how exact the function's values are.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from math import comb, floor, inf, isfinite, isnan, log2, nan, sqrt
from typing import Any, Final

import numpy as np

from irad.data.floats import Vector, in_types_of, read_floats, with_floats

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
    """Shape of a function at a point."""

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
        """True if the sides differ by so much that neither curvature nor noise can make it."""
        gap, steepest = abs(self.left - self.right), max(abs(self.left), abs(self.right))
        return self.shape is Shape.KINK and gap > _UNLIKE * steepest and self.error < _CONVERGED * gap

    def has_between(self, given: float, slack: float) -> bool:
        """True if a number lies between the slopes of both sides; of one side, where the other has none."""
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

    A wide sweep may converge to another slope than that at 0, and be sure of it: beyond a kink, or where kinks lie so
    close together that they look smooth from afar. So it counts only if no narrower one contradicts it. Where
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
    """True if the slopes of both sides leave a doubt that they are one; not where only one side is known."""
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
    """Noise in the values of ``f`` near 0: the standard deviation of what is not smooth in them.

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


# Derivatives from function values alone: the independent truth that gradients are checked against.

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


# How much of a derivative is rounding: its noise between points that agree to ten digits.
#
# Where large terms cancel, a derivative is as exact as its terms, not as their sum: any two ways of computing it differ
# by rounding that may exceed the sum. What is smooth in the derivative vanishes in its higher differences along a line;
# the rounding is what stays, and divided by the machine epsilon it tells how large the terms are.

_STARTS: Final = (1.0, 12.0, 23.0)  # of samples, in steps from the point
EPSILON: Final = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, slots=True)
class Nearby:
    """A line of points through all arguments that may be varied.

    Attributes:
        values: the arguments of the point itself.
        directions: by argument, how far the line goes for 1.
        room: the range in which the function may be called.
    """

    values: tuple[Any, ...]
    directions: Mapping[int, Vector]
    room: tuple[float, float]

    def at(self, t: float) -> tuple[Any, ...]:
        """The arguments at a point of the line, in their precision."""
        return tuple(
            in_types_of(with_floats(value, read_floats(value) + t * self.directions[i]), value)
            if i in self.directions
            else value
            for i, value in enumerate(self.values)
        )


def noise_nearby(derivative: Callable[[tuple[Any, ...]], float], nearby: Nearby) -> float:
    """The noise of a derivative on a line; 0 where it cannot be computed there.

    The point itself is left out: at a tie or a kink its derivative may be another one, which is not noise. Terms may
    cancel without rounding at every point of a sample, so that the largest noise of several samples counts.
    """
    low, high = nearby.room
    towards = 1.0 if high >= -low else -1.0

    def derivative_at(t: float) -> float:
        try:
            return derivative(nearby.at(t))
        except (ArithmeticError, ValueError):
            return nan

    def noise_from(start: float) -> float:
        return noise_of(lambda t: derivative_at(start + t), (low - start, high - start))

    return max(noise_from(towards * NOISE_STEP * each) for each in _STARTS)


class GradientNearby:
    """irad's gradient on a line of points, computed once at each.

    Args:
        gradient: of arguments; by position, None for what is constant.
        nearby: the line.
    """

    def __init__(self, gradient: Callable[[tuple[Any, ...]], tuple[Vector | None, ...]], nearby: Nearby) -> None:
        self._gradient, self._nearby = gradient, nearby
        self._known: dict[bytes, tuple[Vector | None, ...]] = {}

    def noise(self, position: int, direction: Vector) -> float:
        """The rounding in a derivative; 0 if equal calls do not give equal ones, for then it is something else."""
        first, again = self._gradient(self._nearby.values)[position], self._at(self._nearby.values)[position]
        if first is None or again is None or not np.array_equal(first, again):
            return 0.0

        def derivative(values: tuple[Any, ...]) -> float:
            found = self._at(values)[position]
            return nan if found is None else float(found @ direction)

        return noise_nearby(derivative, self._nearby)

    def _at(self, values: tuple[Any, ...]) -> tuple[Vector | None, ...]:
        key = b"".join(read_floats(values[i]).tobytes() for i in self._nearby.directions)
        if key not in self._known:
            self._known[key] = self._gradient(values)
        return self._known[key]
