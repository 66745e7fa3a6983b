"""Stand-ins for the host side of `numba.cuda`, on NumPy's memory: arrays of the device, streams, events.

Inside `irad.cuda.executor` these functions take the place of Numba's, whose parameters they have. Everything that is
asked for is done at once, so that streams and events have nothing to wait for.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any

import numpy as np


class DeviceArray(np.ndarray[Any, Any]):
    """An array of the device, with the methods of Numba's; a copy of the host's."""

    def copy_to_host(self, ary: Any = None, stream: Any = 0) -> Any:
        """A copy, or ``ary`` with the content copied to it."""
        if ary is None:
            return np.array(self, subok=False, order="K")
        np.copyto(_plain(ary), _plain(self))
        return ary

    def copy_to_device(self, ary: Any, stream: Any = 0) -> None:
        """Copies from an array of the host or of the device."""
        np.copyto(_plain(self), _plain(ary))

    @property
    def alloc_size(self) -> int:
        """Size in bytes."""
        return int(self.nbytes)

    def is_c_contiguous(self) -> bool:
        """True if it is, in the order of C."""
        return bool(self.flags.c_contiguous)

    def is_f_contiguous(self) -> bool:
        """True if it is, in the order of Fortran."""
        return bool(self.flags.f_contiguous)


class HostArray(np.ndarray[Any, Any]):
    """An array of the host to which a tape has recorded a copy from the device."""


def _plain(array: Any) -> Any:
    return np.asarray(array)


class Stream:
    """A stream, in which nothing waits."""

    handle = None

    def synchronize(self) -> None:
        """Nothing is outstanding."""

    @contextmanager
    def auto_synchronize(self) -> Iterator[Stream]:
        """As Numba's."""
        yield self

    def add_callback(self, callback: Any, arg: Any = None) -> None:
        """Calls the callback at once."""
        callback(self, 0, arg)


class Event:
    """An event, which has happened once it is recorded."""

    def __init__(self) -> None:
        self._time = perf_counter()

    def record(self, stream: Any = 0) -> None:
        """Takes the time."""
        self._time = perf_counter()

    def query(self) -> bool:
        """It has happened."""
        return True

    def synchronize(self) -> None:
        """Nothing is outstanding."""

    def wait(self, stream: Any = 0) -> None:
        """Nothing is outstanding."""

    def elapsed_time(self, evtend: Event) -> float:
        """Milliseconds from this event to another."""
        return 1e3 * (evtend._time - self._time)


def to_device(obj: Any, stream: Any = 0, copy: bool = True, to: Any = None) -> Any:
    """A copy on the device; of an array that is there already, itself."""
    if to is not None:
        if copy:
            to.copy_to_device(obj, stream)
        return to
    if isinstance(obj, DeviceArray):
        return obj
    made = np.empty_like(np.asarray(obj), order="K").view(DeviceArray)
    if copy:
        made.copy_to_device(obj, stream)
    return made


def device_array(shape: Any, dtype: Any = np.float64, strides: Any = None, order: Any = "C", stream: Any = 0) -> Any:
    """A new array."""
    if strides is None:
        return np.empty(shape, dtype, order).view(DeviceArray)
    sizes = shape if isinstance(shape, tuple) else (shape,)
    reach = sum((length - 1) * stride for length, stride in zip(sizes, strides, strict=True))
    memory = np.empty(reach + np.dtype(dtype).itemsize, np.uint8)
    return np.ndarray(sizes, dtype, memory, 0, strides).view(DeviceArray)


def device_array_like(ary: Any, stream: Any = 0) -> Any:
    """A new array of the same shape and dtype."""
    return np.empty_like(ary, order="K").view(DeviceArray)


def pinned_array(shape: Any, dtype: Any = np.float64, strides: Any = None, order: Any = "C") -> Any:
    """An array of the host."""
    return np.empty(shape, dtype, order)


def pinned_array_like(ary: Any) -> Any:
    """An array of the host."""
    return np.empty_like(ary, subok=False)


def mapped_array(
    shape: Any,
    dtype: Any = np.float64,
    strides: Any = None,
    order: Any = "C",
    stream: Any = 0,
    portable: bool = False,
    wc: bool = False,
) -> Any:
    """An array that host and device share."""
    return device_array(shape, dtype, strides, order)


def mapped_array_like(ary: Any, stream: Any = 0, portable: bool = False, wc: bool = False) -> Any:
    """An array that host and device share."""
    return device_array_like(ary)


def managed_array(
    shape: Any,
    dtype: Any = np.float64,
    strides: Any = None,
    order: Any = "C",
    stream: Any = 0,
    attach_global: bool = True,
) -> Any:
    """An array that host and device share."""
    return device_array(shape, dtype, strides, order)


def as_cuda_array(obj: Any, sync: bool = True) -> Any:
    """An array of the device in the same memory."""
    return obj.view(DeviceArray) if isinstance(obj, np.ndarray) else obj


def is_cuda_array(obj: Any) -> bool:
    """True if kernels of the executor take it."""
    return isinstance(obj, np.ndarray)


def is_available() -> bool:
    """Kernels can be launched."""
    return True


def stream() -> Stream:
    """A new stream."""
    return Stream()


def default_stream() -> Stream:
    """A stream."""
    return Stream()


def event(timing: bool = True) -> Event:
    """A new event."""
    return Event()


def event_elapsed_time(evtstart: Event, evtend: Event) -> float:
    """Milliseconds between two events."""
    return evtstart.elapsed_time(evtend)


def synchronize() -> None:
    """Nothing is outstanding."""
