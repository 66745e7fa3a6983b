"""A GPU as a device: arrays of Numba, of CuPy, and all else that has the CUDA array interface."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, Final

import numba
import numpy as np
from numba import cuda
from numba.core import types
from numba.np import numpy_support

from irad.backend.cuda.kernel import KernelModule
from irad.backend.cuda.limits import Needs, bounds_of_launch, check_launch, needs_of
from irad.backend.cuda.lowering import entry_name
from irad.backend.cuda.ptx import LaunchBounds, compile_ptx
from irad.backend.executor.launch import Extent
from irad.backend.executor.rewriting.sites import readable_name
from irad.cuda.devices.device import ArrayView, Launch
from irad.cuda.devices.driver import Driver, Loaded, current_context, load_library, packed
from irad.cuda.devices.pool import Buffer, Pool
from irad.errors import SignatureError
from irad.ir.text.parser import parse_module
from irad.ir.types import Type


class GpuDevice:
    """Launches kernels through the driver.

    Args:
        driver: driver of the device.
    """

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.pool = Pool(self._allocate, self.capture)
        self._kernels: dict[tuple[KernelModule, int | None], _Kernel] = {}
        self._elsewhere = threading.local()  # streams on which arrays may still be computed

    def view(self, value: Any) -> ArrayView | None:
        """View of a value that has the CUDA array interface."""
        found = getattr(value, "__cuda_array_interface__", None)
        if found is None:
            return None
        dtype = np.dtype([tuple(field) for field in found["descr"]] if _has_fields(found) else found["typestr"])
        shape = tuple(found["shape"])
        address, readonly = found["data"]
        if found.get("stream") is not None:
            self._streams.add(_LEGACY.get(int(found["stream"]), int(found["stream"])))
        if address and self.driver.is_elsewhere(address):
            raise SignatureError(
                f"an array of shape {shape} is in the memory of another GPU",
                "copy it to the current device, or make its device the current one",
                "a kernel, its shadows and its tape are on one device",
            )
        strides = found.get("strides") or _contiguous(shape, dtype.itemsize)
        return ArrayView(address or 0, shape, tuple(strides), dtype, bool(readonly), value)

    @property
    def _streams(self) -> set[int]:
        """Of this thread: those that arrays were found to be computed on since the last operation."""
        if not hasattr(self._elsewhere, "streams"):
            self._elsewhere.streams = set()
        found: set[int] = self._elsewhere.streams
        return found

    def _wait_on(self, stream: int) -> None:
        """Has a stream wait for those that arrays come from, as the CUDA array interface demands.

        A stream that is captured cannot wait for others, nor the others for it: the capture was begun after they were
        ordered.
        """
        others, self._elsewhere.streams = self._streams, set()
        if others - {stream} and not self.driver.capture(stream):
            for other in sorted(others - {stream}):
                self.driver.order(other, stream)

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
        """Compiles a kernel for blocks of a usual size."""
        self._kernel(module, None)

    def copy(self, to: int, source: int, size: int, stream: int) -> None:
        """Between addresses of the device or of the host."""
        self._wait_on(stream)
        self.driver.copy(to, source, size, stream)

    def clear(self, to: int, size: int, stream: int) -> None:
        """Makes bytes zero."""
        self._wait_on(stream)
        self.driver.clear(to, size, stream)

    def upload(self, to: int, data: bytes, stream: int) -> None:
        """Copies to the device."""
        self._wait_on(stream)
        self.driver.upload(to, data, stream)

    def download(self, source: int, size: int, stream: int) -> bytes:
        """Waits, and copies from the device."""
        self._wait_on(stream)
        return self.driver.download(source, size, stream)

    def launch(
        self, module: KernelModule, launch: Launch, arguments: Sequence[int | float], memory: Sequence[Extent]
    ) -> None:
        """Compiles a kernel when it is launched first; does not wait."""
        kernel = self._kernel(module, bounds_of_launch(module, prod(launch.block), self.driver.limits))
        check_launch(kernel.name, self.driver.limits, kernel.needs, launch.grid, launch.block, launch.shared)
        given = [packed(type_, value) for type_, value in zip(kernel.parameters, arguments, strict=True)]
        self._wait_on(launch.stream)
        self.driver.launch(kernel.loaded, (*launch.grid, *launch.block), launch.shared, launch.stream, given)

    def _kernel(self, module: KernelModule, threads: int | None) -> _Kernel:
        """A kernel, compiled for blocks of at most ``threads`` threads."""
        if (module, threads) not in self._kernels:
            ptx = compile_ptx(module, self.driver.architecture, bounds=LaunchBounds(threads))
            loaded = self.driver.load(ptx.encode() + b"\0", entry_name(module.name))
            parsed = parse_module(module.text)
            needs = replace(
                needs_of(parsed, module.name),
                registers=loaded.registers,
                static_shared=loaded.static_shared,
                constant=loaded.constant,
            )
            parameters = tuple(param.type for param in parsed.functions[module.name].params)
            self._kernels[module, threads] = _Kernel(readable_name(module.name), loaded, parameters, needs)
        return self._kernels[module, threads]

    def _allocate(self, size: int) -> Buffer:
        address = self.driver.allocate(size)
        owner = _Owner()
        # At exit the driver frees all memory itself, and may be gone already.
        weakref.finalize(owner, self.driver.free, address).atexit = False
        return Buffer(address, size, owner)


@dataclass(frozen=True, slots=True)
class _Kernel:
    """A kernel that can be launched: its name, the driver's handle, its parameters, its resources."""

    name: str
    loaded: Loaded
    parameters: tuple[Type, ...]
    needs: Needs


class _Memory:
    """Memory with the CUDA array interface; the arrays keep it alive, and the objects that it keeps."""

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


_LEGACY: Final = {1: 0}
"""The default stream has two names."""
_GPUS: Final[dict[int, GpuDevice]] = {}
_LOCK: Final = threading.Lock()


def gpu() -> GpuDevice:
    """The GPU whose context is current: each has kernels, buffers and tapes of its own.

    Raises:
        BackendError: there is none.
    """
    library = load_library()
    context = current_context(library)
    with _LOCK:
        if context not in _GPUS:
            _GPUS[context] = GpuDevice(Driver(library, context))
        return _GPUS[context]
