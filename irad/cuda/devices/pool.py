"""Buffers of a device that are reused: a step of an optimisation gets the buffers of the previous one."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import RLock
from typing import Any, Final

from irad.errors import BackendError

ALIGNMENT: Final = 256
"""Of every buffer, in bytes."""


@dataclass(frozen=True, slots=True)
class Buffer:
    """Memory of a device; it is freed with the last reference.

    Attributes:
        address: of the first byte, a multiple of `ALIGNMENT`.
        size: in bytes.
        owner: keeps the memory alive.
    """

    address: int
    size: int
    owner: Any


class Pool:
    """Buffers that are free, by size and stream.

    A buffer goes back to the stream that it was used on: what is asked for there later happens after its last use.

    While a stream is captured in a CUDA graph, nothing is allocated. Buffers that are used there belong to the graph,
    which may run at any time later: they are used again within the capture only, and are never freed.

    Args:
        allocate: gets memory of a device, of a size in bytes.
        capture_of: the number of the capture that a stream is in, or 0; None where there are no graphs.

    Attributes:
        allocations: number of buffers allocated so far.
        allocated: bytes of these.
        can_be_captured: whether the device has graphs.
        status: a word in which launches in graphs note that they failed; None until one is prepared.
    """

    def __init__(self, allocate: Callable[[int], Buffer], capture_of: Callable[[int], int] | None = None) -> None:
        self.allocations = 0
        self.allocated = 0
        self._allocate_fresh = allocate
        self.status: Buffer | None = None
        self.can_be_captured = capture_of is not None
        self._capture_of = capture_of or (lambda stream: 0)
        self._free: dict[tuple[int, int, int], list[Buffer]] = defaultdict(list)
        self._tapes: dict[tuple[int, int], Buffer] = {}
        self._captured: dict[int, tuple[Buffer, int]] = {}
        self._spare: dict[tuple[int, int], int] = defaultdict(int)  # for buffers that are left, by size and stream
        self._lock = RLock()  # what is dropped while it is held may give a buffer back

    def take(self, size: int, stream: int) -> Buffer:
        """A buffer of at least this size."""
        rounded, capture = _rounded(size), self._capture_of(stream)
        with self._lock:
            for owner in sorted({0, capture}, reverse=True):
                if free := self._free[rounded, stream, owner]:
                    return self._taken(free.pop(), capture)
        return self._allocate(rounded, capture)

    def _taken(self, buffer: Buffer, capture: int) -> Buffer:
        if capture:
            self._captured[buffer.address] = buffer, capture
        return buffer

    def give(self, buffer: Buffer, stream: int) -> None:
        """Takes a buffer back."""
        with self._lock:
            _, owner = self._captured.get(buffer.address, (None, 0))
            self._free[buffer.size, stream, owner].append(buffer)

    def leave(self, buffers: Sequence[Buffer], stream: int) -> list[Lease]:
        """Lends buffers to the user's arrays; each comes back when its array is dropped.

        The first time as many are allocated: a loop that still holds the results of a step while the next one runs
        needs them twice, and the second step shall allocate nothing.
        """
        for size, count in Counter(buffer.size for buffer in buffers).items():
            with self._lock:
                missing = 0 if self._capture_of(stream) else max(count - self._spare[size, stream], 0)
                self._spare[size, stream] += missing
            for _ in range(missing):
                self.give(self._allocate(size, 0), stream)
        return [Lease(self, buffer, stream) for buffer in buffers]

    @contextmanager
    def lent(self, size: int, stream: int) -> Iterator[Buffer]:
        """A buffer for the time of a block."""
        buffer = self.take(size, stream)
        try:
            yield buffer
        finally:
            self.give(buffer, stream)

    def tape(self, size: int, stream: int) -> Buffer:
        """The tape of a stream, which all kernels that run there use one after the other; at least of this size."""
        capture = self._capture_of(stream)
        found = self._tapes.get((stream, capture))
        if found is not None and found.size >= size:
            return found
        if capture:
            with self._lock:
                known = self._tapes.get((stream, 0))
                if known is None or known.size < size:
                    raise _nothing_prepared()
                found = self._taken(self._tapes.pop((stream, 0)), capture)
        else:
            found = self._allocate(_rounded(size), 0)
        self._tapes[stream, capture] = found
        return found

    def trim(self) -> None:
        """Releases free buffers."""
        with self._lock:
            self._free.clear()
            self._spare.clear()
            self._tapes.clear()

    def _allocate(self, size: int, capture: int) -> Buffer:
        if capture:
            raise _nothing_prepared()
        with self._lock:
            self.allocations += 1
            self.allocated += size
        return self._allocate_fresh(size)


class Lease:
    """Stands for a buffer that was left with the user."""

    def __init__(self, pool: Pool, buffer: Buffer, stream: int) -> None:
        self._pool, self._buffer, self._stream = pool, buffer, stream

    def __del__(self) -> None:
        self._pool.give(self._buffer, self._stream)


def _nothing_prepared() -> BackendError:
    return BackendError(
        "a step that is captured in a CUDA graph needs more memory than earlier steps have left in the pool",
        "run the step once on the same stream, release its tape (tape.reset()), then capture it; and again before "
        "another capture",
        "memory cannot be allocated during a capture, and the memory of a graph is reserved for it",
    )


def _rounded(size: int) -> int:
    """Sizes for which buffers are kept: an eighth is wasted at most."""
    size = max(size, 1)
    step = max(ALIGNMENT, 1 << max(size.bit_length() - 4, 0))
    return -(-size // step) * step
