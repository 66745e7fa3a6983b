"""What the derivatives of a function are at a point, by mpmath: from all sides, and at infinity as limits.

Differences of numbers of 160 digits: a step of 1e-30 leaves thirty digits right, and nothing of it reaches across a
special point 1e-9 away. At a special point itself the derivative is taken beside it, at two distances
on each side: where both agree it is the limit; where it grows towards the point it is infinite.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any, Final, TypeAlias

import mpmath

Point: TypeAlias = tuple[float, ...]
Order: TypeAlias = tuple[int, ...]
"""How often a function is differentiated with respect to each argument."""

_DIGITS: Final = 160
_STEP: Final = mpmath.mpf(10) ** -30
_BESIDE: Final = (mpmath.mpf(10) ** -18, mpmath.mpf(10) ** -21)
_WEIGHTS: Final = {0: ((0, 1),), 1: ((-1, -0.5), (1, 0.5)), 2: ((-1, 1), (0, -2), (1, 1)),
                   3: ((-2, -0.5), (-1, 1), (1, -1), (2, 0.5))}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Limits:
    """The derivative of one order at a point, from each side where the function is defined.

    Attributes:
        values: one for each side, infinite where it grows without bound; NaN where there is no limit.
    """

    values: tuple[float, ...]

    @property
    def is_smooth(self) -> bool:
        """Whether all sides agree."""
        return all(_agree(value, self.values[0]) for value in self.values)


def _agree(a: float, b: float) -> bool:
    return a == b or abs(a - b) <= 1e-8 * max(abs(a), abs(b)) + 1e-11


def limits(
    exact: Callable[..., Any], point: Point, order: Order, wrt: tuple[int, ...], is_special: bool, far: float
) -> Limits:
    """The derivative of an order from each side of a point.

    Args:
        wrt: positions of the arguments that may move.
        is_special: the point may be an end of the domain, a kink or a pole; else the derivative is taken at it.
        far: how far out the function can be computed.
    """
    largest = max(abs(x) if math.isfinite(x) else far for x in point)
    with mpmath.workdps(_DIGITS + int(4 * math.log10(max(1.0, largest)))):
        if any(math.isinf(x) for x in point):
            return Limits((_at_infinity(exact, point, order, far),))
        if not is_special:
            try:
                return Limits((_as_float(_difference(exact, tuple(map(mpmath.mpf, point)), order)),))
            except _NotReal:
                pass
        # A partial derivative does not move the others: x**n of negative x has no values beside n. But the value may be
        # infinite along the axes and not beside them.
        sides = sides_of(exact, point, tuple(i for i, n in enumerate(order) if n)) or sides_of(exact, point, wrt)
        return Limits(tuple(_one_sided(exact, point, order, side) for side in sides))


class _NotReal(Exception):
    """There is no real value."""


def _value(exact: Callable[..., Any], point: tuple[Any, ...]) -> Any:
    try:
        value = exact(*point)
    except (ValueError, ZeroDivisionError, OverflowError, ArithmeticError, mpmath.libmp.NoConvergence) as error:
        raise _NotReal from error
    if isinstance(value, mpmath.mpc) and value.imag == 0:
        value = value.real
    if isinstance(value, mpmath.mpc) or not mpmath.isfinite(value):
        raise _NotReal
    return value


def has_value(exact: Callable[..., Any], point: Point) -> bool:
    """Whether a function has a value at a point."""
    with mpmath.workdps(25):
        try:
            _value(exact, tuple(map(mpmath.mpf, point)))
        except _NotReal:
            return False
    return True


def sides_of(exact: Callable[..., Any], point: Point, wrt: tuple[int, ...]) -> list[tuple[int, ...]]:
    """The directions, a sign for each argument, in which a function is defined beside a point."""
    found = []
    with mpmath.workdps(25):
        for side in product(*((1, -1) if i in wrt else (0,) for i in range(len(point)))):
            with suppress(_NotReal):
                _value(exact, _beside(point, side, _BESIDE[0]))
                found.append(side)
    return found


def _beside(point: Point, side: tuple[int, ...], distance: Any) -> tuple[Any, ...]:
    """A point beside another: not on a diagonal, where ties are."""
    parts = zip(point, side, strict=True)
    return tuple(mpmath.mpf(x) + s * distance * (1 + mpmath.mpf(i) / 3) for i, (x, s) in enumerate(parts))


def _one_sided(exact: Callable[..., Any], point: Point, order: Order, side: tuple[int, ...]) -> float:
    try:
        far, near = (_difference(exact, _beside(point, side, distance), order) for distance in _BESIDE)
    except _NotReal:
        return math.nan
    value = near - (far - near) * _BESIDE[1] / (_BESIDE[0] - _BESIDE[1])  # what is linear in the distance drops out
    if abs(near - far) <= 1e-2 * abs(near):
        return _as_float(value)
    if abs(near) > abs(far):
        return math.copysign(math.inf, near)
    return 0.0 if abs(value) < 1e-2 * abs(far) else math.nan


def _at_infinity(exact: Callable[..., Any], point: Point, order: Order, far: float) -> float:
    """The limit, as far as three numbers tell; NaN where there is none."""
    distances = [mpmath.mpf(far) ** (mpmath.mpf(i) / 3) for i in (1, 2, 3)]
    try:
        found = [
            _difference(
                exact, tuple(mpmath.sign(x) * distance if math.isinf(x) else mpmath.mpf(x) for x in point), order
            )
            for distance in distances
        ]
    except _NotReal:
        return math.nan
    steps = [abs(b) - abs(a) for a, b in pairwise(found)]
    if all(abs(b - a) <= 1e-9 * abs(b) for a, b in pairwise(found)):
        return _as_float(found[-1])
    if all(step < 0 for step in steps) and abs(found[-1]) < 1e-6:
        return 0.0
    if all(step > 0 for step in steps) and abs(found[-1]) > 1.2 * abs(found[0]):
        return math.copysign(math.inf, found[-1])
    return math.nan


def _difference(exact: Callable[..., Any], point: tuple[Any, ...], order: Order) -> Any:
    """The central difference."""
    total, largest = mpmath.mpf(0), mpmath.mpf(0)
    for moves in product(*(_WEIGHTS[n] for n in order)):
        weight = math.prod(w for _, w in moves)
        value = _value(exact, tuple(x + m * _STEP for x, (m, _) in zip(point, moves, strict=True)))
        total, largest = total + weight * value, max(largest, abs(value))
    if abs(total) <= largest * mpmath.eps * 1000:
        return mpmath.mpf(0)  # rounding of equal numbers
    return total / _STEP ** sum(order)


def _as_float(number: Any) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.copysign(math.inf, number)
