"""Copies of memory that a launch may change, to put it back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from irad.cuda.devices.device import ArrayView, Device
from irad.cuda.devices.pool import Buffer

MemoryRange: TypeAlias = tuple[int, int]
"""The first address, and that behind the last."""
Copy: TypeAlias = tuple[MemoryRange, Buffer]
"""What memory was, and where its copy is."""


def extents_of(views: Iterable[ArrayView]) -> list[MemoryRange]:
    """What arrays span, without those that are empty."""
    return [view.extent for view in views if view.size]


def merged(extents: Sequence[MemoryRange]) -> list[MemoryRange]:
    """Extents that share no address, which cover the same."""
    found: list[MemoryRange] = []
    for low, high in sorted(extents):
        if found and low < found[-1][1]:
            found[-1] = found[-1][0], max(high, found[-1][1])
        else:
            found.append((low, high))
    return found


def copied(device: Device, extents: Sequence[MemoryRange], lend: Callable[[int], Buffer], stream: int) -> list[Copy]:
    """Copies of memory, in buffers that ``lend`` gives."""
    found = []
    for low, high in extents:
        copy = lend(high - low)
        device.copy(copy.address, low, high - low, stream)
        found.append(((low, high), copy))
    return found


def put_back(device: Device, copies: Sequence[Copy], stream: int) -> None:
    """Makes memory what it was when it was copied."""
    for (low, high), copy in copies:
        device.copy(low, copy.address, high - low, stream)
