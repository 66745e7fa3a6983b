"""Whether a derivative is right at a point: the limit where there is one, else an element of the subdifferential."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import product
from statistics import median

from tests.special_points.derivatives import Batch, Mode
from tests.special_points.table import Case
from tests.special_points.truth import Limits, Order, Point, limits


def faults(batch: Batch, case: Case, mode: Mode, total: int) -> Iterator[str]:
    """What is wrong with the derivatives of a total order, a line each."""
    values = batch.values(case)
    for order, given in batch.derivatives(mode, case, total):
        for point, value, number in zip(case.points, values, given, strict=True):
            is_pole = math.isinf(value) and not math.isfinite(number)
            expected = "" if math.isnan(value) or is_pole else _fault(case, point, order, number)
            if expected and not any(holds(point, order) for holds, _ in case.not_right):
                yield f"{case.name}{point} {order} {mode}: {number!r}, expected {expected}"


def _fault(case: Case, point: Point, order: Order, given: float) -> str:
    """What is expected, or "" where the derivative is right."""
    convention = case.convention(point)
    if convention is not None:
        return _departure(convention.values[order], given, case, order) if order in convention.values else ""
    found = _limits(case, point, order)
    if not found.values or any(map(math.isnan, found.values)):
        return ""  # no limit
    low, high = min(found.values), max(found.values)
    # Of an infinite derivative the next is not a number that a user could go on with: it may be infinite or NaN.
    if (
        sum(order) > 1
        and not math.isfinite(given)
        and (math.isinf(low) or math.isinf(high) or any(map(math.isinf, point)))
    ):
        return ""
    if math.isinf(low) and math.isinf(given) and any(x == 0.0 and math.copysign(1.0, x) < 0.0 for x in point):
        return ""  # the sign of an infinite derivative may be that of the zero
    if found.is_smooth and all(_limits(case, point, below).is_smooth for below in _below(order)):
        return _departure(low, given, case, order, _largest(case, point, sum(order)))
    if math.isinf(low) and math.isinf(high):
        return "" if not math.isfinite(given) else "a pole, ±inf or nan"
    return _departure((min(low, 0.0), max(high, 0.0)), given, case, order)


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


def _departure(
    wanted: float | tuple[float, float], given: float, case: Case, order: Order, largest: float = 0.0
) -> str:
    low, high = wanted if isinstance(wanted, tuple) else (wanted, wanted)
    size = max((abs(x) for x in (low, high) if math.isfinite(x)), default=0.0)
    slack = case.rtol * size + 1e-14 * largest + _rounding(case, order) + 1e-300
    return "" if low - slack <= given <= high + slack else f"{wanted!r}"


@cache
def _rounding(case: Case, order: Order) -> float:
    """What may be lost where terms cancel: the rounding of numbers of the size that is usual for this derivative.

    A function of size 1 whose derivative is 1e-17 somewhere is computed from terms of size 1. Ten times that for each
    further order: there are more terms.
    """
    found = [each.values[0] for point in case.points if (each := _limits(case, point, order)).values]
    usual = [abs(value) for value in found if math.isfinite(value)]
    return 4e-15 * 10.0 ** (sum(order) - 1) * (median(usual) if usual else 0.0)


@cache
def _limits(case: Case, point: Point, order: Order) -> Limits:
    return limits(case.exact, point, order, case.wrt, case.is_special(point), case.far)


def worst(lines: Sequence[str], count: int = 12) -> str:
    """The first faults, for a message."""
    more = [f"and {len(lines) - count} more"] if len(lines) > count else []
    return "\n".join((*lines[:count], *more))
