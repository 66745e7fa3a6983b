"""The log of a launch: looked through for races inside of blocks as they run, at the end for races between blocks."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from irad.backend.executor.dialect import LANES, Kind
from irad.backend.executor.launch import Extent, LaunchState
from irad.backend.executor.layout import ENTRY, dtype_of
from irad.backend.executor.rewriting.sites import Site, placed
from irad.errors import IradError, KernelBoundsError, RaceError
from irad.records import dataclass

# Which accesses of a log are not ordered: NumPy on arrays of `layout.ENTRY`.
#
# Two accesses to the same bytes by different threads are a race if one of them is not a read and not both are atomic,
# unless something orders them: within a block a barrier, within a warp also a barrier of the warp. Blocks have no
# order.

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
        actors: number of the thread that does each of them.
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
    """True where a new piece or epoch begins."""
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
    """Order that barriers of warps impose: a vector clock for each thread and each number of barriers it has passed."""

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
        """True if one of two accesses is known to have ended before the other began.

        Args:
            one, other: the number of the thread, and how many barriers it had passed.
        """
        if one[0] // LANES != other[0] // LANES:
            return False
        return self._precedes(one, other) or self._precedes(other, one)

    def _precedes(self, one: tuple[int, int], other: tuple[int, int]) -> bool:
        known = self._clocks(other[0])[other[1]]
        return bool(known[one[0] % LANES] > one[1])


_ROOM: Final = 1 << 12
_MOST_THREADS: Final = 1024  # of a block


@dataclass(frozen=True, slots=True)
class Counts:
    """Numbers of accesses to global and to shared memory."""

    global_reads: int
    global_writes: int
    global_atomics: int
    shared_reads: int
    shared_writes: int
    shared_atomics: int


class Trace:
    """The log."""

    def __init__(self, state: LaunchState, extents: Sequence[Extent] | None, name: str) -> None:
        self._state, self._extents, self._name = state, extents or (), name
        self._kept: list[Any] = []
        self._blocks: list[Any] = []
        self._counts = np.zeros((2, 3), np.int64)
        state.keep_trace(_ROOM, ENTRY.size, extents)

    def look_through(self) -> None:
        """Looks for races inside of the blocks that the log has, and empties it.

        Raises:
            RaceError: two threads of a block race.
        """
        entries = self._entries()
        begins = entries["kind"] == Kind.BLOCK
        ordinals = np.cumsum(begins) - 1
        blocks = entries["address"][begins][ordinals]
        threads = entries["thread"] + _MOST_THREADS * ordinals
        meetings = entries["kind"] == Kind.WARP_SYNC
        order = WarpOrder(entries["address"][meetings], threads[meetings])
        is_access = entries["kind"] < Kind.WARP_SYNC
        accesses, actors, blocks = entries[is_access], threads[is_access], blocks[is_access]
        for race in races(accesses, actors, accesses["epoch"]):
            pair = race.first, race.second
            first, second = ((int(actors[row]), int(accesses["clock"][row])) for row in pair)
            if not order.is_ordered(first, second):
                raise self._race(accesses, blocks, race)
        self._keep(accesses, blocks)
        self._state.launch.traced = 0

    def end(self) -> Counts:
        """Looks for races between blocks.

        Raises:
            RaceError: two blocks race.
        """
        entries, blocks = np.concatenate(self._kept), np.concatenate(self._blocks)
        for race in races(entries, blocks, np.zeros(len(entries), np.int32)):
            raise self._race(entries, blocks, race)
        return Counts(*map(int, self._counts.ravel()))

    def fault(self) -> IradError:
        """The error for the first access outside of all arrays."""
        entry = self._entries()[self._state.launch.fault]
        site = self._state.lowered.sites[int(entry["site"])]
        thread = self._state.thread_at(int(entry["thread"]))
        error = KernelBoundsError(
            f"{self._name} accesses memory {self._outside(site, int(entry['address']))}",
            "correct the index, or compare it with the size of the array first",
            "the grid may have more threads than the array has elements" if site.array is None else None,
            location=site.location,
            detail=f"{site.words} of {entry['size']} bytes by thread {thread} of block {self._state.current_block}",
        )
        return placed(error, site)

    def _entries(self) -> Any:
        launch = self._state.launch
        buffer = (ctypes.c_char * (launch.traced * ENTRY.size)).from_address(launch.trace)
        return np.frombuffer(buffer, dtype_of(ENTRY))

    def _keep(self, accesses: Any, blocks: Any) -> None:
        """Keeps what other blocks can race with: of each block an access of each kind to each piece of memory."""
        launch = self._state.launch
        is_shared = (accesses["address"] - launch.shared).view(np.uint64) < launch.shared_bytes
        for row, chosen in enumerate((~is_shared, is_shared)):
            kinds = np.bincount(accesses["kind"][chosen], minlength=Kind.ATOMIC + 1)
            self._counts[row] += kinds[[Kind.READ, Kind.WRITE, Kind.ATOMIC]]
        rows = np.flatnonzero(~is_shared)
        order = rows[np.lexsort([blocks[rows], *(accesses[name][rows] for name in ("kind", "size", "address"))])]
        ranked, owners = accesses[order], blocks[order]
        same = owners[1:] == owners[:-1]
        for name in ("kind", "size", "address"):
            same &= ranked[name][1:] == ranked[name][:-1]
        first = np.append(True, ~same)[: len(order)]
        self._kept.append(ranked[first])
        self._blocks.append(owners[first])

    def _race(self, entries: Any, owners: Any, race: Race) -> IradError:
        state, (first, second) = self._state, entries[[race.first, race.second]]
        blocks = state.block_at(int(owners[race.first])), state.block_at(int(owners[race.second]))
        sites = [state.lowered.sites[int(entry["site"])] for entry in (first, second)]
        threads = [state.thread_at(int(entry["thread"])) for entry in (first, second)]
        inside = blocks[0] == blocks[1]
        address = max(int(first["address"]), int(second["address"]))
        error = RaceError(
            f"{self._name} has a race on {self._place(address)}",
            "(a) put cuda.syncthreads() between the two or (b) use an atomic operation"
            if inside
            else "(a) use an atomic operation or (b) make each block write to its own elements",
            "both threads are in the same block, with no barrier between"
            if inside
            else "blocks run in an arbitrary order",
            threads=(threads[0], threads[1]),
            blocks=blocks,
            locations=(sites[0].location, sites[1].location),
            address=address,
            detail="\n".join(
                f"{site} by thread {thread} of block {block}"
                for site, thread, block in zip(sites, threads, blocks, strict=True)
            ),
        )
        return placed(error, sites[0])

    def _place(self, address: int) -> str:
        """An address in the user's words."""
        launch = self._state.launch
        offset = address - launch.shared
        if 0 <= offset < launch.shared_bytes:
            return self._state.lowered.shared.words_at(offset)
        for extent in self._extents:
            if extent.address <= address < extent.address + extent.size:
                return f"element {(address - extent.address) // extent.itemsize} of {extent.name or 'an array'}"
        return f"address 0x{address:x}"

    def _outside(self, site: Site, address: int) -> str:
        """Description of memory outside all arrays."""
        array, launch = site.array, self._state.launch
        if array is None or launch.fault_bytes < 0:
            return f"that is in none of its arrays{self._nearest(address)}"
        count = launch.fault_bytes // array.itemsize if array.count is None else array.count
        return f"outside of an array: {array.element(address - launch.fault_low)}, which has {count}"

    def _nearest(self, address: int) -> str:
        """Distance of an address from its array, if the launch knows that, or else from the nearest one."""
        if not self._extents:
            return ""
        low = self._state.launch.fault_low
        own = [e for e in self._extents if low and (low == e.address or 0 <= low - e.address < e.size)]
        around = own or self._extents
        distances = [max(e.address - address, address - (e.address + e.size) + 1) for e in around]
        nearest = around[int(np.argmin(distances))]
        bytes_away = (address - nearest.address) // nearest.itemsize
        return f": element {bytes_away} of {nearest.name or 'an array'}, which has {nearest.size // nearest.itemsize}"
