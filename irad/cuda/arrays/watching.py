"""Watching while a tape records: functions of array libraries, and memory that is made."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Final, Protocol

from irad.cuda.arrays.cupy_library import CUPY, FUNCTIONS, METHODS_OF_ARRAYS, NotLoaded, PoolMemory
from irad.cuda.arrays.library import Library
from irad.cuda.arrays.numpy_library import NUMPY
from irad.cuda.arrays.replaced import ReplacedFunctions
from irad.cuda.devices.emulated import EmulatedDevice
from irad.cuda.recording.record import Record
from irad.cuda.recording.unseen import HostMemory, Unseen

_SCIPY: Final = ReplacedFunctions(
    NUMPY,
    {
        **{f"scipy.{name}": f"{name}." for name in ("signal", "ndimage", "fft", "linalg")},
        "scipy.special": "",
    },
)
_MAKERS: Final = ReplacedFunctions(NUMPY, {"numpy": ""}, only=frozenset(("eye", "identity", "tri")))
"""They make constants, and are given no array that NumPy's protocols could show them by."""


class Watched(Protocol):
    """Something that a tape sees from `start` to `stop`."""

    def start(self) -> None:
        """A tape records from now on."""
        ...

    def stop(self) -> None:
        """It does not any more."""
        ...


def library_of(record: Record) -> Library:
    """The array library of the device that a tape records on."""
    return NUMPY if isinstance(record.device, EmulatedDevice) else CUPY


@contextmanager
def watched(record: Record) -> Iterator[None]:
    """Reports the operations of array libraries to a tape, while the block lasts."""
    unseen: Unseen = HostMemory()
    watched: list[Watched] = [_SCIPY, _MAKERS]
    if not isinstance(record.device, EmulatedDevice):
        is_loaded = "cupy" in sys.modules
        unseen = PoolMemory() if is_loaded else NotLoaded()
        watched = [METHODS_OF_ARRAYS, FUNCTIONS] if is_loaded else []
    record.unseen = unseen
    with ExitStack() as stack:
        for each in (*watched, unseen):
            each.start()
            stack.callback(each.stop)
        yield
