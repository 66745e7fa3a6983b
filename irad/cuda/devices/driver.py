"""The functions of NVIDIA's driver that launches need, called through ctypes: nothing but the driver is required."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from functools import cache
from typing import Any, Final

from irad.errors import BackendError
from irad.ir.types import DOUBLE, FLOAT, PTR, Type

_LIBRARY: Final = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
_MAJOR, _MINOR = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_*
_SHARED_MEMORY: Final = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
_DEFAULT_STREAMS: Final = (0, 1, 2)  # CU_STREAM_LEGACY and CU_STREAM_PER_THREAD are numbers, too
_WITHOUT_ASKING: Final = 48 * 1024
_INTEGERS: Final = {1: ctypes.c_uint8, 8: ctypes.c_int8, 16: ctypes.c_int16, 32: ctypes.c_int32, 64: ctypes.c_int64}


class Driver:
    """The driver, with the primary context of the current device, which Numba and CuPy use as well.

    Args:
        library: the driver as ctypes loads it.

    Raises:
        BackendError: there is no device.
    """

    def __init__(self, library: Any) -> None:
        self._library = library
        self._call("cuInit", 0)
        self._call("cuCtxGetCurrent", ctypes.byref(context := ctypes.c_void_p()))
        device = ctypes.c_int()
        if context.value is None:
            self._call("cuDeviceGet", ctypes.byref(device), 0)
            self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
            self._call("cuCtxSetCurrent", context)
        self._context = context
        self._call("cuCtxGetDevice", ctypes.byref(device))
        capability = [self._attribute(device, number) for number in (_MAJOR, _MINOR)]
        self.architecture = f"sm_{capability[0]}{capability[1]}"

    def _attribute(self, device: ctypes.c_int, number: int) -> int:
        self._call("cuDeviceGetAttribute", ctypes.byref(found := ctypes.c_int()), number, device)
        return found.value

    def _call(self, name: str, *arguments: Any) -> None:
        status = getattr(self._library, name)(*arguments)
        if status:
            raise BackendError(
                f"{name} of NVIDIA's driver fails: {self._message(status)}",
                "(a) run the program under compute-sanitizer, which finds accesses outside of arrays, or (b) inside "
                "irad.cuda.executor(races=True), which finds them without a GPU",
                "after some errors no kernel can run any more in this process",
            )

    def _message(self, status: int) -> str:
        text = ctypes.c_char_p()
        self._library.cuGetErrorString(status, ctypes.byref(text))
        return text.value.decode() if text.value else f"error {status}"

    def enter(self) -> None:
        """Makes the context that of the calling thread."""
        self._call("cuCtxSetCurrent", self._context)

    def allocate(self, size: int) -> int:
        """The address of fresh memory."""
        self._call("cuMemAlloc_v2", ctypes.byref(address := ctypes.c_uint64()), ctypes.c_size_t(size))
        return address.value

    def free(self, address: int) -> None:
        """Frees memory."""
        self._call("cuMemFree_v2", ctypes.c_uint64(address))

    def copy(self, to: int, source: int, size: int, stream: int) -> None:
        """Copies between addresses of the device or of the host: the driver knows which they are."""
        if not size:
            return
        where = ctypes.c_uint64(to), ctypes.c_uint64(source)
        self._call("cuMemcpyAsync", *where, ctypes.c_size_t(size), ctypes.c_void_p(stream))

    def clear(self, to: int, size: int, stream: int) -> None:
        """Makes bytes zero."""
        if not size:
            return
        self._call(
            "cuMemsetD8Async", ctypes.c_uint64(to), ctypes.c_ubyte(0), ctypes.c_size_t(size), ctypes.c_void_p(stream)
        )

    def upload(self, to: int, data: bytes, stream: int) -> None:
        """Copies to the device; ``data`` may be dropped afterwards."""
        self._call(
            "cuMemcpyHtoDAsync_v2", ctypes.c_uint64(to), data, ctypes.c_size_t(len(data)), ctypes.c_void_p(stream)
        )
        self.wait(stream)

    def download(self, source: int, size: int, stream: int) -> bytes:
        """Waits for the stream and copies from the device."""
        data = ctypes.create_string_buffer(size)
        self._call(
            "cuMemcpyDtoHAsync_v2", data, ctypes.c_uint64(source), ctypes.c_size_t(size), ctypes.c_void_p(stream)
        )
        self.wait(stream)
        return data.raw

    def wait(self, stream: int) -> None:
        """Until all that was asked for on a stream is done."""
        self._call("cuStreamSynchronize", ctypes.c_void_p(stream))

    def capture(self, stream: int) -> int:
        """The number of the capture that a stream is in, 0 where it is in none."""
        if stream in _DEFAULT_STREAMS:
            return 0  # they cannot be captured
        status, number = ctypes.c_int(), ctypes.c_uint64()
        self._call(
            "cuStreamGetCaptureInfo_v2",
            *(ctypes.c_void_p(stream), ctypes.byref(status), ctypes.byref(number), None, None, None),
        )
        return number.value if status.value else 0

    def synchronize(self) -> None:
        """Until all that was asked for is done."""
        self.enter()
        self._call("cuCtxSynchronize")

    def load(self, image: bytes, name: str) -> ctypes.c_void_p:
        """A kernel of PTX or of a cubin; it stays loaded."""
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self._call("cuModuleLoadData", ctypes.byref(module), image)
        self._call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
        return function

    def launch(
        self, function: ctypes.c_void_p, extents: Sequence[int], shared: int, stream: int, arguments: Sequence[Any]
    ) -> None:
        """Launches a kernel.

        Args:
            function: as `load` gives it.
            extents: the six numbers of the grid and of a block.
            shared: bytes of dynamic shared memory.
            stream: its handle.
            arguments: ctypes numbers.
        """
        if shared > _WITHOUT_ASKING:
            self._call("cuFuncSetAttribute", function, _SHARED_MEMORY, shared)
        places = (ctypes.c_void_p * len(arguments))(*(ctypes.addressof(each) for each in arguments))
        sizes = [ctypes.c_uint(each) for each in (*extents, shared)]
        self._call("cuLaunchKernel", function, *sizes, ctypes.c_void_p(stream), places, None)


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


@cache
def driver() -> Driver:
    """The driver of this machine.

    Raises:
        BackendError: there is none, or no device.
    """
    try:
        library = ctypes.CDLL(_LIBRARY)
    except OSError:
        raise BackendError(
            "there is no CUDA device here: NVIDIA's driver is not installed",
            "(a) with irad.cuda.executor(): runs kernels on the CPU, on NumPy arrays, or (b) IRAD_CUDA_EXECUTOR=1, "
            "which does so for the whole process, or (c) use a machine with a GPU",
            "kernels and their derivatives run on a GPU or on irad's executor",
        ) from None
    return Driver(library)
