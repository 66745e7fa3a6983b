"""Shadows of all memory that a tape has seen: arrays that overlap have one region, and shadows that lie as they do."""

from __future__ import annotations

import weakref
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from irad.cuda.calls.memory import merged
from irad.cuda.devices.device import ArrayView, Device
from irad.cuda.devices.pool import ALIGNMENT, Buffer, Lease


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


class Holder:
    """Is kept by arrays of derivatives.

    Attributes:
        lease: on their memory, once the tape is gone.
    """

    def __init__(self) -> None:
        self.lease: Lease | None = None


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
        self._joined: list[Buffer] = []
        self._holders: dict[int, weakref.ref[Holder]] = {}  # by the address of their memory

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

    def derivative(self, view: ArrayView) -> ArrayView | None:
        """The derivative with respect to an array, None if no part of it is in a region.

        Where only parts of it are, they are copied, and the others are zeros.
        """
        low, high = view.extent
        parts = [each for each in self._regions if each.low < high and low < each.high]
        if self.of(view) is not None or not view.size:
            return self.shadow(view)
        if not parts:
            return None
        buffer = self._device.pool.take(high - low, self._stream)
        self._joined.append(buffer)
        self._device.clear(buffer.address, high - low, self._stream)
        for each in parts:
            start, end = max(low, each.low), min(high, each.high)
            shadow = each.shadow + start - each.low
            self._device.copy(buffer.address + start - low, shadow, end - start, self._stream)
        return replace(view, address=buffer.address + view.address - low, readonly=False, owner=buffer)

    def holder(self, view: ArrayView) -> Holder:
        """Object that an array of a derivative keeps alive, so that the memory is not used for anything else."""
        buffer = view.owner.buffer if isinstance(view.owner, Region) else view.owner
        known = self._holders.get(buffer.address)
        found = known() if known is not None else None
        if found is None:
            found = Holder()
            self._holders[buffer.address] = weakref.ref(found)
        return found

    def release(self) -> None:
        """Gives the memory back, but for that of arrays that somebody holds, which comes back when they are dropped."""
        held: list[tuple[Holder, Buffer]] = []
        for buffer in [*(region.buffer for region in self._regions), *self._joined]:
            known = self._holders.pop(buffer.address, None)
            holder = known() if known is not None else None
            if holder is None:
                self._device.pool.give(buffer, self._stream)
            else:
                held.append((holder, buffer))
        leases = self._device.pool.leave([buffer for _, buffer in held], self._stream)
        for (holder, _), lease in zip(held, leases, strict=True):
            holder.lease = lease
        self._regions, self._lows, self._joined = [], [], []
