"""The limit of a sequence of sums by Wynn's ε-algorithm, for integrands with a singularity at an end of an interval.

Where an interval with a singular end is halved again and again, what is missing from the sum falls by constant factors,
possibly times powers of the number of halvings where the integrand has logarithms. For such sequences a few columns of
the table have the limit exactly.

Source: Wynn: MTAC 10 (1956) 91-96; used as by Piessens et al. in QUADPACK, Springer 1983.
"""

from __future__ import annotations

import numpy as np
from numba.extending import register_jitable

from irad.integrate.slots import distance

LONGEST = 30  # sums that are kept; the table loses digits in longer ones
_FEWEST = 5
_CAUTION = 2.0


@register_jitable
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


@register_jitable
def _copy(rows, index, source, other):  # type: ignore[no-untyped-def]
    for j in range(rows.shape[1]):
        rows[index, j] = source[other, j]


@register_jitable
def _push(rows, count, row):  # type: ignore[no-untyped-def]
    """Appends a row; where there is no room, the first one goes."""
    if count == rows.shape[0]:
        for i in range(count - 1):
            _copy(rows, i, rows, i + 1)
        count -= 1
    _copy(rows, count, row, 0)
    return count + 1


@register_jitable
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
    total = _CAUTION * (error + distance(results, 0, results, 1) + distance(results, 0, results, 2))
    return count, total if np.isfinite(total) else np.inf
