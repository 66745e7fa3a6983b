"""Buffers of a device that are used again: what a step of an optimisation has used, the next one gets."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import Any, Final

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

    Args:
        allocate: gets memory of a device, of a size in bytes.

    Attributes:
        allocations: how many buffers were allocated so far.
        allocated: bytes of these.
    """

    def __init__(self, allocate: Callable[[int], Buffer]) -> None:
        self.allocations = 0
        self.allocated = 0
        self._allocate_fresh = allocate
        self._free: dict[tuple[int, int], list[Buffer]] = defaultdict(list)
        self._tapes: dict[int, Buffer] = {}
        self._lock = Lock()

    def take(self, size: int, stream: int) -> Buffer:
        """A buffer of at least this size."""
        rounded = _rounded(size)
        with self._lock:
            if free := self._free[rounded, stream]:
                return free.pop()
        return self._allocate(rounded)

    def give(self, buffer: Buffer, stream: int) -> None:
        """Takes a buffer back."""
        with self._lock:
            self._free[buffer.size, stream].append(buffer)

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
        found = self._tapes.get(stream)
        if found is None or found.size < size:
            found = self._tapes[stream] = self._allocate(_rounded(size))
        return found

    def trim(self) -> None:
        """Lets go of what is free."""
        with self._lock:
            self._free.clear()
            self._tapes.clear()

    def _allocate(self, size: int) -> Buffer:
        with self._lock:
            self.allocations += 1
            self.allocated += size
        return self._allocate_fresh(size)


def _rounded(size: int) -> int:
    """Sizes for which buffers are kept: an eighth is wasted at most."""
    size = max(size, 1)
    step = max(ALIGNMENT, 1 << max(size.bit_length() - 4, 0))
    return -(-size // step) * step
