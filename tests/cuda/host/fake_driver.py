"""A stand-in for NVIDIA's driver, with the memory of the host, which runs kernels on the executor."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from irad.backend.cuda.kernel import KernelModule
from irad.backend.executor.kernel import load
from irad.ir.types import DOUBLE, FLOAT, PTR

_TYPES = {PTR: ctypes.c_uint64, DOUBLE: ctypes.c_double, FLOAT: ctypes.c_float}


_ILLEGAL_IN_A_CAPTURE = {
    *("cuMemAlloc_v2", "cuMemFree_v2", "cuStreamSynchronize", "cuCtxSynchronize", "cuModuleLoadData"),
    *("cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2"),
}


class FakeLibrary:
    """Has the functions of the driver that irad calls.

    Attributes:
        loaded: the kernel that the next call of cuModuleGetFunction is about.
        calls: names of functions, in order.
        streams: handles that were used.
        memory: buffers that were allocated and not freed.
        copied: addresses between which bytes were copied, to and from.
        capturing: the stream that is captured; what is asked for on it is not done, but noted in ``graph``.
    """

    def __init__(self) -> None:
        self.loaded: KernelModule | None = None
        self.kernels: list[KernelModule] = []
        self.calls: list[str] = []
        self.streams: set[int | None] = set()
        self.memory: dict[int, Any] = {}
        self.fails: str | None = None
        self.capturing: int | None = None
        self.captures = 0
        self.graph: list[Callable[[], None]] = []
        self.copied: list[tuple[int, int]] = []

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("cu"):
            raise AttributeError(name)

        def call(*arguments: Any) -> int:
            self.calls.append(name)
            if name == self.fails:
                return 700
            if self.capturing is not None and name in _ILLEGAL_IN_A_CAPTURE:
                return 900
            getattr(self, f"do_{name}", lambda *_: None)(*arguments)
            return 0

        return call

    def do_cuDeviceGetAttribute(self, found: Any, number: int, device: Any) -> None:
        found._obj.value = {75: 8, 76: 0}[number]

    def do_cuDevicePrimaryCtxRetain(self, context: Any, device: Any) -> None:
        context._obj.value = 4096

    def do_cuGetErrorString(self, status: int, text: Any) -> None:
        text._obj.value = b"an illegal memory access was encountered"

    def do_cuMemAlloc_v2(self, address: Any, size: Any) -> None:
        memory = ctypes.create_string_buffer(size.value + 256)
        address._obj.value = -(-ctypes.addressof(memory) // 256) * 256
        self.memory[address._obj.value] = memory

    def do_cuMemFree_v2(self, address: Any) -> None:
        del self.memory[address.value]

    # --- captures -----------------------------------------------------------------------------------------------------

    def begin_capture(self, stream: int) -> None:
        """What is asked for on the stream becomes a graph."""
        self.capturing, self.graph = stream, []
        self.captures += 1

    def end_capture(self) -> Callable[[], None]:
        """The graph."""
        self.capturing, graph = None, self.graph
        return lambda: [do() for do in graph] and None

    def do_cuStreamGetCaptureInfo_v2(self, stream: Any, status: Any, number: Any, *_: Any) -> None:
        status._obj.value = self.capturing == stream.value
        number._obj.value = self.captures

    def on_stream(self, stream: Any, do: Callable[[], None]) -> None:
        """Does something, or notes it."""
        self.streams.add(stream.value)
        if self.capturing is None:
            do()
        else:
            assert stream.value == self.capturing
            self.graph.append(do)

    def do_cuMemcpyAsync(self, to: Any, source: Any, size: Any, stream: Any) -> None:
        self.copied.append((to.value, source.value))
        self.on_stream(stream, lambda: ctypes.memmove(to.value, source.value, size.value))

    def do_cuMemsetD8Async(self, to: Any, value: Any, size: Any, stream: Any) -> None:
        self.on_stream(stream, lambda: ctypes.memset(to.value, value.value, size.value))

    def do_cuMemcpyHtoDAsync_v2(self, to: Any, data: bytes, size: Any, stream: Any) -> None:
        ctypes.memmove(to.value, data, size.value)

    def do_cuMemcpyDtoHAsync_v2(self, data: Any, source: Any, size: Any, stream: Any) -> None:
        ctypes.memmove(data, source.value, size.value)

    def do_cuModuleGetFunction(self, function: Any, module: Any, name: bytes) -> None:
        assert self.loaded is not None
        self.kernels.append(self.loaded)
        function._obj.value = len(self.kernels)

    def do_cuLaunchKernel(self, function: Any, *rest: Any) -> None:
        *sizes, stream, places, _ = rest
        kernel = load(self.kernels[function.value - 1])
        grid, block, shared = sizes[:3], sizes[3:6], sizes[6]
        given = [
            _TYPES.get(type_, ctypes.c_int64 if str(type_) == "i64" else ctypes.c_int32).from_address(place).value
            for type_, place in zip(kernel.parameter_types, places, strict=True)
        ]
        extents = [tuple(each.value for each in group) for group in (grid, block)]
        dynamic = shared.value
        self.on_stream(stream, lambda: kernel.run(*extents, given, dynamic_shared=dynamic))
