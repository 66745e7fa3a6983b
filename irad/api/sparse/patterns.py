"""The pattern of a Jacobian: which results depend on each number of the argument.

A *marking* runs the function and says what some groups of columns reach. Groups are halved, and each half is marked
again, together with all halves of other groups that no row may have in common with it. A band matrix takes a run or
few for each of log2(n) halvings. A full row would take one for every few columns; as soon as a row is seen to reach
most groups, it is taken to be full.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

import numpy as np

from irad.api.sparse.colouring import colours_of
from irad.passes.mode import SET_SIZE

Products: TypeAlias = Callable[[Any], Any]
"""From vectors, as the rows of an array, to products."""

Marking: TypeAlias = Callable[[Any], Any]
"""From sets of columns, as the rows of an array of bools, to the rows that they reach."""

_TOGETHER: Final = 32  # vectors that lie in memory at a time
_SEED: Final = 20261123
_ENOUGH: Final = 1024  # groups to tell from how full a row is
_FULL: Final = 16  # rows that may be taken to be full


def blocks_of(colours: Any) -> Iterator[tuple[int, int]]:
    """All colours, a few at a time, as half-open ranges; one block if there are none."""
    count = int(colours.max(initial=-1)) + 1
    return ((first, min(first + _TOGETHER, count)) for first in range(0, max(count, 1), _TOGETHER))


def by_dependence(sets: Products, dtype: Any) -> Marking:
    """Marks columns by bits that go wherever a number depends on them, in one run for `SET_SIZE` groups.

    Args:
        sets: products of the kind "sets".
        dtype: of the argument.
    """

    def reached(groups: Any) -> Any:
        firsts = range(0, max(len(groups), 1), SET_SIZE)  # a run without groups has the right shape as well
        return np.vstack([_reached(sets, dtype, groups[first : first + SET_SIZE]) for first in firsts])

    return reached


def _reached(sets: Products, dtype: Any, groups: Any) -> Any:
    bits = np.arange(len(groups), dtype=np.uint64)[:, np.newaxis]
    given = (groups.astype(np.uint64) << bits).sum(axis=0, dtype=np.uint64)
    found = sets(given.astype(f"u{dtype.itemsize}").view(dtype)[np.newaxis])
    return (found.view(f"u{found.dtype.itemsize}").astype(np.uint64) >> bits) & np.uint64(1) != 0


def by_probing(products: Products, columns: int, *, has_nan: bool) -> Marking:
    """Marks columns by tangents or cotangents that are NaN, and so are those of all that they reach.

    Args:
        products: with the Jacobian, or with its transpose.
        columns: number of columns.
        has_nan: otherwise the code assumes that there is no NaN, and random numbers have to do.
    """
    mark = np.nan if has_nan else np.random.default_rng(_SEED).uniform(1.0, 2.0, columns)

    def reached(groups: Any) -> Any:
        return products(np.where(groups, mark, 0.0)) != 0.0  # so is NaN

    return reached


def found_pattern(reached: Marking, columns: int) -> Any:
    """The pattern.

    Args:
        reached: finds what sets of columns reach.
        columns: number of columns.

    Returns:
        A matrix of SciPy's in the format CSC, with True wherever a result depends on an argument.
    """
    from scipy import sparse  # an optional dependency

    starts = np.arange(min(columns, 1))  # where each group of columns begins
    rows = reached(np.zeros((1, columns), bool)).shape[1]
    pattern, full = sparse.csc_array(np.ones((rows, starts.size), bool)), np.zeros(rows, bool)
    while True:
        pattern = _confirmed(reached, pattern, colours_of(pattern), np.append(starts, columns))
        ends = np.append(starts[1:], columns)
        halves = np.unique(np.concatenate([starts, (starts + ends) // 2]))
        if halves.size == starts.size:
            return _with_rows(pattern, full)
        wide = full | (np.diff(pattern.tocsr().indptr) > starts.size // 2)
        if starts.size >= _ENOUGH and wide.sum() <= _FULL:
            pattern, full = _without_rows(pattern, wide), wide
        parents = np.searchsorted(starts, halves, side="right") - 1
        pattern, starts = pattern[:, parents], halves


def _without_rows(pattern: Any, without: Any) -> Any:
    from scipy import sparse  # an optional dependency

    entries = pattern.tocoo()
    kept = ~without[entries.row]
    return sparse.csc_array((entries.data[kept], (entries.row[kept], entries.col[kept])), shape=pattern.shape)


def _with_rows(pattern: Any, full: Any) -> Any:
    from scipy import sparse  # an optional dependency

    if not full.any():
        return pattern
    rows = np.repeat(np.flatnonzero(full), pattern.shape[1])
    columns = np.tile(np.arange(pattern.shape[1]), int(full.sum()))
    whole = sparse.csc_array((np.ones(rows.size, bool), (rows, columns)), shape=pattern.shape)
    return (pattern + whole).tocsc()


def _confirmed(reached: Marking, candidates: Any, colours: Any, bounds: Any) -> Any:
    """The rows that depend on each group, out of those that may."""
    from scipy import sparse  # an optional dependency

    groups = np.repeat(np.arange(colours.size), np.diff(bounds))
    entries = candidates.tocoo()
    found = np.zeros(entries.nnz, bool)
    for first, last in blocks_of(colours):
        marked = reached(colours[groups] == np.arange(first, last)[:, np.newaxis])
        mine = (first <= colours[entries.col]) & (colours[entries.col] < last)
        found[mine] = marked[colours[entries.col[mine]] - first, entries.row[mine]]
    kept = (np.ones(int(found.sum()), bool), (entries.row[found], entries.col[found]))
    return sparse.csc_array(kept, shape=candidates.shape)
