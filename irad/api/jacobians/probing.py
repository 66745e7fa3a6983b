"""The pattern of a Jacobian by probing: which results a change of each argument reaches.

All tangents of a group of columns are NaN: the results whose tangents are NaN depend on the group. Groups are halved,
and each half is probed again, together with all halves of other groups that no row may have in common with it. A band
matrix takes a few products for each of log2(n) halvings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from irad.api.jacobians.colouring import colours_of

_TOGETHER: Final = 32  # directions that lie in memory at a time


def blocks_of(colours: Any) -> Iterator[tuple[int, int]]:
    """All colours, a few at a time: the first one and that behind the last one; one block where there are none."""
    count = int(colours.max(initial=-1)) + 1
    return ((first, min(first + _TOGETHER, count)) for first in range(0, max(count, 1), _TOGETHER))


def probed_pattern(products: Callable[[Any], Any], columns: int, mark: Any) -> Any:
    """The pattern.

    Args:
        products: from vectors, as the rows of an array, to their products with the Jacobian.
        columns: how many there are.
        mark: the tangents of the columns that are probed, for instance NaN.

    Returns:
        A matrix of SciPy's in the format CSC, with True wherever a result depends on an argument.
    """
    from scipy import sparse  # an optional dependency

    starts = np.arange(min(columns, 1))  # where each group of columns begins
    rows = products(np.zeros((1, columns))).shape[1]
    pattern = sparse.csc_array(np.ones((rows, starts.size), bool))
    while True:
        colours = colours_of(pattern)
        pattern = _confirmed(products, pattern, colours, np.append(starts, columns), mark)
        ends = np.append(starts[1:], columns)
        halves = np.unique(np.concatenate([starts, (starts + ends) // 2]))
        if halves.size == starts.size:
            return pattern
        parents = np.searchsorted(starts, halves, side="right") - 1
        pattern, starts = pattern[:, parents], halves


def _confirmed(products: Callable[[Any], Any], candidates: Any, colours: Any, bounds: Any, mark: Any) -> Any:
    """Of the rows that may depend on each group, those that do."""
    from scipy import sparse  # an optional dependency

    columns, groups = int(bounds[-1]), np.repeat(np.arange(colours.size), np.diff(bounds))
    entries = candidates.tocoo()
    found = np.zeros(entries.nnz, bool)
    for first, last in blocks_of(colours):
        directions = np.where(colours[groups] == np.arange(first, last)[:, np.newaxis], mark, np.zeros(columns))
        marked = products(directions) != 0.0  # so is NaN
        mine = (first <= colours[entries.col]) & (colours[entries.col] < last)
        found[mine] = marked[colours[entries.col[mine]] - first, entries.row[mine]]
    kept = (np.ones(int(found.sum()), bool), (entries.row[found], entries.col[found]))
    return sparse.csc_array(kept, shape=candidates.shape)
