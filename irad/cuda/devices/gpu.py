"""A GPU as a device: arrays of Numba, of CuPy, and all else that has the CUDA array interface."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Sequence
from functools import cache
from typing import Any

import numba
import numpy as np
from numba import cuda
from numba.core import types
from numba.np import numpy_support

from irad.backend.cuda.kernel import KernelModule
from irad.backend.cuda.lowering import entry_name
from irad.backend.cuda.ptx import compile_ptx
from irad.backend.executor.launch import Extent
from irad.cuda.devices.device import ArrayView, Launch
from irad.cuda.devices.driver import Driver, driver, packed
from irad.cuda.devices.pool import Buffer, Pool
from irad.ir.text.parser import parse_module
from irad.ir.types import Type


class GpuDevice:
    """Launches kernels through the driver.

    Args:
        driver: of the device.
    """

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.pool = Pool(self._allocate, self.capture)
        self._kernels: dict[KernelModule, tuple[ctypes.c_void_p, tuple[Type, ...]]] = {}

    def view(self, value: Any) -> ArrayView | None:
        """What has the CUDA array interface."""
        found = getattr(value, "__cuda_array_interface__", None)
        if found is None:
            return None
        dtype = np.dtype([tuple(field) for field in found["descr"]] if _has_fields(found) else found["typestr"])
        shape = tuple(found["shape"])
        address, readonly = found["data"]
        strides = found.get("strides") or _contiguous(shape, dtype.itemsize)
        return ArrayView(address or 0, shape, tuple(strides), dtype, bool(readonly), value)

    def type_of(self, value: Any) -> Any:
        """As Numba types it, arrays by their interface."""
        view = self.view(value)
        if view is None:
            return numba.typeof(value)
        known = getattr(value, "_numba_type_", None)
        return known if known is not None else _array_type(view)

    def array(self, view: ArrayView, keeps: Any = None) -> Any:
        """An array of Numba's."""
        return cuda.as_cuda_array(_Memory(view, keeps), sync=False)

    def checksum(self, low: int, high: int) -> int | None:
        """Would take a copy to the host."""
        return None

    def synchronize(self) -> None:
        """Waits for all streams."""
        self.driver.synchronize()

    def capture(self, stream: int) -> int:
        """As the driver says."""
        return self.driver.capture(stream)

    def load(self, module: KernelModule) -> None:
        """Compiles a kernel."""
        self.driver.enter()
        self._kernel(module)

    def copy(self, to: int, source: int, size: int, stream: int) -> None:
        """Between addresses of the device or of the host."""
        self.driver.copy(to, source, size, stream)

    def clear(self, to: int, size: int, stream: int) -> None:
        """Makes bytes zero."""
        self.driver.clear(to, size, stream)

    def upload(self, to: int, data: bytes, stream: int) -> None:
        """Copies to the device."""
        self.driver.upload(to, data, stream)

    def download(self, source: int, size: int, stream: int) -> bytes:
        """Waits, and copies from the device."""
        return self.driver.download(source, size, stream)

    def launch(
        self, module: KernelModule, launch: Launch, arguments: Sequence[int | float], memory: Sequence[Extent]
    ) -> None:
        """Compiles a kernel when it is launched first; does not wait."""
        self.driver.enter()
        function, parameter_types = self._kernel(module)
        given = [packed(type_, value) for type_, value in zip(parameter_types, arguments, strict=True)]
        self.driver.launch(function, (*launch.grid, *launch.block), launch.shared, launch.stream, given)

    def _kernel(self, module: KernelModule) -> tuple[ctypes.c_void_p, tuple[Type, ...]]:
        if module not in self._kernels:
            image = compile_ptx(module, self.driver.architecture).encode() + b"\0"
            function = self.driver.load(image, entry_name(module.name))
            params = parse_module(module.text).functions[module.name].params
            self._kernels[module] = function, tuple(param.type for param in params)
        return self._kernels[module]

    def _allocate(self, size: int) -> Buffer:
        self.driver.enter()
        address = self.driver.allocate(size)
        owner = _Owner()
        weakref.finalize(owner, self.driver.free, address).atexit = False
        return Buffer(address, size, owner)


class _Memory:
    """Memory with the CUDA array interface; the arrays keep it, and with it what it keeps."""

    def __init__(self, view: ArrayView, keeps: Any) -> None:
        self.keeps = view, keeps
        self.__cuda_array_interface__ = view.__cuda_array_interface__


class _Owner:
    """Stands for memory: when it is dropped, the memory is freed."""

    __slots__ = ("__weakref__",)


def _has_fields(interface: dict[str, Any]) -> bool:
    fields = interface.get("descr") or [("", interface["typestr"])]
    return any(field[0] for field in fields)


def _contiguous(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    strides = [itemsize]
    for length in reversed(shape[1:]):
        strides.append(strides[-1] * length)
    return tuple(reversed(strides)) if shape else ()


def _array_type(view: ArrayView) -> Any:
    """Numba's type of an array."""
    axes = list(zip(view.shape, view.strides, strict=True))
    layout = "A"
    if all(s == c or n <= 1 for (n, s), c in zip(axes, _contiguous(view.shape, view.dtype.itemsize), strict=True)):
        layout = "C"
    elif all(
        s == c or n <= 1
        for (n, s), c in zip(axes, _contiguous(view.shape[::-1], view.dtype.itemsize)[::-1], strict=True)
    ):
        layout = "F"
    element = numpy_support.from_dtype(view.dtype)
    return types.Array(element, len(view.shape), layout, readonly=view.readonly)


@cache
def gpu() -> GpuDevice:
    """The GPU of this machine.

    Raises:
        BackendError: there is none.
    """
    return GpuDevice(driver())
