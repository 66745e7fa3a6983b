"""Points at which a correct derivative would break: kinks and jumps close by, ends of the domain, overflow.

Each argument is varied alone: its numbers are multiplied by a factor, near 1 and far from it, set to zero and negated.
What is looked at is the function's value and irad's gradient.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import count, pairwise
from typing import Any, Final

import numba
import numpy as np

from irad.data.copies import copied
from irad.data.floats import Vector, holds_single, in_types_of, name_of_float, read_floats, with_floats
from irad.testing.gradients.trial import Trial, by_autodiff

_NEAR: Final = 0.5  # how far from 1 factors are looked at closely
_SAMPLES: Final = 48  # on each side
_HALVINGS: Final = 40
_EXPONENTS: Final = (*range(1, 21), 24, 32, 37, 48, 64, 96, 128, 192, 256, 300)  # of ten; the last of single is 37
_AROUND_ZERO: Final = 1e-3  # factors of both signs, between which a kink at zero is looked for
_SUSPECTS: Final = 3  # places on a line that are looked at closely
_STAYS: Final = 0.4  # part of a jump that is still there when the place is known: half, if the slope there is the mean
_TELLING: Final = 1e-7  # parts of the largest slope, or value, that a jump has to have
_ROUNDING: Final = 64.0  # units in the last place of the value: what is left of a slope whose terms cancel
_CALLS: Final = 700  # of the function for each argument, for a progress bar
_SLOW: Final = 0.3  # seconds of a call beyond which arguments are not made larger


@dataclass(frozen=True, slots=True)
class WeakPoint:
    """One place where something happens.

    Attributes:
        argument: name of the parameter.
        where: its value there, in terms of the given one.
        what: what happens.
        distance: of the factor from 1, which sorts the places of an argument.
    """

    argument: str
    where: str
    what: str
    distance: float


@dataclass(frozen=True, slots=True)
class _Seen:
    """Value and derivative at a factor; ``fault`` says why there is none."""

    factor: float
    value: float = 0.0
    slope: float = 0.0
    gradient: Vector | None = None
    fault: str = ""


def weak_points(
    trial: Trial, names: tuple[str, ...], tick: Callable[[str, int, int], None] | None = None
) -> tuple[WeakPoint, ...]:
    """Weak points near and far from a point, argument by argument, the nearest first.

    Args:
        trial: the function at a point where its value and gradient are finite.
        names: of the parameters.
        tick: called with the name of the argument, and how much is done of how much.
    """
    found: list[WeakPoint] = []
    positions = [i for i, active in enumerate(trial.active) if active and read_floats(trial.values[i]).size]
    for number, position in enumerate(positions):
        calls = count()

        def told(number: int = number, position: int = position, calls: Iterator[int] = calls) -> None:
            if tick is not None:
                done = min(next(calls), _CALLS - 1)
                tick(names[position], number * _CALLS + done, len(positions) * _CALLS)

        line = _ScaledArgument(trial, position, names[position], told)
        places = {(each.where, each.what): each for each in (*line.near(), *line.far())}
        found += sorted(places.values(), key=lambda each: each.distance)
    return tuple(found)


class _ScaledArgument:
    """An argument times a factor."""

    def __init__(self, trial: Trial, position: int, name: str, tick: Callable[[], None]) -> None:
        self._trial, self._position, self._name = trial, position, name
        self._leaves = read_floats(trial.values[position])
        primal: Any = trial.program
        self._checked = numba.njit(boundscheck=True)(primal.py_func)  # a large number may be used as an index
        last = 37 if any(map(holds_single, trial.values)) else 300
        self._exponents = [exponent for exponent in _EXPONENTS if exponent <= last]
        self._noise = _ROUNDING * float(np.finfo(np.float32 if last == 37 else np.float64).eps)
        self._tick = tick

    def near(self) -> Iterator[WeakPoint]:
        """Kinks, jumps and domain boundaries near the argument."""
        for sign in (1.0, -1.0):
            seen = [self._at(1.0 + sign * _NEAR * k / _SAMPLES) for k in range(_SAMPLES + 1)]
            fine = next((k for k, each in enumerate(seen) if each.fault), len(seen))
            yield from self._breaks(seen[:fine])
            if fine < len(seen):
                yield self._edge(seen[fine - 1], seen[fine])

    def far(self) -> Iterator[WeakPoint]:
        """Weak points at zero, of negative numbers, of large and of small ones."""
        for factor in (0.0, -1.0):
            fault = self._at(factor).fault
            if fault:
                yield WeakPoint(self._name, self._where(factor), fault, 1.0 - factor)
        around = [self._at(-_AROUND_ZERO), self._at(_AROUND_ZERO)]
        if not any(each.fault for each in around):
            yield from self._breaks(around)
        for base in (10.0, 0.1):
            last = self._at(1.0)
            for exponent in self._exponents:
                started = time.perf_counter()
                seen = self._at(base**exponent)
                if seen.fault:
                    yield self._edge(last, seen)
                    break
                last = seen
                if time.perf_counter() - started > _SLOW:
                    break

    def _edge(self, inside: _Seen, outside: _Seen) -> WeakPoint:
        """The place between two factors from where on there is no derivative."""
        for _ in range(_HALVINGS):
            middle = self._at(_between(inside.factor, outside.factor))
            inside, outside = (inside, middle) if middle.fault else (middle, outside)
        return WeakPoint(
            self._name, f"{self._where(outside.factor)} and beyond", outside.fault, abs(outside.factor - 1.0)
        )

    def _breaks(self, seen: list[_Seen]) -> Iterator[WeakPoint]:
        """Places at which the slope or the value jumps."""
        pairs = list(pairwise(seen))
        steepest = max((abs(each.slope) for each in seen), default=0.0)
        largest = max((abs(each.value) for each in seen), default=0.0)
        places: list[WeakPoint] = []
        bend = max(_TELLING * steepest, self._noise * largest)
        for measure, least in ((_missing_value, _TELLING * largest), (_bend, bend)):
            for pair in sorted(pairs, key=lambda pair: -measure(*pair))[:_SUSPECTS]:
                before = measure(*pair)
                low, high = self._narrowed(pair, measure)
                if before > least and measure(low, high) > max(least, _STAYS * before):
                    places.append(self._break(low, high, is_jump=measure is _missing_value))
        known: list[float] = []
        for place in places:
            if all(abs(place.distance - other) > 1e-6 for other in known):
                known.append(place.distance)
                yield place

    def _narrowed(self, pair: tuple[_Seen, _Seen], measure: Callable[[_Seen, _Seen], float]) -> tuple[_Seen, _Seen]:
        low, high = pair
        for _ in range(_HALVINGS):
            middle = self._at((low.factor + high.factor) / 2)
            if middle.fault:
                return low, high
            low, high = (low, middle) if measure(low, middle) >= measure(middle, high) else (middle, high)
        return low, high

    def _break(self, low: _Seen, high: _Seen, is_jump: bool) -> WeakPoint:
        low, high = sorted((low, high), key=lambda each: each.factor)
        where = self._where(0.0 if low.factor <= 0.0 <= high.factor else high.factor)
        if is_jump:
            return self._weak(high, where, f"the value jumps from {low.value:.6g} to {high.value:.6g}")
        low, high = self._sides(low, high)
        assert low.gradient is not None
        assert high.gradient is not None
        change = np.abs(high.gradient - low.gradient)
        leaf = int(np.argmax(change))
        name = name_of_float(self._trial.values[self._position], leaf, self._name)
        before, after = low.gradient[leaf], high.gradient[leaf]
        return self._weak(
            high, where, f"a kink: the derivative with respect to {name} jumps from {before:.6g} to {after:.6g}"
        )

    def _sides(self, low: _Seen, high: _Seen) -> tuple[_Seen, _Seen]:
        """Places beyond two others: one of these may be the kink itself, where a slope between the two is chosen."""
        gap = high.factor - low.factor
        beyond = self._at(low.factor - gap), self._at(high.factor + gap)
        return (low, high) if any(each.fault for each in beyond) else beyond

    def _weak(self, seen: _Seen, where: str, what: str) -> WeakPoint:
        return WeakPoint(self._name, where, what, abs(seen.factor - 1.0))

    def _where(self, factor: float) -> str:
        if factor == 0.0:
            return f"{self._name} = 0"
        if self._leaves.size == 1:
            return f"{self._name} = {self._leaves[0] * factor:.6g}"
        return f"{self._name} × {factor:.6g}"

    def _at(self, factor: float) -> _Seen:
        """Value and derivative there, or what is in the way."""
        self._tick()
        trial = self._trial
        with np.errstate(all="ignore"):
            moved = in_types_of(
                with_floats(trial.values[self._position], self._leaves * factor), trial.values[self._position]
            )
        values = (*trial.values[: self._position], moved, *trial.values[self._position + 1 :])
        try:
            self._checked(*copied(values))
            answer = by_autodiff(replace(trial, values=values))
        except Exception as error:  # whatever a function raises out of its domain is the finding
            return _Seen(factor, fault=f"{type(error).__name__} is raised: {_first_line(error)}")
        value = answer.objective.of(answer.run.value, answer.run.after)
        gradient = answer.run.cotangents[self._position]
        if not math.isfinite(value):
            return _Seen(factor, fault=f"the value is {_odd(answer.run.value, value)}")
        if gradient is None or not np.all(np.isfinite(gradient)):
            return _Seen(factor, fault=f"the value is finite, the gradient with respect to {self._odd_leaf(gradient)}")
        with np.errstate(all="ignore"):  # what overflows is a finding, not a warning
            slope = float(gradient @ self._leaves)
        return _Seen(factor, value, slope, gradient)

    def _odd_leaf(self, gradient: Vector | None) -> str:
        if gradient is None:
            return f"{self._name} is missing"
        leaf = int(np.flatnonzero(~np.isfinite(gradient))[0])
        return f"{name_of_float(self._trial.values[self._position], leaf, self._name)} is {gradient[leaf]}"


def _between(a: float, b: float) -> float:
    """The mean; of numbers of different magnitude that of the magnitudes."""
    if a * b > 0.0 and not 0.25 < a / b < 4.0:
        return math.sqrt(abs(a)) * math.sqrt(abs(b)) * math.copysign(1.0, a)
    return (a + b) / 2


def _bend(low: _Seen, high: _Seen) -> float:
    """Size of the change of the slope."""
    return abs(high.slope - low.slope)


def _missing_value(low: _Seen, high: _Seen) -> float:
    """Size of the change of the value that the slopes do not explain."""
    return abs(high.value - low.value - (high.slope + low.slope) / 2 * (high.factor - low.factor))


def _odd(returned: Any, total: float) -> str:
    return str(returned) if isinstance(returned, float) else str(total)


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [""])[0][:120]
