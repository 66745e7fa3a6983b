"""The executor as a device: its memory is that of NumPy's arrays."""

from __future__ import annotations

import ctypes
import zlib
from collections.abc import Sequence
from typing import Any

import numba
import numpy as np

from irad.backend.cuda.kernel import KernelModule
from irad.backend.executor.kernel import load
from irad.backend.executor.launch import Extent
from irad.backend.executor.scheduler import IN_ORDER, Schedule
from irad.cuda.devices.device import ArrayView, Launch, numpy_view
from irad.cuda.devices.pool import ALIGNMENT, Buffer, Pool
from irad.cuda.devices.standins import DeviceArray


class EmulatedDevice:
    """Runs kernels on the CPU.

    Args:
        schedule: the order of threads and blocks.
        races: whether accesses that are not ordered, and those outside of the arrays that were passed, are errors.
        gpu: the architecture whose limits count, as ``sm_90``; None for those that no GPU exceeds.

    Attributes:
        pool: buffers of tapes and copies; ``pool.allocations`` counts them.
        launches: number of kernels that ran.
    """

    def __init__(self, schedule: Schedule = IN_ORDER, *, races: bool = False, gpu: str | None = None) -> None:
        self.schedule, self.races, self.gpu = schedule, races, gpu
        self.pool = Pool(_allocate)
        self.launches = 0

    def __repr__(self) -> str:
        return f"irad.cuda.executor(schedule={self.schedule}, races={self.races})"

    def view(self, value: Any) -> ArrayView | None:
        """NumPy arrays, and numbers in memory of their own such as records."""
        return numpy_view(value) if isinstance(value, np.ndarray | np.void) else None

    def array(self, view: ArrayView, keeps: Any = None) -> Any:
        """A stand-in for Numba's arrays of the device."""
        return np.asarray(_Memory(view, keeps)).view(DeviceArray)

    def checksum(self, low: int, high: int) -> int | None:
        """Checksum of the bytes."""
        return zlib.crc32((ctypes.c_char * (high - low)).from_address(low))

    def synchronize(self) -> None:
        """Nothing is outstanding."""

    def type_of(self, value: Any) -> Any:
        """Numba's type of an array."""
        return numba.typeof(value)

    def capture(self, stream: int) -> int:
        """Nothing is captured."""
        return 0

    def load(self, module: KernelModule) -> None:
        """It is compiled when it is launched."""

    def copy(self, to: int, source: int, size: int, stream: int) -> None:
        """Works at once: there are no streams."""
        ctypes.memmove(to, source, size)

    def clear(self, to: int, size: int, stream: int) -> None:
        """Works at once: there are no streams."""
        ctypes.memset(to, 0, size)

    def upload(self, to: int, data: bytes, stream: int) -> None:
        """Works at once: there are no streams."""
        ctypes.memmove(to, data, len(data))

    def download(self, source: int, size: int, stream: int) -> bytes:
        """Works at once: there are no streams."""
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
            extents=memory,
            gpu=self.gpu,
        )


class _Memory:
    """Memory with NumPy's array interface; the arrays keep it alive, and the objects that it keeps."""

    def __init__(self, view: ArrayView, keeps: Any) -> None:
        self.keeps = view, keeps
        self.__array_interface__ = view.__cuda_array_interface__


def _allocate(size: int) -> Buffer:
    """Memory of a NumPy array."""
    memory = np.empty(size + ALIGNMENT, np.uint8)
    return Buffer(-(-memory.ctypes.data // ALIGNMENT) * ALIGNMENT, size, memory)
