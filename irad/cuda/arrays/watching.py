"""What is watched while a tape records: functions of array libraries, and memory that is made."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

from irad.cuda.arrays.library import Library
from irad.cuda.arrays.numpy_library import NUMPY
from irad.cuda.arrays.replaced import ReplacedFunctions
from irad.cuda.devices.emulated import EmulatedDevice
from irad.cuda.recording.record import Record
from irad.cuda.recording.unseen import HostMemory

_SCIPY: Final = ReplacedFunctions(
    NUMPY,
    {"scipy.signal": "signal.", "scipy.ndimage": "ndimage.", "scipy.fft": "fft.", "scipy.linalg": "linalg."},
)


def library_of(record: Record) -> Library:
    """The array library of the device that a tape records on."""
    return NUMPY


@contextmanager
def watched(record: Record) -> Iterator[None]:
    """Shows a tape what array libraries do, while the block lasts."""
    is_emulated = isinstance(record.device, EmulatedDevice)
    functions, unseen = (_SCIPY, HostMemory()) if is_emulated else (_SCIPY, None)
    record.unseen = unseen
    with ExitStack() as stack:
        for each in (functions, unseen):
            if each is not None:
                each.start()
                stack.callback(each.stop)
        yield
