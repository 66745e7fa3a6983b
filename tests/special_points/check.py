"""Whether a derivative is right at a point: the limit where there is one, else an element of the subdifferential."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final

from tests.special_points.derivatives import Batch, Mode
from tests.special_points.table import Case
from tests.special_points.truth import Limits, Order, Point, limits

ALL_ORDERS: Final = os.environ.get("IRAD_SPECIAL_POINTS") == "all"


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
    if convention is not None and order in convention.values:
        return _departure(convention.values[order], given, case, point, order)
    found = _limits(case, point, order)
    finite = [value for value in found.values if not math.isnan(value)]
    if not found.values or len(finite) < len(found.values):
        return ""  # no limit
    low, high = min(finite), max(finite)
    if math.isinf(low) and math.isinf(given) and any(x == 0.0 and math.copysign(1.0, x) < 0.0 for x in point):
        return ""  # the sign of an infinite derivative may be that of the zero
    if found.is_smooth:
        return _departure(low, given, case, point, order)
    if math.isinf(low) and math.isinf(high):
        return "" if not math.isfinite(given) else "a pole, ±inf or nan"
    return _departure((min(low, 0.0), max(high, 0.0)), given, case, point, order)


def _departure(wanted: float | tuple[float, float] | None, given: float, case: Case, point: Point, order: Order) -> str:
    if wanted is None:
        return ""
    low, high = wanted if isinstance(wanted, tuple) else (wanted, wanted)
    size = max((abs(x) for x in (low, high) if math.isfinite(x)), default=0.0)
    scale = case.scale(point, order) if case.scale is not None else 0.0
    slack = case.rtol * max(size, scale) + 1e-300
    is_right = low - slack <= given <= high + slack or (math.isnan(low) and math.isnan(given))
    return "" if is_right else f"{wanted!r}"


@cache
def _limits(case: Case, point: Point, order: Order) -> Limits:
    return limits(case.exact, point, order, case.is_special(point), case.far)


def is_default(case: Case, total: int) -> bool:
    """Whether every run of the tests has this order: the first, and all of functions that branch."""
    return total == 1 or case.guarded or ALL_ORDERS


def worst(lines: Sequence[str], count: int = 12) -> str:
    """The first faults, for a message."""
    more = [f"and {len(lines) - count} more"] if len(lines) > count else []
    return "\n".join((*lines[:count], *more))
