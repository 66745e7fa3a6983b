"""Natural cubic spline through values at knots, evaluated at many points; squared loss."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from bench.case import Case, Size


@njit(error_model="numpy")
def second_derivatives(knots, values):
    n = knots.size
    second, above = np.zeros(n), np.zeros(n)
    for i in range(1, n - 1):
        left, right = knots[i] - knots[i - 1], knots[i + 1] - knots[i]
        bend = 6.0 * ((values[i + 1] - values[i]) / right - (values[i] - values[i - 1]) / left)
        pivot = 2.0 * (left + right) - left * above[i - 1]
        above[i] = right / pivot
        second[i] = (bend - left * second[i - 1]) / pivot
    for i in range(n - 2, 0, -1):
        second[i] -= above[i] * second[i + 1]
    return second


@njit(error_model="numpy")
def interval(knots, x):
    low, high = 0, knots.size - 1
    while high - low > 1:
        middle = (low + high) // 2
        if knots[middle] > x:
            high = middle
        else:
            low = middle
    return low


@njit(error_model="numpy")
def loss(values, points, knots, targets):
    second = second_derivatives(knots, values)
    total = 0.0
    for k in range(points.size):
        i = interval(knots, points[k])
        h = knots[i + 1] - knots[i]
        a, b = (knots[i + 1] - points[k]) / h, (points[k] - knots[i]) / h
        y = a * values[i] + b * values[i + 1]
        y += ((a**3 - a) * second[i] + (b**3 - b) * second[i + 1]) * h**2 / 6.0
        total += (y - targets[k]) ** 2
    return 0.5 * total


@njit(error_model="numpy")
def hand(values, points, knots, targets):
    """Points forward and backward at once; the tridiagonal system is symmetric and solved once more."""
    n = knots.size
    second = second_derivatives(knots, values)
    values_bar, points_bar, second_bar = np.zeros(n), np.empty(points.size), np.zeros(n)
    total = 0.0
    for k in range(points.size):
        i = interval(knots, points[k])
        h = knots[i + 1] - knots[i]
        inverse, sixth = 1.0 / h, h * h / 6.0
        a, b = (knots[i + 1] - points[k]) * inverse, (points[k] - knots[i]) * inverse
        left, right = (a * a * a - a) * sixth, (b * b * b - b) * sixth
        difference = a * values[i] + b * values[i + 1] + left * second[i] + right * second[i + 1] - targets[k]
        total += difference * difference
        values_bar[i] += difference * a
        values_bar[i + 1] += difference * b
        second_bar[i] += difference * left
        second_bar[i + 1] += difference * right
        slope = (values[i + 1] - values[i]) * inverse
        slope += ((3.0 * b * b - 1.0) * second[i + 1] - (3.0 * a * a - 1.0) * second[i]) * h / 6.0
        points_bar[k] = difference * slope
    above, bend_bar = np.zeros(n), np.zeros(n)
    for i in range(1, n - 1):
        left, right = knots[i] - knots[i - 1], knots[i + 1] - knots[i]
        inverse = 1.0 / (2.0 * (left + right) - left * above[i - 1])
        above[i] = right * inverse
        bend_bar[i] = (second_bar[i] - left * bend_bar[i - 1]) * inverse
    for i in range(n - 2, 0, -1):
        bend_bar[i] -= above[i] * bend_bar[i + 1]
        left, right = 6.0 / (knots[i] - knots[i - 1]), 6.0 / (knots[i + 1] - knots[i])
        values_bar[i - 1] += bend_bar[i] * left
        values_bar[i] -= bend_bar[i] * (left + right)
        values_bar[i + 1] += bend_bar[i] * right
    return 0.5 * total, (values_bar, points_bar)


@njit(error_model="numpy", fastmath={"reassoc", "contract"})
def _pivots(steps, above, inverse):
    n = above.size
    above[0] = 0.0
    for i in range(1, n - 1):
        inverse[i] = 1.0 / (2.0 * (steps[i - 1] + steps[i]) - steps[i - 1] * above[i - 1])
        above[i] = steps[i] * inverse[i]


@njit(error_model="numpy", fastmath={"reassoc", "contract"})
def _solve(steps, above, inverse, x):
    """Solves for the right-hand sides in ``x``, in place; both ends become zero."""
    n = x.size
    x[0], x[n - 1] = 0.0, 0.0
    for i in range(1, n - 1):
        x[i] = (x[i] - steps[i - 1] * x[i - 1]) * inverse[i]
    for i in range(n - 2, 0, -1):
        x[i] -= above[i] * x[i + 1]


@njit(error_model="numpy")
def _first_intervals(knots):
    """For four equal bins a knot, in which interval their start lies, nearly."""
    n = knots.size
    bins = 4 * n
    width = (knots[n - 1] - knots[0]) / bins
    starts = np.empty(bins, np.int64)
    i = 0
    for k in range(bins):
        while i < n - 2 and knots[i + 1] <= knots[0] + k * width:
            i += 1
        starts[k] = i
    return starts, 1.0 / width


@njit(error_model="numpy", fastmath={"reassoc", "contract"})
def hand_opt(values, points, knots, targets):
    """Intervals from a table of equal bins, without a search that guesses; pivots and quotients are computed once."""
    n = knots.size
    steps, inverses, above, pivots, second = np.empty(n - 1), np.empty(n - 1), np.empty(n), np.empty(n), np.empty(n)
    for i in range(n - 1):
        steps[i] = knots[i + 1] - knots[i]
        inverses[i] = 1.0 / steps[i]
    for i in range(1, n - 1):
        second[i] = 6.0 * ((values[i + 1] - values[i]) * inverses[i] - (values[i] - values[i - 1]) * inverses[i - 1])
    _pivots(steps, above, pivots)
    _solve(steps, above, pivots, second)
    starts, scale = _first_intervals(knots)
    values_bar, points_bar, bend_bar = np.zeros(n), np.empty(points.size), np.zeros(n)
    total = 0.0
    for k in range(points.size):
        x = points[k]
        i = starts[min(max(int((x - knots[0]) * scale), 0), starts.size - 1)]
        while i < n - 2 and knots[i + 1] <= x:
            i += 1
        while i > 0 and knots[i] > x:
            i -= 1
        h, inverse = steps[i], inverses[i]
        sixth = h * h / 6.0
        b = (x - knots[i]) * inverse
        a = 1.0 - b
        left, right = (a * a - 1.0) * a * sixth, (b * b - 1.0) * b * sixth
        difference = a * values[i] + b * values[i + 1] + left * second[i] + right * second[i + 1] - targets[k]
        total += difference * difference
        values_bar[i] += difference * a
        values_bar[i + 1] += difference * b
        bend_bar[i] += difference * left
        bend_bar[i + 1] += difference * right
        slope = (values[i + 1] - values[i]) * inverse
        slope += ((3.0 * b * b - 1.0) * second[i + 1] - (3.0 * a * a - 1.0) * second[i]) * (h / 6.0)
        points_bar[k] = difference * slope
    _solve(steps, above, pivots, bend_bar)
    for i in range(n - 1):
        turn = 6.0 * inverses[i] * (bend_bar[i + 1] - bend_bar[i])
        values_bar[i] += turn
        values_bar[i + 1] -= turn
    return 0.5 * total, (values_bar, points_bar)


def make(size: Size) -> tuple[Any, ...]:
    """Knots at uneven distances."""
    n, m = {"small": (5, 6), "medium": (50, 500), "full": (1_000, 20_000)}[size]
    rng = np.random.default_rng(21)
    knots = np.cumsum(rng.uniform(0.5, 1.5, n))
    points = rng.uniform(knots[0], knots[-1], m)
    return rng.standard_normal(n), points, knots, rng.standard_normal(m)


CASE = Case("spline", "natural cubic spline, 1,000 knots, 20,000 points", loss, hand, make, (0, 1), hand_opt)
