"""Interface of a device for the host side; `emulated.py` and `gpu.py` answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Protocol

import numpy as np

from irad.backend.cuda.kernel import KernelModule
from irad.backend.executor.launch import Extent
from irad.cuda.devices.pool import Pool

Extent3 = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class ArrayView:
    """An array in the memory of a device.

    Attributes:
        address: address of its first element.
        shape, strides: of its axes, in elements and in bytes.
        dtype: dtype of its elements.
        readonly: whether it must not be written to.
        owner: keeps the memory alive.
    """

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype[Any]
    readonly: bool
    owner: Any

    @property
    def size(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    @property
    def extent(self) -> tuple[int, int]:
        """The addresses that it spans: the first, and the one after the last."""
        if not self.size:
            return self.address, self.address
        reaches = [(length - 1) * stride for length, stride in zip(self.shape, self.strides, strict=True)]
        low = self.address + sum(reach for reach in reaches if reach < 0)
        return low, self.address + sum(reach for reach in reaches if reach > 0) + self.dtype.itemsize

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """So that a view may stand for the array."""
        return {
            "version": 3,
            "shape": self.shape,
            "typestr": self.dtype.str,
            "descr": self.dtype.descr,
            "strides": self.strides,
            "data": (self.address, self.readonly),
        }

    @property
    def relevant_strides(self) -> tuple[int, ...]:
        """Strides along axes of more than one element."""
        if not self.size:
            return ()
        return tuple(stride for length, stride in zip(self.shape, self.strides, strict=True) if length > 1)


def numpy_view(array: np.ndarray[Any, Any] | np.void) -> ArrayView:
    """An array in the memory of the host."""
    found = np.asarray(array)
    address, readonly = found.__array_interface__["data"]
    return ArrayView(address, found.shape, found.strides, found.dtype, readonly, array)


def handle_of(stream: int) -> int:
    """The driver's handle of a stream of Numba, CuPy or anything with the CUDA stream protocol; 0 is the default."""
    if hasattr(stream, "__cuda_stream__"):
        protocol = stream.__cuda_stream__
        return int((protocol() if callable(protocol) else protocol)[1])
    handle = getattr(stream, "handle", getattr(stream, "ptr", stream))
    handle = getattr(handle, "value", handle)
    return int(handle) if handle else 0


@dataclass(frozen=True, slots=True)
class Launch:
    """Blocks, threads and memory with which a kernel is launched.

    Attributes:
        grid: blocks along x, y, z.
        block: threads of a block along x, y, z.
        stream: handle of a stream; 0 is the default stream.
        shared: bytes of dynamic shared memory.
    """

    grid: Extent3
    block: Extent3
    stream: int = 0
    shared: int = 0

    @property
    def axes(self) -> int:
        """Along how many axes, from x on, there is more than one thread or block; at least 1."""
        used = [axis for axis in range(3) if self.grid[axis] > 1 or self.block[axis] > 1]
        return 1 + max(used, default=0)

    @property
    def threads(self) -> int:
        """Number of threads in the grid."""
        return prod(self.grid) * prod(self.block)


class Device(Protocol):
    """Memory and kernels. What is asked for on a stream happens in order; downloads wait for it."""

    @property
    def pool(self) -> Pool:
        """Buffers of the device."""
        ...

    def view(self, value: Any) -> ArrayView | None:
        """The array that a value is, None if it is none that kernels of this device can use."""
        ...

    def type_of(self, value: Any) -> Any:
        """The type that Numba gives a kernel's argument."""
        ...

    def array(self, view: ArrayView, keeps: Any = None) -> Any:
        """The array that a view is of, as host code and kernels take it.

        Args:
            view: of memory of this device.
            keeps: is kept alive by the array, beside the view.
        """
        ...

    def checksum(self, low: int, high: int) -> int | None:
        """A number that tells contents of memory apart, None where that would take long."""
        ...

    def synchronize(self) -> None:
        """Waits until everything is done."""
        ...

    def capture(self, stream: int) -> int:
        """The number of the capture of a CUDA graph that a stream is in, 0 where it is in none."""
        ...

    def load(self, module: KernelModule) -> None:
        """Makes a kernel ready to be launched in a capture."""
        ...

    def copy(self, to: int, source: int, size: int, stream: int) -> None:
        """Copies bytes within the device."""
        ...

    def clear(self, to: int, size: int, stream: int) -> None:
        """Makes bytes zero."""
        ...

    def upload(self, to: int, data: bytes, stream: int) -> None:
        """Copies bytes to the device."""
        ...

    def download(self, source: int, size: int, stream: int) -> bytes:
        """Copies bytes from the device, when all that was asked for before on the stream is done."""
        ...

    def launch(
        self, module: KernelModule, launch: Launch, arguments: Sequence[int | float], memory: Sequence[Extent]
    ) -> None:
        """Runs a kernel.

        Args:
            module: the kernel.
            launch: configuration of the launch.
            arguments: one for each LLVM parameter, addresses as integers.
            memory: all that it may touch.
        """
        ...
