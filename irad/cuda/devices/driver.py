"""The functions of NVIDIA's driver that launches need, called through ctypes: nothing but the driver is required."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from irad.backend.cuda.limits import STATIC_SHARED, DeviceLimits
from irad.errors import BackendError
from irad.ir.types import DOUBLE, FLOAT, PTR, Type

_LIBRARY: Final = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
_MAJOR, _MINOR = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_*
_THREADS, _BLOCK, _GRID, _CONSTANT, _REGISTERS, _SHARED = 1, (2, 3, 4), (5, 6, 7), 9, 12, 97  # CU_DEVICE_ATTRIBUTE_*
_STATIC_OF, _CONSTANT_OF, _REGISTERS_OF = 1, 2, 4  # CU_FUNC_ATTRIBUTE_*
_DYNAMIC_OF: Final = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
_INFO_LOG, _INFO_SIZE, _ERROR_LOG, _ERROR_SIZE = 3, 4, 5, 6  # CU_JIT_*
_LOG_BYTES: Final = 8192
_MEMORY_TYPE, _IS_MANAGED, _ORDINAL = 2, 8, 9  # CU_POINTER_ATTRIBUTE_*
_OF_A_DEVICE: Final = 2  # CU_MEMORYTYPE_DEVICE
_UNORDERED: Final = 2  # CU_EVENT_DISABLE_TIMING
_DEFAULT_STREAMS: Final = (0, 1, 2)  # CU_STREAM_LEGACY and CU_STREAM_PER_THREAD are numbers, too
_INTEGERS: Final = {1: ctypes.c_uint8, 8: ctypes.c_int8, 16: ctypes.c_int16, 32: ctypes.c_int32, 64: ctypes.c_int64}


@dataclass(frozen=True, slots=True)
class Loaded:
    """A kernel that the driver has loaded.

    Attributes:
        function: its handle.
        registers: registers of a thread.
        static_shared, constant: bytes of a block's shared memory, and of constant memory.
    """

    function: ctypes.c_void_p
    registers: int
    static_shared: int
    constant: int


class Driver:
    """The driver, in one context: by default the current one, which Numba and CuPy use as well.

    Each call is made in that context, whatever the calling thread has; afterwards the thread has its own again.

    Args:
        library: the driver as ctypes loads it.
        context: its handle; None for the current one, or where there is none, that of the first device.

    Raises:
        BackendError: there is no device.
    """

    def __init__(self, library: Any, context: int | None = None) -> None:
        self._library = library
        self._call("cuInit", 0)
        self._context = ctypes.c_void_p(context if context is not None else current_context(library))
        device = ctypes.c_int()
        with self.current():
            self._call("cuCtxGetDevice", ctypes.byref(device))
        self._device = device.value
        major, minor = (self._attribute(number) for number in (_MAJOR, _MINOR))
        self.architecture = f"sm_{major}{minor}"
        self.limits = DeviceLimits(
            f"this GPU ({self.architecture})",
            shared=self._attribute(_SHARED),
            registers=self._attribute(_REGISTERS),
            threads=self._attribute(_THREADS),
            block=self._extent(_BLOCK),
            grid=self._extent(_GRID),
            constant=self._attribute(_CONSTANT),
        )

    def _attribute(self, number: int) -> int:
        self._call("cuDeviceGetAttribute", ctypes.byref(found := ctypes.c_int()), number, self._device)
        return found.value

    def _extent(self, numbers: tuple[int, int, int]) -> tuple[int, int, int]:
        x, y, z = map(self._attribute, numbers)
        return x, y, z

    def _call(self, name: str, *arguments: Any, log: Callable[[], str] = str) -> None:
        status = getattr(self._library, name)(*arguments)
        if status:
            raise BackendError(
                f"{name} of NVIDIA's driver fails: {self._message(status)}",
                "(a) run the program under compute-sanitizer, which finds accesses outside of arrays, or (b) inside "
                "irad.cuda.executor(races=True), which finds them without a GPU",
                "after some errors no kernel can run any more in this process",
                detail=log() or None,
            )

    def _message(self, status: int) -> str:
        text = ctypes.c_char_p()
        self._library.cuGetErrorString(status, ctypes.byref(text))
        return text.value.decode() if text.value else f"error {status}"

    @contextmanager
    def current(self) -> Iterator[None]:
        """Makes the context that of the calling thread as long as the block lasts."""
        self._call("cuCtxGetCurrent", ctypes.byref(before := ctypes.c_void_p()))
        if before.value == self._context.value:
            yield
            return
        self._call("cuCtxPushCurrent_v2", self._context)
        try:
            yield
        finally:
            self._call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))

    def _do(self, name: str, *arguments: Any) -> None:
        with self.current():
            self._call(name, *arguments)

    def allocate(self, size: int) -> int:
        """The address of fresh memory."""
        self._do("cuMemAlloc_v2", ctypes.byref(address := ctypes.c_uint64()), ctypes.c_size_t(size))
        return address.value

    def free(self, address: int) -> None:
        """Frees memory of the device."""
        self._do("cuMemFree_v2", ctypes.c_uint64(address))

    def copy(self, to: int, source: int, size: int, stream: int) -> None:
        """Copies between addresses of the device or of the host: the driver knows which they are."""
        if not size:
            return
        where = ctypes.c_uint64(to), ctypes.c_uint64(source)
        self._do("cuMemcpyAsync", *where, ctypes.c_size_t(size), ctypes.c_void_p(stream))

    def clear(self, to: int, size: int, stream: int) -> None:
        """Makes bytes zero."""
        if not size:
            return
        self._do(
            "cuMemsetD8Async", ctypes.c_uint64(to), ctypes.c_ubyte(0), ctypes.c_size_t(size), ctypes.c_void_p(stream)
        )

    def upload(self, to: int, data: bytes, stream: int) -> None:
        """Copies to the device; ``data`` may be dropped afterwards."""
        self._do("cuMemcpyHtoDAsync_v2", ctypes.c_uint64(to), data, ctypes.c_size_t(len(data)), ctypes.c_void_p(stream))
        self.wait(stream)

    def download(self, source: int, size: int, stream: int) -> bytes:
        """Waits for the stream and copies from the device."""
        data = ctypes.create_string_buffer(size)
        self._do("cuMemcpyDtoHAsync_v2", data, ctypes.c_uint64(source), ctypes.c_size_t(size), ctypes.c_void_p(stream))
        self.wait(stream)
        return data.raw

    def wait(self, stream: int) -> None:
        """Until all that was asked for on a stream is done."""
        self._do("cuStreamSynchronize", ctypes.c_void_p(stream))

    def capture(self, stream: int) -> int:
        """The number of the capture that a stream is in, 0 where it is in none."""
        if stream in _DEFAULT_STREAMS:
            return 0  # they cannot be captured
        status, number = ctypes.c_int(), ctypes.c_uint64()
        self._do(
            "cuStreamGetCaptureInfo_v2",
            *(ctypes.c_void_p(stream), ctypes.byref(status), ctypes.byref(number), None, None, None),
        )
        return number.value if status.value else 0

    def synchronize(self) -> None:
        """Until all that was asked for is done."""
        self._do("cuCtxSynchronize")

    def order(self, first: int, then: int) -> None:
        """Makes later work on one stream wait for the work already queued on another."""
        event = ctypes.c_void_p()
        with self.current():
            self._call("cuEventCreate", ctypes.byref(event), _UNORDERED)
            self._call("cuEventRecord", event, ctypes.c_void_p(first))
            self._call("cuStreamWaitEvent", ctypes.c_void_p(then), event, 0)
            self._call("cuEventDestroy_v2", event)  # the driver keeps it until it has happened

    def is_elsewhere(self, address: int) -> bool:
        """True if memory is that of another device."""
        if self._of_memory(address, _ORDINAL) in (self._device, None):
            return False
        return self._of_memory(address, _MEMORY_TYPE) == _OF_A_DEVICE and not self._of_memory(address, _IS_MANAGED)

    def _of_memory(self, address: int, number: int) -> int | None:
        """An attribute of memory, None where the driver does not know it."""
        found = ctypes.c_uint()
        status = self._library.cuPointerGetAttribute(ctypes.byref(found), number, ctypes.c_uint64(address))
        return None if status else found.value

    def load(self, image: bytes, name: str) -> Loaded:
        """A kernel of PTX or of a cubin; it stays loaded.

        Raises:
            BackendError: the driver does not take it; with what its compiler says.
        """
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        logs = [ctypes.create_string_buffer(_LOG_BYTES) for _ in range(2)]
        options = (ctypes.c_int * 4)(_INFO_LOG, _INFO_SIZE, _ERROR_LOG, _ERROR_SIZE)
        places = (ctypes.c_void_p * 4)(*(each for log in logs for each in (ctypes.addressof(log), _LOG_BYTES)))

        def said() -> str:
            return "\n".join(text for log in reversed(logs) if (text := log.value.decode(errors="replace").strip()))

        with self.current():
            given = ctypes.byref(module), image, len(options), options, places
            self._call("cuModuleLoadDataEx", *given, log=said)
            self._call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
            registers, shared, constant = (
                self._of_function(function, number) for number in (_REGISTERS_OF, _STATIC_OF, _CONSTANT_OF)
            )
        return Loaded(function, registers, shared, constant)

    def _of_function(self, function: ctypes.c_void_p, number: int) -> int:
        self._call("cuFuncGetAttribute", ctypes.byref(found := ctypes.c_int()), number, function)
        return found.value

    def launch(
        self, kernel: Loaded, extents: Sequence[int], shared: int, stream: int, arguments: Sequence[Any]
    ) -> None:
        """Launches a kernel.

        Args:
            kernel: as `load` gives it.
            extents: the six numbers of the grid and of a block.
            shared: bytes of dynamic shared memory.
            stream: its handle.
            arguments: ctypes numbers.
        """
        places = (ctypes.c_void_p * len(arguments))(*(ctypes.addressof(each) for each in arguments))
        sizes = [ctypes.c_uint(each) for each in (*extents, shared)]
        with self.current():
            if kernel.static_shared + shared > STATIC_SHARED:  # the two together need no asking up to there
                self._call("cuFuncSetAttribute", kernel.function, _DYNAMIC_OF, shared)
            self._call("cuLaunchKernel", kernel.function, *sizes, ctypes.c_void_p(stream), places, None)


def packed(type_: Type, value: int | float) -> Any:
    """An argument as the driver takes it.

    Args:
        type_: LLVM's type of the parameter.
        value: a number, or an address.
    """
    if type_ is PTR:
        return ctypes.c_uint64(int(value))
    if type_ is DOUBLE:
        return ctypes.c_double(value)
    if type_ is FLOAT:
        return ctypes.c_float(value)
    return _INTEGERS[int(str(type_).removeprefix("i"))](int(value))


def current_context(library: Any) -> int:
    """The context of the calling thread; where it has none, that of the first device, which becomes current.

    Raises:
        BackendError: there is no device.
    """

    def call(name: str, *arguments: Any) -> None:
        status = getattr(library, name)(*arguments)
        if status:
            raise BackendError(
                f"{name} of NVIDIA's driver fails with status {status}",
                "(a) make a GPU visible, or (b) with irad.cuda.executor(): runs kernels on the CPU",
                "the driver is installed, and finds no device that it can use",
            )

    call("cuCtxGetCurrent", ctypes.byref(context := ctypes.c_void_p()))
    if context.value is None:
        call("cuDeviceGet", ctypes.byref(device := ctypes.c_int()), 0)
        call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        call("cuCtxSetCurrent", context)
    assert context.value is not None
    return context.value


@cache
def load_library() -> Any:
    """The driver of this machine, initialised.

    Raises:
        BackendError: there is none.
    """
    try:
        library = ctypes.CDLL(_LIBRARY)
    except OSError:
        raise BackendError(
            "no CUDA device found: NVIDIA's driver is not installed",
            "(a) with irad.cuda.executor(): runs kernels on the CPU, on NumPy arrays, or (b) IRAD_CUDA_EXECUTOR=1, "
            "which does so for the whole process, or (c) use a machine with a GPU",
            "kernels and their derivatives run on a GPU or on irad's executor",
        ) from None
    library.cuInit(0)
    return library
