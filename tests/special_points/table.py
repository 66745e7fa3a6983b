"""The form of the table of special points: a case is a function, what it is exactly, and where it is tried.

The points are made from the declaration of a function, so that none can be forgotten: `special_points`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Final, Literal, TypeAlias

import numpy as np

from irad.ruleset.interface import Domain
from tests.special_points.known import Key
from tests.special_points.truth import Order, Point, has_value, sides_of

_NEAR: Final = (1e-9, 1e-5)
_INTEGERS: Final = (-2.0, -1.0, 0.0, 1.0, 2.0, 3.0)
_FAR: Final = (40.0, 1e3, 1e8, 1e160)
_FAR_AWAY: Final = 40.0  # what has a value there has one towards infinity


Mode: TypeAlias = Literal["reverse", "forward", "forward over reverse"]


@dataclass(frozen=True, slots=True)
class Demand:
    """What is right: numbers in one of these intervals, which may be single numbers or infinities; perhaps NaN."""

    intervals: tuple[tuple[float, float], ...]
    nan: bool = False

    def is_met(self, given: float, slack: float) -> bool:
        """Whether a number is right but for a small error."""
        if math.isnan(given):
            return self.nan
        return any(low - slack <= given <= high + slack for low, high in self.intervals)

    def in_single_precision(self) -> Demand:
        """The same, of numbers that may be infinite in single precision."""
        with np.errstate(over="ignore"):
            return Demand(
                tuple((float(np.float32(low)), float(np.float32(high))) for low, high in self.intervals), self.nan
            )

    def __str__(self) -> str:
        numbers = [f"{low!r}" if low == high else f"{low!r} to {high!r}" for low, high in self.intervals]
        return " or ".join((*numbers, *["nan"] * self.nan))


ZERO: Final = Demand(((0.0, 0.0),))
NOT_FINITE: Final = Demand(((-math.inf, -math.inf), (math.inf, math.inf)), nan=True)


@dataclass(frozen=True, slots=True, eq=False)
class Convention:
    """What is documented where a function is not smooth, in place of any element of the subdifferential.

    Attributes:
        holds: whether it speaks of a derivative at a point.
        demand: what is right there.
        text: in words, for the page.
    """

    holds: Callable[[Point, Order], bool]
    demand: Demand
    text: str


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """A scalar function and its special points.

    Attributes:
        name: as docs/rules.md or docs/support.md lists it; a remark may follow in brackets.
        function: of floats, compiled by Numba.
        exact: the same function in mpmath; where it raises, or is not a real number, the function is not defined.
        points: where it is tried, a tuple of arguments each.
        wrt: positions of the arguments with respect to which it is differentiated.
        conventions: what holds where it is not smooth; without one, any element of the subdifferential is right.
        guarded: its code branches, or its rule does: all orders are tried in every run of the tests.
        rtol: relative tolerance.
        scale: the size of terms that cancel somewhere, if it is above that which is usual for a derivative.
        highest: the highest order that is tried.
        far: how far out `exact` can be computed.
        single: it is computed in single precision.
        not_right: known failures, with the reason: what is listed there has to fail.
    """

    name: str
    function: Callable[..., Any]
    exact: Callable[..., Any]
    points: tuple[Point, ...]
    wrt: tuple[int, ...] = (0,)
    conventions: tuple[Convention, ...] = ()
    guarded: bool = False
    rtol: float = 1e-11
    scale: float = 0.0
    highest: int = 3
    far: float = 1e45
    single: bool = False
    not_right: Mapping[Key, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name

    @property
    def arity(self) -> int:
        """Number of arguments."""
        return len(self.points[0])

    def is_special(self, point: Point) -> bool:
        """Whether the function may be other than smooth there: round numbers, equal arguments."""
        round_numbers = any(abs(point[i]) < 1e15 and (64.0 * point[i]).is_integer() for i in self.wrt)
        return round_numbers or len({point[i] for i in self.wrt}) < len(self.wrt)

    def convention(self, point: Point, order: Order) -> Demand | None:
        """What is documented for a derivative at a point."""
        return next((each.demand for each in self.conventions if each.holds(point, order)), None)

    def is_known(self, point: Point, order: Order, mode: Mode) -> bool:
        """Whether a derivative is known not to be right."""
        return (str(point), str(order), mode) in self.not_right


def special_points(
    domains: Sequence[Domain], exact: Callable[..., Any], wrt: Sequence[int], far: float = 1e160
) -> tuple[Point, ...]:
    """The special points of a function of these arguments.

    Of each argument with respect to which it is differentiated: the ends of its domain and what is added to it, zeros
    of either sign, integers, both sides of these at 1e-9 and 1e-5, numbers far out, and infinities; the others take
    some numbers of their domains. Of several arguments also pairs of special numbers, equal and nearly equal ones.

    Args:
        exact: points at and around which it has no value are left out.
        far: the largest finite number that is tried; below 1e3 no infinity is.
    """
    found: dict[tuple[str, ...], Point] = {}
    for middle in _middles(domains, wrt):
        for position in wrt:
            for x in _numbers(domains[position], far):
                _add(found, (*middle[:position], x, *middle[position + 1 :]))
    if len(wrt) > 1:
        middle = next(_middles(domains, wrt))
        for numbers in product(*(_some(domains[i]) if i in wrt else (middle[i],) for i in range(len(domains)))):
            _add(found, numbers)
        for x, step in product((0.0, 1.0, -1.0, 0.7), (0.0, *_NEAR, *(-n for n in _NEAR))):
            _add(found, tuple((x + step if i == wrt[0] else x) if i in wrt else middle[i] for i in range(len(domains))))
    return tuple(point for point in found.values() if is_defined_near(exact, point, tuple(wrt)))


def _add(found: dict[tuple[str, ...], Point], point: Point) -> None:
    found.setdefault(tuple(x.hex() for x in point), point)


def _middles(domains: Sequence[Domain], wrt: Sequence[int]) -> Iterator[Point]:
    """Ordinary numbers, and in place of each that is only passed on also others: integers, the ends of its domain."""
    ordinary = tuple(map(_ordinary, domains))
    yield ordinary
    for i, domain in enumerate(domains):
        if i not in wrt:
            for x in dict.fromkeys(
                (*(float(n) for n in range(5) if domain.low <= n <= domain.high), domain.low, *domain.also)
            ):
                yield (*ordinary[:i], x, *ordinary[i + 1 :])


def _numbers(domain: Domain, far: float) -> list[float]:
    """Special numbers, those beside them, and those far out."""
    centres = centres_of(domain)
    beside = [c + sign * step for c, sign, step in product(centres, (1.0, -1.0), _NEAR)]
    sizes = [x for x in _FAR if x <= far] + [math.inf] * (far >= 1e3)
    distant = [sign * x for x, sign in product(sizes, (1.0, -1.0))]
    return [*centres, -0.0, _ordinary(domain), *beside, *distant]


def centres_of(domain: Domain) -> list[float]:
    """Numbers at which a function may behave specially."""
    return list(dict.fromkeys((*_INTEGERS, domain.low, domain.high, *domain.also)))


def _some(domain: Domain) -> list[float]:
    return list(dict.fromkeys((0.0, 1.0, -1.0, 2.0, *domain.also, _ordinary(domain))))


def _ordinary(domain: Domain) -> float:
    return domain.low + 0.61803 * (domain.high - domain.low)


def is_defined_near(exact: Callable[..., Any], point: Point, wrt: tuple[int, ...]) -> bool:
    """Whether a function has a value at a point, or on some side of it."""
    towards = tuple(math.copysign(_FAR_AWAY, x) if math.isinf(x) else x for x in point)
    return has_value(exact, towards) or bool(sides_of(exact, towards, wrt))


def batches(names: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    """Names of cases that are compiled together."""
    for start in range(0, len(names), size):
        yield names[start : start + size]
