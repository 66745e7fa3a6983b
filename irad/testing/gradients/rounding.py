"""How much of a derivative is rounding: its noise between points that agree to ten digits.

Where large terms cancel, a derivative is as exact as its terms, not as their sum: any two ways of computing it differ
by rounding that may exceed the sum. What is smooth in the derivative vanishes in its higher differences along a line;
the rounding is what stays, and divided by the machine epsilon it tells how large the terms are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import nan
from typing import Any, Final

import numpy as np

from irad.data.floats import Vector, in_types_of, read_floats, with_floats
from irad.testing.gradients.slope import NOISE_STEP, noise_of

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

    The point itself is left out: at a tie or a kink its derivative may be another one, which is no noise. Terms may
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
