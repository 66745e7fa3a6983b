"""A stand-in for NVIDIA's driver, with the memory of the host, which runs kernels on the executor."""

from __future__ import annotations

import ctypes
import threading
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from irad.backend.cuda.kernel import KernelModule
from irad.backend.cuda.limits import LIMITS, needs_of
from irad.backend.executor.kernel import load
from irad.ir.text.parser import parse_module
from irad.ir.types import DOUBLE, FLOAT, PTR

_TYPES = {PTR: ctypes.c_uint64, DOUBLE: ctypes.c_double, FLOAT: ctypes.c_float}


_ILLEGAL_IN_A_CAPTURE = {
    *("cuMemAlloc_v2", "cuMemFree_v2", "cuStreamSynchronize", "cuCtxSynchronize", "cuModuleLoadDataEx"),
    *("cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2"),
}
_IN_A_CONTEXT = ("cuMem", "cuLaunch", "cuModule", "cuFunc", "cuStream", "cuEvent", "cuCtxSynchronize")


class FakeLibrary:
    """Has the functions of the driver that irad calls.

    Attributes:
        loaded: the kernel that the next call of cuModuleGetFunction is about.
        calls: names of functions, in order.
        streams: handles that were used.
        memory: buffers that were allocated and not freed.
        copied: addresses between which bytes were copied, to and from.
        capturing: the stream that is captured; what is asked for on it is not done, but noted in ``graph``.
        contexts: each context and its device.
        current: by function, the contexts that were current when it was called.
        ordinals: addresses that the driver knows, and their devices.
        registers: that a thread of each kernel needs.
        dynamic_shared: what was asked for, by function.
        images: PTX that was loaded.
        rejects: what its compiler says, if it rejects PTX.
        waits: streams that wait for others: the other one, and that which waits.
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
        self.contexts = {4096: 0, 8192: 1}
        self.current: dict[str, set[int | None]] = defaultdict(set)
        self.ordinals: dict[int, int] = {}
        self.registers = 32
        self.dynamic_shared: dict[int, int] = {}
        self.images: list[str] = []
        self.rejects = b""
        self.waits: list[tuple[int | None, int | None]] = []
        self._events: dict[int, int | None] = {}
        self._of_thread = threading.local()

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("cu"):
            raise AttributeError(name)

        def call(*arguments: Any) -> int:
            self.calls.append(name)
            if name == self.fails:
                return 700
            if self.capturing is not None and name in _ILLEGAL_IN_A_CAPTURE:
                return 900
            if name.startswith(_IN_A_CONTEXT):
                self.current[name].add(self.stack[-1] if self.stack else None)
            return getattr(self, f"do_{name}", lambda *_: 0)(*arguments) or 0

        return call

    def do_cuDeviceGetAttribute(self, found: Any, number: int, device: Any) -> None:
        assert device in self.contexts.values()
        limits = LIMITS["sm_80"]
        known = {75: 8, 76: 0, 1: limits.threads, 9: limits.constant, 12: limits.registers, 97: limits.shared}
        known |= dict(zip((2, 3, 4, 5, 6, 7), (*limits.block, *limits.grid), strict=True))
        found._obj.value = known[number]

    # --- contexts, of each thread -------------------------------------------------------------------------------------

    @property
    def stack(self) -> list[int]:
        """The contexts of the calling thread, the current one last."""
        if not hasattr(self._of_thread, "stack"):
            self._of_thread.stack = []
        return self._of_thread.stack

    def do_cuDevicePrimaryCtxRetain(self, context: Any, device: Any) -> None:
        context._obj.value = next(each for each, owner in self.contexts.items() if owner == device.value)

    def do_cuCtxGetCurrent(self, context: Any) -> None:
        context._obj.value = self.stack[-1] if self.stack else None

    def do_cuCtxSetCurrent(self, context: Any) -> None:
        self.stack[-1:] = [context.value]

    def do_cuCtxPushCurrent_v2(self, context: Any) -> None:
        self.stack.append(context.value)

    def do_cuCtxPopCurrent_v2(self, context: Any) -> None:
        context._obj.value = self.stack.pop()

    def do_cuCtxGetDevice(self, device: Any) -> None:
        device._obj.value = self.contexts[self.stack[-1]]

    def do_cuPointerGetAttribute(self, found: Any, number: int, address: Any) -> int:
        ordinal = self.ordinals.get(address.value)
        if ordinal is None:
            return 1  # memory of the host
        found._obj.value = {2: 2, 8: 0, 9: ordinal}[number]
        return 0

    # --- kernels ------------------------------------------------------------------------------------------------------

    def do_cuFuncGetAttribute(self, found: Any, number: int, function: Any) -> None:
        kernel = self.kernels[function.value - 1]
        needs = needs_of(parse_module(kernel.text), kernel.name)
        found._obj.value = {1: needs.static_shared, 2: needs.constant, 4: self.registers}[number]

    def do_cuFuncSetAttribute(self, function: Any, number: int, value: int) -> None:
        assert number == 8
        self.dynamic_shared[function.value] = value

    def do_cuModuleLoadDataEx(self, module: Any, image: bytes, count: int, options: Any, values: Any) -> int:
        self.images.append(image.decode())
        if self.rejects:
            assert list(options) == [3, 4, 5, 6]
            ctypes.memmove(values[2], self.rejects, len(self.rejects))
            return 218
        return 0

    def do_cuGetErrorString(self, status: int, text: Any) -> None:
        text._obj.value = b"an illegal memory access was encountered"

    def do_cuMemAlloc_v2(self, address: Any, size: Any) -> None:
        memory = ctypes.create_string_buffer(size.value + 256)
        address._obj.value = -(-ctypes.addressof(memory) // 256) * 256
        self.memory[address._obj.value] = memory

    def do_cuMemFree_v2(self, address: Any) -> None:
        del self.memory[address.value]

    def do_cuEventCreate(self, event: Any, flags: int) -> None:
        event._obj.value = len(self._events) + 1
        self._events[event._obj.value] = None

    def do_cuEventRecord(self, event: Any, stream: Any) -> None:
        self._events[event.value] = stream.value

    def do_cuStreamWaitEvent(self, stream: Any, event: Any, flags: int) -> None:
        self.waits.append((self._events[event.value], stream.value))

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
