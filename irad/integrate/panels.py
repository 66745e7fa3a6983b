"""Gauss–Kronrod quadrature on one interval, the map of infinite ranges, and adaptive bisection."""

from __future__ import annotations

from typing import Any

import numpy as np

from irad.frontend.inner import inner_jitable
from irad.integrate.slots import add, distance, move, room

# The limit of a sequence of sums by Wynn's ε-algorithm, for integrands with a singularity at an end of an interval.
#
# Where an interval with a singular end is halved again and again, what is missing from the sum falls by constant
# factors, possibly times powers of the number of halvings where the integrand has logarithms. For such sequences a few
# columns of the table have the limit exactly.
#
# Source: Wynn: MTAC 10 (1956) 91-96; used as by Piessens et al. in QUADPACK, Springer 1983.

LONGEST = 30  # sums that are kept; the table loses digits in longer ones
_FEWEST = 5
_CAUTION_OF_LIMITS = 2.0


@inner_jitable
def _limit_of(sums, count, column, table):  # type: ignore[no-untyped-def]
    """The limit of a column, and what its neighbours in the table say of its error."""
    for i in range(count):
        table[0, i], table[2, i] = sums[i, column], 0.0
    best, error = table[0, count - 1], np.inf
    if not abs(table[0, count - 1] - table[0, count - 2]) <= abs(table[0, count - 2] - table[0, count - 3]):
        return best, error  # a sum that diverges has a limit in the table, too
    for k in range(count - 1):  # row k % 3 has column k of the table, the one before it is still needed
        now, following, before, last = k % 3, (k + 1) % 3, (k + 2) % 3, count - 1 - k
        if k % 2 == 0 and last >= 2:  # these are estimates, the others reciprocals
            value = table[now, last]
            wrong = abs(value - table[now, last - 1]) + abs(value - table[now, last - 2])
            if wrong < error:
                best, error = value, wrong
        for i in range(last):
            difference = table[now, i + 1] - table[now, i]
            if abs(difference) == 0.0:  # the sums have converged, or are exactly geometric
                return best, error
            table[following, i] = table[before, i + 1] + 1.0 / difference
    return best, error


@inner_jitable
def _copy(rows, index, source, other):  # type: ignore[no-untyped-def]
    for j in range(rows.shape[1]):
        rows[index, j] = source[other, j]


@inner_jitable
def _push(rows, count, row):  # type: ignore[no-untyped-def]
    """Appends a row; where there is no room, the first one goes."""
    if count == rows.shape[0]:
        for i in range(count - 1):
            _copy(rows, i, rows, i + 1)
        count -= 1
    _copy(rows, count, row, 0)
    return count + 1


@inner_jitable
def extrapolate(sums, count, results, table, whole):  # type: ignore[no-untyped-def]
    """Appends a sum to those before it, and estimates their limit.

    Args:
        sums: the sums so far, as rows.
        count: how many.
        results: three rows, the last limits; the newest comes first.
        table: memory for three columns.
        whole: the sum, as a row.

    Returns:
        How many sums there are, and the error of the limit: how much it differs from its neighbours in the table and
        from the two limits before.
    """
    count = _push(sums, count, whole)
    _copy(results, 2, results, 1)
    _copy(results, 1, results, 0)
    if count < _FEWEST:
        for j in range(results.shape[1]):
            results[0, j] = np.inf
        return count, np.inf
    error = 0.0
    for j in range(sums.shape[1]):
        results[0, j], wrong = _limit_of(sums, count, j, table)
        error = max(error, wrong)
    if not np.isfinite(error):
        return count, np.inf
    total = _CAUTION_OF_LIMITS * (error + distance(results, 0, results, 1) + distance(results, 0, results, 2))
    return count, total if np.isfinite(total) else np.inf


# Nodes of the 21-point Kronrod rule, its weights, and those of the 10-point Gauss rule in it (Piessens et al. 1983)
_HALF = np.array(
    [
        (0.995657163025808080735527280689003, 0.011694638867371874278064396062192, 0.0),
        (0.973906528517171720077964012084452, 0.032558162307964727478818972459390, 0.066671344308688137593568809893332),
        (0.930157491355708226001207180059508, 0.054755896574351996031381300244580, 0.0),
        (0.865063366688984510732096688423493, 0.075039674810919952767043140916190, 0.149451349150580593145863396957658),
        (0.780817726586416897063717578345042, 0.093125454583697605535065465083366, 0.0),
        (0.679409568299024406234327365114874, 0.109387158802297641899210590325805, 0.219086362515982043995534934228163),
        (0.562757134668604683339000099272694, 0.123491976262065851077958109585166, 0.0),
        (0.433395394129247190799265943165784, 0.134709217311473325928054001771707, 0.269266719309996355091226921569469),
        (0.294392862701460198131126603103866, 0.142775938577060080797094273138717, 0.0),
        (0.148874338981631210884826001129720, 0.147739104901338491374841515972068, 0.295524224714752870173815619188769),
    ]
)
_MIDDLE = np.array([(0.0, 0.149445554002916905664936468389821, 0.0)])
TABLE = np.concatenate((_HALF * [-1.0, 1.0, 1.0], _MIDDLE, _HALF[::-1]))
"""For each node of a panel on [-1, 1]: the node, its Kronrod weight, its Gauss weight."""

EPSILON = float(np.finfo(np.float64).eps)


@inner_jitable
def kind_of(a, b):  # type: ignore[no-untyped-def]
    """Kind of the map from a range to a finite one, and the point that the map begins at.

    The kinds are 0 for a finite range, 1 and -1 for one that is infinite above and below, 2 for all numbers.
    """
    if np.isinf(a) and np.isinf(b):
        return 2, 0.0
    if np.isinf(a):
        return (1 if a > 0.0 else -1), b
    if np.isinf(b):
        return (1 if b > 0.0 else -1), a
    return 0, 0.0


@inner_jitable
def place_of(kind, origin, x):  # type: ignore[no-untyped-def]
    """Image of a point of the range."""
    if kind == 0:
        return x
    if np.isinf(x):
        return 1.0 if x > 0.0 else -1.0
    if kind == 2:
        return 2.0 * x / (1.0 + np.sqrt(1.0 + 4.0 * x * x))
    return (x - origin) / (1.0 + abs(x - origin))


@inner_jitable
def point_of(kind, origin, t):  # type: ignore[no-untyped-def]
    """The point that is mapped to a place, and how much the map stretches there."""
    if kind == 0:
        return t, 1.0
    if kind == 2:
        rest = (1.0 - t) * (1.0 + t)
        return t / rest, (1.0 + t * t) / (rest * rest)
    rest = 1.0 - abs(t)
    return origin + t / rest, 1.0 / (rest * rest)


@inner_jitable
def edges_of(kind, origin, a, b, points):  # type: ignore[no-untyped-def]
    """The places of the limits with those of the break points that lie between, in the order from ``a`` to ``b``."""
    low, high = min(a, b), max(a, b)
    edges = np.empty(points.size + 2)
    edges[0] = place_of(kind, origin, a)
    count, sign = 1, 1.0 if a < b else -1.0
    for x in points:
        if low < x < high:
            place, i = place_of(kind, origin, x), count
            while i > 1 and sign * edges[i - 1] > sign * place:
                edges[i] = edges[i - 1]
                i -= 1
            edges[i] = place
            count += 1
    edges[count] = place_of(kind, origin, b)
    return edges[: count + 1]


def panel_of(sample: Any) -> Any:
    """A panel that calls ``sample(x, data)`` for the value at each node."""

    @inner_jitable
    def panel(low, high, kind, origin, kept, index, gauss, data):  # type: ignore[no-untyped-def]
        kept[index] = 0.0
        gauss[0] = 0.0
        middle, half = 0.5 * (low + high), 0.5 * (high - low)
        for k in range(TABLE.shape[0]):
            x, stretch = point_of(kind, origin, middle + half * TABLE[k, 0])
            value = sample(x, data)
            add(kept, index, half * stretch * TABLE[k, 1], value)
            if TABLE[k, 2] != 0.0:
                add(gauss, 0, half * stretch * TABLE[k, 2], value)

    return panel


@inner_jitable
def total_of(errors, count):  # type: ignore[no-untyped-def]
    """The sum of errors, and which is the largest."""
    total, worst = 0.0, 0
    for i in range(count):
        total += errors[i]
        if errors[i] > errors[worst]:
            worst = i
    return total, worst


@inner_jitable
def _total_of_wide(errors, levels, count, deepest):  # type: ignore[no-untyped-def]
    """Sum and place of the largest error over intervals halved less often than others; -1 if there are none."""
    total, worst = 0.0, -1
    for i in range(count):
        if levels[i] < deepest:
            total += errors[i]
            if worst < 0 or errors[i] > errors[worst]:
                worst = i
    return total, worst


_DEEP = 5  # halvings of an interval after which its end is taken to be singular
_SHALLOW = 2  # halvings after which what is smooth is resolved
_CAUTION = 8.0
_HIDDEN = 1e-6


@inner_jitable
def _halves_error(errors, first, second, change, rounding):  # type: ignore[no-untyped-def]
    """Raises the error of the worse of two halves to what the change of their sum says of it.

    With a singularity inside, Kronrod's sum and Gauss's may agree by chance. Halving takes no more than a constant
    share of the error away, so that what is left is of the size of the change. Where neither half shows it, it may be
    in both.
    """
    if change <= rounding:
        return
    most = max(errors[first], errors[second])
    for i in (first, second):
        if errors[i] == most or most <= _HIDDEN * change:
            errors[i] = max(errors[i], _CAUTION * change)


@inner_jitable
def _keep_limit(sums, summed, results, table, whole, wide, limits, limits_error):  # type: ignore[no-untyped-def]
    """Extrapolates the sums of the levels, and copies the limit to ``limits`` if its error is the smallest so far.

    Returns:
        Number of the sums, and the error of the limit in ``limits``.
    """
    summed, wrong = extrapolate(sums, summed, results, table, whole)
    if wrong + wide < limits_error:
        limits[0] = 0.0
        move(limits, 0, 1.0, results, 0)
        limits_error = wrong + wide
    return summed, limits_error


@inner_jitable
def _bisect(ends, levels, index, count):  # type: ignore[no-untyped-def]
    """Halves an interval, the upper half becomes interval ``count``; False if no number lies between its ends."""
    low, high = ends[index]
    middle = 0.5 * (low + high)
    if middle in (low, high):
        return False
    ends[count, 0], ends[count, 1], ends[index, 1] = middle, high, middle
    levels[index] += 1
    levels[count] = levels[index]
    return True


@inner_jitable
def _sum_up(whole, kept, count):  # type: ignore[no-untyped-def]
    """Sums all intervals."""
    whole[0] = 0.0
    for i in range(count):
        move(whole, 0, 1.0, kept, i)


def adaptive(panel: Any) -> Any:
    """A quadrature that halves the interval with the largest error until their sum is small enough.

    Where one interval has been halved often, the halving goes by levels: all wider intervals first, to nine tenths
    of the tolerance, and the sums of the levels are extrapolated. Other integrands are called as often as without that.

    Returns:
        ``(a, b, points, like, absolute, relative, limit, data) -> (row, error, number of points, whether the error is
        small enough)``.
    """

    @inner_jitable
    def integrate(a, b, points, like, absolute, relative, limit, data):  # type: ignore[no-untyped-def]
        kind, origin = kind_of(a, b)
        edges = edges_of(kind, origin, a, b, points)
        count = edges.size - 1
        most = max(limit, count)
        ends, errors, levels = np.empty((most, 2)), np.zeros(most), np.zeros(most, np.int64)
        kept, gauss, zero, whole = room(like, most), room(like, 1), room(like, 1), room(like, 1)
        before = room(like, 1)
        if a == b:  # infinite limits, too, between which no point lies
            whole[0] = 0.0
            return whole, 0.0, 0, True
        sums, results, limits = room(like, LONGEST), room(like, 3), room(like, 1)
        table = np.empty((3, LONGEST), sums.dtype)
        deepest = summed = 0
        limits_error = np.inf
        begun = 0  # intervals from here on are to be computed: first all, then the two halves
        panels = 0
        for i in range(count):
            ends[i, 0], ends[i, 1] = edges[i], edges[i + 1]
        worst = 0
        while True:
            for i in range(worst if panels > 0 else 0, count):
                if i == worst or i >= begun:
                    panel(ends[i, 0], ends[i, 1], kind, origin, kept, i, gauss, data)
                    errors[i] = distance(kept, i, gauss, 0)
                    move(whole, 0, 1.0, kept, i)
                    panels += 1
            size = distance(whole, 0, zero, 0)
            if levels[worst] >= _SHALLOW:
                change = distance(whole, 0, before, 0)
                _halves_error(errors, worst, count - 1, change, 64.0 * EPSILON * size)
            error, worst = total_of(errors, count)
            tolerance = max(absolute, relative * size, EPSILON * size)
            if not error > tolerance:
                break
            if deepest == 0 and levels[worst] >= _DEEP:
                deepest = levels[worst]
            if deepest > 0:
                wide, worst = _total_of_wide(errors, levels, count, deepest)
                if worst < 0 or wide <= 0.9 * tolerance:
                    summed, limits_error = _keep_limit(sums, summed, results, table, whole, wide, limits, limits_error)
                    if limits_error <= max(absolute, relative * distance(limits, 0, zero, 0)):
                        break
                    deepest += 1
                    worst = _total_of_wide(errors, levels, count, deepest)[1]
            if count == most or not _bisect(ends, levels, worst, count):
                break
            before[0] = 0.0
            move(before, 0, 1.0, whole, 0)
            move(whole, 0, -1.0, kept, worst)
            begun, count = count, count + 1
        _sum_up(whole, kept, count)  # again: the running sum has the rounding errors of what was taken out of it
        error = total_of(errors, count)[0]
        if limits_error < error:
            whole, error = limits, limits_error
        size = distance(whole, 0, zero, 0)
        return whole, error, panels * TABLE.shape[0], not error > max(absolute, relative * size, EPSILON * size)

    return integrate
