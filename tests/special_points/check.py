"""Whether a derivative is right at a point: what mpmath finds on the sides of it says what is demanded.

| what mpmath finds | what is demanded |
| --- | --- |
| the same number on all sides, of this order and those below | that number |
| the same infinity on all sides | a first derivative is that infinity; one of higher order is not finite |
| infinities of both signs | not finite |
| several numbers, or a kink in an order below | a number between the smallest and the largest of them and 0 |
| numbers and an infinity | one of them, or between the numbers and 0; of higher order also NaN |
| no limit, or no value beside the point | 0 or NaN, never another number |

Beside a zero with a minus sign an infinity may have the sign of that zero. Where the value of the function is itself
not finite, any infinity or NaN will do for an infinite derivative; a value of infinity at a finite point may give NaN,
and a value of NaN 0 or NaN. A convention comes first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import product
from statistics import median
from typing import Final

from tests.special_points.derivatives import Batch
from tests.special_points.table import NOT_FINITE, Case, Demand, Mode
from tests.special_points.truth import Limits, Order, Point, limits

_NO_LIMIT: Final = Demand(((0.0, 0.0),), nan=True)


def faults(batch: Batch, case: Case, mode: Mode, total: int) -> Iterator[str]:
    """What is wrong with the derivatives of a total order, a line each.

    A known failure that does not fail is wrong, too.
    """
    excused: dict[tuple[Point, Order], bool] = {}
    for order, given in batch.derivatives(mode, case, total):
        for point, value, number in zip(case.points, batch.values(case), given, strict=True):
            wanted = demand(case, point, order, value)
            wanted = wanted.in_single_precision() if case.single else wanted
            is_met = wanted.is_met(number, slack(case, point, order, wanted))
            if case.is_known(point, order, mode):
                key = point, order  # a mixed derivative comes in several sequences: one of them may be right
                excused[key] = excused.get(key, False) or not is_met
            elif not is_met:
                yield f"{case.name}{point} {order} {mode}: {number!r}, expected {wanted}"
    for (point, order), fails in excused.items():
        if not fails:
            yield f"{case.name}{point} {order} {mode} is right: take it out of what is known to fail"


def demand(case: Case, point: Point, order: Order, value: float) -> Demand:
    """What is right at a point where the function has this value."""
    convention = case.convention(point, order)
    if convention is not None:
        return convention
    sides = _limits(case, point, order).values
    if not sides or any(map(math.isnan, sides)):
        return _NO_LIMIT
    infinite = sorted({side for side in sides if math.isinf(side)})
    finite = [side for side in sides if math.isfinite(side)]
    if infinite and not finite:
        return _of_infinite(infinite, point, order, value)
    if infinite:
        hull = min(*finite, 0.0), max(*finite, 0.0)
        return Demand((hull, *((side, side) for side in infinite)), sum(order) > 1 or _passes_nan(point, value))
    if all(_limits(case, point, each).is_smooth for each in (order, *_below(order))):
        interval = sides[0], sides[0]
    else:
        interval = min(*finite, 0.0), max(*finite, 0.0)
    return Demand((interval, *_NO_LIMIT.intervals * math.isnan(value)), _passes_nan(point, value))


def _passes_nan(point: Point, value: float) -> bool:
    """Whether the value is such that NaN is right: NaN itself, or a pole."""
    return math.isnan(value) or (math.isinf(value) and not any(map(math.isinf, point)))


def _of_infinite(infinite: Sequence[float], point: Point, order: Order, value: float) -> Demand:
    if math.isnan(value):
        return Demand((*NOT_FINITE.intervals, *_NO_LIMIT.intervals), nan=True)
    if len(infinite) > 1 or sum(order) > 1 or not math.isfinite(value):
        return NOT_FINITE
    may_turn = any(x == 0.0 and math.copysign(1.0, x) < 0.0 for x in point)
    signs = (1.0, -1.0) if may_turn else (1.0,)
    return Demand(tuple((sign * infinite[0], sign * infinite[0]) for sign in signs))


def _below(order: Order) -> Iterator[Order]:
    """Orders of the derivatives on the way to one: it is smooth only if they are."""
    found = product(*(range(n + 1) for n in order))
    return (below for below in found if 0 < sum(below) < sum(order))


@cache
def _largest(case: Case, point: Point, total: int) -> float:
    """The size of the largest partial derivative of an order at a point: they are made of the same terms."""
    orders = [o for o in product(range(total + 1), repeat=case.arity) if sum(o) == total]
    orders = [o for o in orders if all(i in case.wrt for i, n in enumerate(o) if n)]
    found = [abs(v) for order in orders for v in _limits(case, point, order).values] if len(orders) > 1 else []
    return max((v for v in found if math.isfinite(v)), default=0.0)


def slack(case: Case, point: Point, order: Order, wanted: Demand) -> float:
    """What rounding may do."""
    ends = [abs(x) for ends in wanted.intervals for x in ends if math.isfinite(x)]
    size = max(ends, default=0.0)
    lost = 1e-14 * _largest(case, point, sum(order)) + _rounding(case, order)
    return case.rtol * size + (5e8 * lost + 1e-37 if case.single else lost + 1e-300)


@cache
def _rounding(case: Case, order: Order) -> float:
    """What may be lost where terms cancel: the rounding of numbers of the size that is usual for this derivative.

    A function of size 1 whose derivative is 1e-17 somewhere is computed from terms of size 1. Ten times that for each
    further order: there are more terms.
    """
    found = [each.values[0] for point in case.points if (each := _limits(case, point, order)).values]
    usual = [abs(value) for value in found if math.isfinite(value)]
    return 4e-15 * 10.0 ** (sum(order) - 1) * max(median(usual) if usual else 0.0, case.scale)


def _limits(case: Case, point: Point, order: Order) -> Limits:
    signs = tuple(math.copysign(1.0, x) for x in point)  # 0.0 == -0.0
    return _found(case.exact, point, signs, order, case.wrt, case.is_special(point), case.far)


@cache
def _found(
    exact: Callable[..., object],
    point: Point,
    signs: Point,
    order: Order,
    wrt: tuple[int, ...],
    special: bool,
    far: float,
) -> Limits:
    """Kept for all cases of a function."""
    return limits(exact, point, order, wrt, special, far)


def worst(lines: Sequence[str], count: int = 12) -> str:
    """The first faults, for a message."""
    more = [f"and {len(lines) - count} more"] if len(lines) > count else []
    return "\n".join((*lines[:count], *more))
