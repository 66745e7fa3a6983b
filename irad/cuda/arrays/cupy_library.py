"""CuPy, on a GPU: its functions are replaced while a tape records, and so are the methods and operators of its arrays.

CuPy has no protocol through which all that is done with its arrays could be seen. Its class of arrays is one of
Python's, whose methods can be replaced. A function that was imported by its own name before the tape's block is not
seen, but the memory that it allocates is.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any, Final

import numpy as np

from irad.api.annotations import Const
from irad.cuda.arrays.numpy_library import METHODS
from irad.cuda.arrays.recording import call_function, suspended
from irad.cuda.arrays.replaced import ReplacedFunctions
from irad.cuda.devices.device import ArrayView
from irad.cuda.devices.standins import HostArray
from irad.cuda.recording.record import current_record, recorded_copy
from irad.frontend.calls.raising import public

_BINARY: Final = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "truediv": "divide",
    "floordiv": "floor_divide",
    "mod": "remainder",
    "pow": "power",
    "matmul": "matmul",
}
_UNARY: Final = {"neg": "negative", "pos": "positive", "abs": "absolute"}
_MODULES: Final = {
    "cupy": "",
    "cupy.linalg": "linalg.",
    "cupy.fft": "fft.",
    "cupy.random": "random.",
    "cupyx": "",
    **{f"cupyx.scipy.{name}": f"{name}." for name in ("fft", "linalg", "ndimage", "signal", "sparse.linalg")},
    "cupyx.scipy.special": "",
}


class CupyLibrary:
    """CuPy's functions, on arrays of the GPU."""

    name = "CuPy"

    @property
    def xp(self) -> Any:
        """CuPy."""
        return sys.modules["cupy"]

    def is_array(self, value: Any) -> bool:
        """True if the value has the CUDA array interface."""
        return isinstance(value, self.xp.ndarray) or hasattr(value, "__cuda_array_interface__")

    def plain(self, value: Any) -> Any:
        """The array itself: nothing is recorded while functions run."""
        return value

    def array(self, view: ArrayView) -> Any:
        """CuPy's array in the same memory."""
        m = self.xp
        low, high = view.extent
        memory = m.cuda.UnownedMemory(low, high - low, view, m.cuda.runtime.getDevice())
        pointer = m.cuda.MemoryPointer(memory, view.address - low)
        return m.ndarray(view.shape, view.dtype, pointer, view.strides)

    def wrapped(self, value: Any) -> Any:
        """The array itself, also where it is a single number."""
        return value

    def stream(self) -> int:
        """CuPy's current stream."""
        return int(self.xp.cuda.get_current_stream().ptr)

    @contextmanager
    def running(self, stream: int) -> Iterator[None]:
        """On a stream of anybody's."""
        with suspended(), self.xp.cuda.ExternalStream(stream):
            yield


CUPY: Final = CupyLibrary()


class _Methods:
    """Methods and operators of CuPy's arrays, replaced while tapes record."""

    def __init__(self) -> None:
        self._lock, self._users = Lock(), 0
        self._made: list[str] = []

    def start(self) -> None:
        """Replaces methods of CuPy's arrays."""
        with self._lock:
            self._users += 1
            if self._users == 1:
                owner = CUPY.xp.ndarray
                for name, method in _methods(owner):
                    if name not in vars(owner):
                        setattr(owner, name, method)
                        self._made.append(name)

    def stop(self) -> None:
        """CuPy's own are inherited again."""
        with self._lock:
            self._users -= 1
            while not self._users and self._made:
                delattr(CUPY.xp.ndarray, self._made.pop())


def _methods(owner: Any) -> Iterator[tuple[str, Callable[..., Any]]]:
    for name, function in _BINARY.items():
        for prefix in ("", "r", "i"):
            if hasattr(owner, f"__{prefix}{name}__"):
                yield f"__{prefix}{name}__", _operator(owner, prefix, name, function)
    for name, function in _UNARY.items():
        yield f"__{name}__", _method(getattr(owner, f"__{name}__"), function)
    for name in METHODS:
        if hasattr(owner, name):
            yield name, _method(getattr(owner, name), f"ndarray.{name}")
    yield "get", _to_host(owner.get)
    yield "set", _from_host_in_place(owner.set)


def _operator(owner: Any, prefix: str, name: str, function: str) -> Callable[..., Any]:
    """A binary operator, as a function."""
    inherited, ufunc = getattr(owner, f"__{prefix}{name}__"), getattr(CUPY.xp, function)

    @functools.wraps(inherited)
    def call(self: Any, other: Any, *rest: Any) -> Any:
        if current_record() is None or rest or not _is_operand(other):
            return inherited(self, other, *rest)
        args = (other, self) if prefix == "r" else (self, other)
        return _recorded(CUPY, function, ufunc, args, {"out": self} if prefix == "i" else {})

    return call


def _is_operand(value: Any) -> bool:
    return isinstance(value, int | float | complex | np.generic | Const) or CUPY.is_array(value)


def _method(inherited: Callable[..., Any], name: str) -> Callable[..., Any]:
    @functools.wraps(inherited)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if current_record() is None:
            return inherited(self, *args, **kwargs)
        return _recorded(CUPY, name, inherited, (self, *args), kwargs)

    return call


# --- copies to and from the host --------------------------------------------------------------------------------------


def _to_host(original: Callable[..., Any]) -> Callable[..., Any]:
    """``array.get`` and ``cupy.asnumpy``."""

    @functools.wraps(original)
    def call(array: Any, *args: Any, **kwargs: Any) -> Any:
        if current_record() is None or not CUPY.is_array(array):
            return original(array, *args, **kwargs)
        out = kwargs.get("out")
        if out is not None:
            with recorded_copy(out, array, CUPY.stream()), suspended():
                return original(array, *args, **kwargs)
        with suspended():
            made = original(array, *args, **kwargs).view(HostArray)
        with recorded_copy(made, array, CUPY.stream()):
            return made

    return call


def _from_host(original: Callable[..., Any]) -> Callable[..., Any]:
    """``cupy.asarray`` and ``cupy.array``: data that a tape has copied to the host goes back with its derivative."""

    @functools.wraps(original)
    def call(array: Any, *args: Any, **kwargs: Any) -> Any:
        if current_record() is None or not isinstance(array, HostArray):
            return call_function(CUPY, original.__name__, original, (array, *args), kwargs)
        with suspended():
            made = original(array, *args, **kwargs)
        with recorded_copy(made, array, CUPY.stream()):
            return made

    return call


def _from_host_in_place(original: Callable[..., Any]) -> Callable[..., Any]:
    """``array.set``."""

    @functools.wraps(original)
    def call(self: Any, array: Any, *args: Any, **kwargs: Any) -> Any:
        with recorded_copy(self, array, CUPY.stream()), suspended():
            return original(self, array, *args, **kwargs)

    return call


_recorded = public(call_function)
METHODS_OF_ARRAYS: Final = _Methods()
FUNCTIONS: Final = ReplacedFunctions(
    CUPY, _MODULES, {"asnumpy": _to_host, **dict.fromkeys(("array", "asarray", "ascontiguousarray"), _from_host)}
)


# --- memory -----------------------------------------------------------------------------------------------------------


class PoolMemory:
    """Memory that CuPy allocates while a tape records, and outside of functions that the tape sees."""

    def __init__(self) -> None:
        self._ranges: dict[int, int] = {}
        self._hook: Any = None

    def start(self) -> None:
        """Has CuPy show its allocations in this thread."""
        self._hook = _hook(self._ranges)
        self._hook.__enter__()

    def stop(self) -> None:
        """CuPy need not show them any more."""
        self._hook.__exit__(None, None, None)
        self._ranges.clear()

    def origin(self, array: Any, view: ArrayView) -> str | None:
        """True if the memory is among them."""
        low, _ = view.extent
        is_unseen = any(start <= low < end for start, end in self._ranges.items())
        return " (a kernel or a function of CuPy)" if is_unseen else None


def _hook(ranges: dict[int, int]) -> Any:
    """Memory hook to which CuPy reports its allocations; its class is made here, since CuPy need not be there."""

    def malloc_postprocess(self: Any, **given: Any) -> None:
        ranges.pop(given["mem_ptr"], None)
        if current_record() is not None:
            ranges[given["mem_ptr"]] = given["mem_ptr"] + given["mem_size"]

    def free_postprocess(self: Any, **given: Any) -> None:
        ranges.pop(given["mem_ptr"], None)

    members = {"name": "irad.cuda.Tape", "malloc_postprocess": malloc_postprocess, "free_postprocess": free_postprocess}
    return type("TapeHook", (CUPY.xp.cuda.MemoryHook,), members)()


class NotLoaded:
    """CuPy was not imported when the tape's block began: it is not seen."""

    def start(self) -> None:
        """Nothing is to be done."""

    def stop(self) -> None:
        """Nothing is to be done."""

    def origin(self, array: Any, view: ArrayView) -> str | None:
        """All arrays of CuPy are unseen."""
        is_cupys = type(array).__module__.partition(".")[0] == "cupy"
        return " (import CuPy before the tape's block)" if is_cupys else None
