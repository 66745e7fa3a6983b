"""Shadows of all memory that a tape has seen: arrays that overlap have one region, and shadows that lie as they do."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from irad.cuda.calls.running import merged
from irad.cuda.devices.device import ArrayView, Device
from irad.cuda.devices.pool import ALIGNMENT, Buffer


@dataclass(frozen=True, slots=True, eq=False)
class Region:
    """Memory with its shadow.

    Attributes:
        low, high: its addresses.
        shadow: address of the shadow of its first byte, which is aligned as that is.
        buffer: the memory of the shadow.
    """

    low: int
    high: int
    shadow: int
    buffer: Buffer


class Regions:
    """The shadows of some arrays, zeros at first.

    Args:
        device: whose memory the shadows are in.
        views: the arrays.
        stream: on which the shadows are used.
    """

    def __init__(self, device: Device, views: Iterable[ArrayView], stream: Any) -> None:
        self._device, self._stream = device, stream
        self._regions = [self._region(low, high) for low, high in merged([v.extent for v in views if v.size])]
        self._lows = [region.low for region in self._regions]

    def _region(self, low: int, high: int) -> Region:
        buffer = self._device.pool.take(high - low + ALIGNMENT, self._stream)
        self._device.clear(buffer.address, buffer.size, self._stream)
        return Region(low, high, buffer.address + low % ALIGNMENT, buffer)

    def of(self, view: ArrayView) -> Region | None:
        """The region that an array lies in, if there is one."""
        low, high = view.extent
        at = bisect_right(self._lows, low) - 1
        return self._regions[at] if view.size and at >= 0 and high <= self._regions[at].high else None

    def shadow(self, view: ArrayView) -> ArrayView:
        """The shadow of an array that is in a region; an empty array is its own."""
        region = self.of(view)
        address = view.address if region is None else region.shadow + view.address - region.low
        return replace(view, address=address, readonly=False, owner=region)

    def release(self) -> None:
        """Gives the memory back."""
        for region in self._regions:
            self._device.pool.give(region.buffer, self._stream)
        self._regions, self._lows = [], []
