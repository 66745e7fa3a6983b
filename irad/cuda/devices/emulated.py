"""The executor as a device: its memory is that of NumPy's arrays."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numba
import numpy as np

from irad.backend.cuda.kernel import KernelModule
from irad.backend.executor.kernel import load
from irad.backend.executor.launch import Extent
from irad.backend.executor.schedule import IN_ORDER, Schedule
from irad.cuda.devices.device import ArrayView, Launch
from irad.cuda.devices.pool import ALIGNMENT, Buffer, Pool


class EmulatedDevice:
    """Runs kernels on the CPU.

    Args:
        schedule: the order of threads and blocks.
        races: whether accesses that are not ordered, and those outside of the arrays that were passed, are errors.

    Attributes:
        pool: buffers of tapes and copies; ``pool.allocations`` counts them.
        launches: how many kernels ran.
    """

    def __init__(self, schedule: Schedule = IN_ORDER, *, races: bool = False) -> None:
        self.schedule, self.races = schedule, races
        self.pool = Pool(_allocate)
        self.launches = 0

    def __repr__(self) -> str:
        return f"irad.cuda.executor(schedule={self.schedule}, races={self.races})"

    def view(self, value: Any) -> ArrayView | None:
        """NumPy arrays, and numbers in memory of their own such as records."""
        if not isinstance(value, np.ndarray | np.void):
            return None
        array = np.asarray(value)
        address, readonly = array.__array_interface__["data"]
        return ArrayView(address, array.shape, array.strides, array.dtype, readonly, value)

    def type_of(self, value: Any) -> Any:
        """As Numba types it."""
        return numba.typeof(value)

    def copy(self, to: int, source: int, size: int, stream: Any) -> None:
        """At once."""
        ctypes.memmove(to, source, size)

    def clear(self, to: int, size: int, stream: Any) -> None:
        """At once."""
        ctypes.memset(to, 0, size)

    def upload(self, to: int, data: bytes, stream: Any) -> None:
        """At once."""
        ctypes.memmove(to, data, len(data))

    def download(self, source: int, size: int, stream: Any) -> bytes:
        """At once."""
        return ctypes.string_at(source, size)

    def launch(
        self, module: KernelModule, launch: Launch, arguments: Sequence[int | float], memory: Sequence[Extent]
    ) -> None:
        """Runs all threads before it returns."""
        self.launches += 1
        load(module, races=self.races).run(
            launch.grid,
            launch.block,
            arguments,
            dynamic_shared=launch.shared,
            schedule=self.schedule,
            extents=memory if self.races else None,
        )


def _allocate(size: int) -> Buffer:
    """Memory of a NumPy array."""
    memory = np.empty(size + ALIGNMENT, np.uint8)
    return Buffer(-(-memory.ctypes.data // ALIGNMENT) * ALIGNMENT, size, memory)
