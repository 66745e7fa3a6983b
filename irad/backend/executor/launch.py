"""The memory of one launch: the records that the scheduler reads, shared memory, frames."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any, Final

import numpy as np

from irad.backend.executor.layout import THREAD, Launch, dtype_of
from irad.backend.executor.rewriting.lower import Lowered
from irad.backend.executor.scheduler import Schedule, scheduler
from irad.records import dataclass

_ALIGNMENT: Final = 256
_AT_ONCE: Final = 1 << 18  # threads
_LOGGED: Final = 1 << 13
_SCRATCH: Final = 1 << 16
_LIBC: Final = ctypes.CDLL(None)
_LIBC.malloc.restype, _LIBC.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
_LIBC.free.restype, _LIBC.free.argtypes = None, [ctypes.c_void_p]


@dataclass(frozen=True, slots=True)
class Extent:
    """An array that a kernel may touch.

    Attributes:
        address, size: where it is, in bytes.
        name: for messages.
        itemsize: bytes of an element.
    """

    address: int
    size: int
    name: str = ""
    itemsize: int = 1


class LaunchState:
    """Memory and threads of a launch; a context manager that frees them.

    Attributes:
        lowered: the kernel.
        launch: the struct that the scheduler reads.
        threads: the records of the threads of a block, a structured array.
        blocks: the numbers of the blocks, in the order in which they run.
        grid, block: the sizes.
    """

    def __init__(
        self,
        lowered: Lowered,
        start: int,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        arguments: Any,
        dynamic_shared: int,
    ) -> None:
        self.lowered, self.grid, self.block, self.launch = lowered, grid, block, Launch()
        self._arguments = arguments
        count = block[0] * block[1] * block[2]
        self.threads: Any = np.zeros(count, dtype_of(THREAD))
        indices = np.arange(count)
        self.threads["index"] = indices
        for axis, along in enumerate(_along(indices, block)):
            self.threads[f"tid_{'xyz'[axis]}"] = along
        self.threads["launch"] = self.address
        self._shared, shared = _aligned(lowered.shared.static_bytes + dynamic_shared)
        launch = self.launch
        launch.ntid_x, launch.ntid_y, launch.ntid_z = block
        launch.nctaid_x, launch.nctaid_y, launch.nctaid_z = grid
        launch.dynamic_bytes, launch.arguments = dynamic_shared, ctypes.addressof(arguments)
        launch.shared, launch.shared_bytes = shared, lowered.shared.static_bytes + dynamic_shared
        launch.threads, launch.count, launch.start = self.threads.ctypes.data, count, start
        launch.take_frame, launch.log_access = scheduler().take_frame, scheduler().log_access
        launch.mixed_thread = launch.fault = -1

    def __enter__(self) -> LaunchState:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        _LIBC.free(self.launch.pool)
        _LIBC.free(self.launch.trace)

    @property
    def address(self) -> int:
        """Address of the struct."""
        return ctypes.addressof(self.launch)

    def order(self, schedule: Schedule) -> None:
        """Sets the order of threads and blocks."""
        self._orders = schedule.of_threads(len(self.threads))
        self.launch.orders, self.launch.rounds = self._orders.ctypes.data, len(self._orders)
        self.blocks: Any = schedule.of_blocks(self.grid[0] * self.grid[1] * self.grid[2])
        self.launch.blocks = self.blocks.ctypes.data

    def portions(self, *, logged: bool) -> Iterator[tuple[int, int]]:
        """First and last position of the blocks to run at once, few enough that Python can be interrupted.

        Args:
            logged: whether the log has to be looked through in between.
        """
        total, step = len(self.blocks), max(1, (_LOGGED if logged else _AT_ONCE) // len(self.threads))
        yield from ((first, min(first + step, total)) for first in range(0, total, step))

    def keep_trace(self, room: int, entry_bytes: int, extents: Sequence[Extent] | None) -> None:
        """Has accesses logged.

        Args:
            room: for how many entries at first.
            entry_bytes: entry bytes of one.
            extents: the memory that the kernel may touch; None if that is not known.

        Raises:
            MemoryError: there is no memory for the log.
        """
        self.launch.trace = _LIBC.malloc(room * entry_bytes)
        if not self.launch.trace:
            raise MemoryError
        self.launch.room = room
        # An access outside of all arrays goes there, so that the process lives to report it.
        self._scratch, self.launch.scratch = _aligned(_SCRATCH)
        self.launch.scratch_bytes = _SCRATCH
        if extents is not None:
            ranges = [(each.address, each.size) for each in extents]
            self._extents = np.array([*ranges, (0, 0)], np.uint64)
            self.launch.extents, self.launch.extent_count = self._extents.ctypes.data, len(ranges)

    def thread_at(self, index: int) -> tuple[int, int, int]:
        """The thread of a number in its block."""
        x, y, z = _along(index, self.block)
        return int(x), int(y), int(z)

    def block_at(self, number: int) -> tuple[int, int, int]:
        """The block of a number."""
        x, y, z = _along(number, self.grid)
        return int(x), int(y), int(z)

    @property
    def current_block(self) -> tuple[int, int, int]:
        """The block that ran last."""
        return self.launch.ctaid_x, self.launch.ctaid_y, self.launch.ctaid_z


def _along(number: Any, sizes: Sequence[int]) -> tuple[Any, Any, Any]:
    """Coordinates of a number, x fastest."""
    return number % sizes[0], number // sizes[0] % sizes[1], number // (sizes[0] * sizes[1])


def _aligned(size: int) -> tuple[Any, int]:
    """A buffer of zeros, and the address in it where ``size`` aligned bytes begin."""
    buffer = np.zeros(size + _ALIGNMENT, np.uint8)
    return buffer, -(-buffer.ctypes.data // _ALIGNMENT) * _ALIGNMENT
