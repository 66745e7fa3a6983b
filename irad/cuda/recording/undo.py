"""The undo log: the memory saved before an operation, and its restoration.

What an operation overwrites is saved, unless nothing needs it: memory that no operation before has touched, and that
the operation itself writes without reading it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from irad.cuda.calls.memory import merged, overlap
from irad.cuda.devices.device import ArrayView, Device
from irad.cuda.recording.operations import Saved

Extent = tuple[int, int]


class UndoLog:
    """Memory that the operations of a tape have touched so far.

    Args:
        device: that they run on.
    """

    def __init__(self, device: Device) -> None:
        self._device = device
        self._touched: list[Extent] = []
        self._numbers: dict[str, list[Extent]] = {}  # what is in memory, by the type of the numbers
        self._known: list[tuple[ArrayView, int]] = []  # with a checksum of what is in it

    def save(self, written: Iterable[tuple[ArrayView, bool]], stream: Any) -> list[Saved]:
        """Copies the memory that an operation is going to overwrite.

        Args:
            written: the arrays, and whether the operation may read them as well.
            stream: stream of the operation.
        """
        needed = [view.extent for view, is_read in written if view.size and (is_read or self.is_touched(view))]
        return copies(self._device, needed, stream)

    def is_touched(self, view: ArrayView) -> bool:
        """True if an operation has read or written a part of an array."""
        low, high = view.extent
        return any(low < other_high and other_low < high for other_low, other_high in self._touched)

    def touch(self, views: Iterable[ArrayView]) -> None:
        """Records the memory that an operation has read or written."""
        views = list(views)
        for view in views:
            if (kind := number_of(view)) is not None:
                self._numbers[kind] = merged([*self._numbers.get(kind, ()), view.extent])
        self._touched = merged([*self._touched, *(view.extent for view in views if view.size)])

    def is_other_number(self, view: ArrayView) -> bool:
        """True if an operation has taken a part of an array for numbers of another type, one of them for floats."""
        kind = number_of(view)
        low, high = view.extent
        return kind is not None and any(
            low < other_high and other_low < high
            for other, extents in self._numbers.items()
            if other != kind and "f" in (other[0], kind[0])
            for other_low, other_high in extents
        )

    # --- what the tape does not see -----------------------------------------------------------------------------------

    def note(self, views: Sequence[ArrayView]) -> None:
        """Remembers the contents of arrays, if the device can compare them at little cost."""
        for view in views:
            found = self._device.checksum(*view.extent) if view.size else None
            if found is not None:
                self._known = [(each, s) for each, s in self._known if not overlap(each, view)]
                self._known.append((view, found))

    def changed(self, views: Sequence[ArrayView] | None = None) -> bool:
        """True if something else has changed arrays since the tape saw them last.

        Args:
            views: those that matter; None for all.
        """
        known = [(each, s) for each, s in self._known if views is None or any(overlap(each, view) for view in views)]
        return any(self._device.checksum(*each.extent) != before for each, before in known)


def number_of(view: ArrayView) -> str | None:
    """The type of the numbers in an array: of a complex number, that of its parts; None in records and gaps."""
    steps = [abs(stride) for length, stride in zip(view.shape, view.strides, strict=True) if length > 1]
    if not view.size or view.dtype.kind not in "fciub" or (steps and min(steps) != view.dtype.itemsize):
        return None
    return f"f{view.dtype.itemsize // 2}" if view.dtype.kind == "c" else f"{view.dtype.kind}{view.dtype.itemsize}"


def copies(device: Device, extents: Iterable[Extent], stream: Any) -> list[Saved]:
    """Copies of what is in memory, each byte once."""
    found = []
    for low, high in merged(list(extents)):
        buffer = device.pool.take(high - low, stream)
        device.copy(buffer.address, low, high - low, stream)
        found.append(Saved(low, high, buffer))
    return found
