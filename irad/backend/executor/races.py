"""Which accesses of a log are not ordered: NumPy on arrays of `layout.ENTRY`.

Two accesses to the same bytes by different threads are a race if one of them is not a read and not both are atomic,
unless something orders them: within a block a barrier, within a warp also a barrier of the warp. Blocks have no order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from irad.backend.executor.dialect import LANES, Kind

_LONGEST_GRAIN: Final = 16


@dataclass(frozen=True, slots=True)
class Race:
    """Two entries of a log, by position."""

    first: int
    second: int


def races(entries: Any, actors: Any, epochs: Any) -> Iterator[Race]:
    """One candidate for every piece of memory and epoch with a race; only warps may still order it.

    Args:
        entries: accesses.
        actors: who does each of them, a number.
        epochs: accesses of different epochs are ordered.
    """
    if not len(entries):
        return
    rows, pieces = _pieces(entries)
    order = np.lexsort((epochs[rows], pieces))
    rows, pieces = rows[order], pieces[order]
    starts = _starts(pieces, epochs[rows])
    ends = np.append(starts[1:], len(rows))
    actor, kind = actors[rows], entries["kind"][rows]
    shared = np.minimum.reduceat(actor, starts) != np.maximum.reduceat(actor, starts)
    kinds = np.bitwise_or.reduceat(kind, starts)
    conflict = shared & (kinds != Kind.READ) & (kinds != Kind.ATOMIC)
    for start, end in zip(starts[conflict], ends[conflict], strict=True):
        yield from _pairs(rows[start:end], actors, entries["kind"])


def _pieces(entries: Any) -> tuple[Any, Any]:
    """Entry and number of each piece of memory that is accessed; pieces are as large as all accesses allow."""
    address, size = entries["address"], entries["size"].astype(np.int64)
    bits = int(np.bitwise_or.reduce(address) | np.bitwise_or.reduce(size)) | _LONGEST_GRAIN
    grain = bits & -bits
    first = address // grain
    counts = (address + size - 1) // grain - first + 1
    rows = np.repeat(np.arange(len(entries)), counts)
    offsets = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    return rows, first[rows] + offsets


def _starts(pieces: Any, epochs: Any) -> Any:
    """Where a new piece or epoch begins."""
    new = (pieces[1:] != pieces[:-1]) | (epochs[1:] != epochs[:-1])
    return np.append(0, np.flatnonzero(new) + 1)


def _pairs(rows: Any, actors: Any, kinds: Any) -> Iterator[Race]:
    """The conflicting pairs among accesses to one piece of memory."""
    distinct = {(actors[row], kinds[row], row): None for row in rows}
    listed = list(distinct)
    for number, (actor, kind, row) in enumerate(listed):
        for other_actor, other_kind, other in listed[:number]:
            if actor != other_actor and not kind == other_kind != Kind.WRITE:
                yield Race(min(int(row), int(other)), max(int(row), int(other)))


class WarpOrder:
    """What barriers of warps order: a vector clock for each thread and each number of barriers that it has passed."""

    def __init__(self, lanes: Any, firsts: Any) -> None:
        """Follows the barriers in the order in which they happened.

        Args:
            lanes: of each, the mask of those that met.
            firsts: the number of the warp's first thread, a multiple of 32.
        """
        self._known: dict[int, list[Any]] = {}
        for mask, first in zip(lanes.tolist(), firsts.tolist(), strict=True):
            self._join([first + lane for lane in range(LANES) if mask >> lane & 1])

    def _clocks(self, thread: int) -> list[Any]:
        return self._known.setdefault(thread, [np.zeros(LANES, np.int64)])

    def _join(self, threads: list[int]) -> None:
        joined = np.maximum.reduce([self._clocks(thread)[-1] for thread in threads])
        for thread in threads:
            joined[thread % LANES] = len(self._clocks(thread))
        for thread in threads:
            self._known[thread].append(joined)

    def is_ordered(self, one: tuple[int, int], other: tuple[int, int]) -> bool:
        """Whether one of two accesses is known to have ended before the other began.

        Args:
            one, other: the number of the thread, and how many barriers it had passed.
        """
        if one[0] // LANES != other[0] // LANES:
            return False
        return self._precedes(one, other) or self._precedes(other, one)

    def _precedes(self, one: tuple[int, int], other: tuple[int, int]) -> bool:
        known = self._clocks(other[0])[other[1]]
        return bool(known[one[0] % LANES] > one[1])
