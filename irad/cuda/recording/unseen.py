"""Memory that something made while a tape records, and that the tape did not see."""

from __future__ import annotations

import tracemalloc
from typing import Any, Protocol

import numpy as np

from irad.cuda.devices.device import ArrayView
from irad.cuda.devices.standins import DeviceArray, HostArray


class Unseen(Protocol):
    """Knows such memory, from `start` to `stop`."""

    def start(self) -> None:
        """The tape records from now on."""
        ...

    def stop(self) -> None:
        """The tape does not record any more."""
        ...

    def origin(self, array: Any, view: ArrayView) -> str | None:
        """Origin of an array that was made unseen: text that follows "by something that it does not see"."""
        ...


class HostMemory:
    """NumPy's own arrays, which the executor takes as arrays of the device: Python says when they were made.

    A program that traces its memory itself is not looked at.
    """

    def __init__(self) -> None:
        self._traces = False

    def start(self) -> None:
        """Has Python note where objects are made."""
        self._traces = not tracemalloc.is_tracing()
        if self._traces:
            tracemalloc.start(1)

    def stop(self) -> None:
        """Python need not note it any more."""
        if self._traces:
            tracemalloc.stop()
        self._traces = False

    def origin(self, array: Any, view: ArrayView) -> str | None:
        """The line where the owner of the memory was made."""
        if not self._traces or isinstance(array, DeviceArray | HostArray):
            return None
        while isinstance(array.base, np.ndarray):
            array = array.base
        trace = tracemalloc.get_object_traceback(array)
        return None if trace is None else f" ({trace[0].filename}:{trace[0].lineno})"
