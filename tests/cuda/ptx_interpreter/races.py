"""Who touched each byte last: accesses that nothing orders.

Threads of a block are ordered by its barriers, those of a warp by the warp's. Threads of other blocks are not ordered
at all. Two accesses that nothing orders are a race unless both read or both are atomic.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from tests.cuda.ptx_interpreter.faults import RaceFault

_NOBODY: Final = 0
_SEVERAL: Final = -1


class Last:
    """The last accesses of a kind to each byte: thread, block and warp, counted from one, or that there were several;
    how many barriers the latest of them had passed. Zeros cost nothing before they are written: memory may be large."""

    def __init__(self, size: int) -> None:
        self.thread = np.zeros(size, np.int32)
        self.block = np.zeros(size, np.int32)
        self.warp = np.zeros(size, np.int32)
        self.passed = np.zeros(size, np.int32)
        self.warp_passed = np.zeros(size, np.int32)


class Log:
    """Of one launch.

    Args:
        size: of the memory.
        block, warp: of each thread.
    """

    def __init__(self, size: int, block: Any, warp: Any) -> None:
        self._block, self._warp = block.astype(np.int32) + 1, warp.astype(np.int32) + 1
        self.passed = np.zeros(len(block), np.int32)
        self.warp_passed = np.zeros(len(block), np.int32)
        self._kinds = {kind: Last(size) for kind in ("read", "write", "atomic")}
        self._constant = np.zeros(size, bool)

    def access(self, place: Any, threads: Any, size: int, kind: str, *, constant: bool = False) -> None:
        """Of threads to some bytes each.

        Args:
            kind: "read", "write" or "atomic".
            constant: whether the kernel promises that nobody writes there (`ld.global.nc`).

        Raises:
            RaceFault: it is a race.
        """
        bytes_ = (place[:, None] + np.arange(size)).ravel()
        who = np.repeat(threads, size)
        for other in {"read": ("write", "atomic"), "write": ("read", "write", "atomic"), "atomic": ("read", "write")}[
            kind
        ]:
            self._check(self._kinds[other], bytes_, who, f"{other} and {kind}")
        if constant:
            self._constant[bytes_] = True
        elif kind != "read" and self._constant[bytes_].any():
            raise RaceFault(f"thread {int(threads[0])} writes what was read as constant")
        if constant and any((self._kinds[other].thread[bytes_] != _NOBODY).any() for other in ("write", "atomic")):
            raise RaceFault(f"thread {int(threads[0])} reads as constant what the kernel writes")
        self._note(self._kinds[kind], bytes_, who, alone=kind == "write")

    def _check(self, last: Last, bytes_: Any, who: Any, what: str) -> None:
        thread = last.thread[bytes_]
        other = (thread != _NOBODY) & (thread != who + 1)
        if not other.any():
            return
        by_block = (last.block[bytes_] == self._block[who]) & (last.passed[bytes_] < self.passed[who])
        by_warp = (last.warp[bytes_] == self._warp[who]) & (last.warp_passed[bytes_] < self.warp_passed[who])
        racing = other & ~by_block & ~by_warp
        if racing.any():
            at = int(np.flatnonzero(racing)[0])
            first = int(thread[at])
            name = f"thread {first - 1}" if first != _SEVERAL else "several threads"
            raise RaceFault(f"{what} of the same memory: {name}, then thread {int(who[at])}")

    def _note(self, last: Last, bytes_: Any, who: Any, *, alone: bool) -> None:
        thread = who.astype(np.int32) + 1
        block, warp, passed, warp_passed = self._block[who], self._warp[who], self.passed[who], self.warp_passed[who]
        if alone:
            last.thread[bytes_] = thread
            if (last.thread[bytes_] != thread).any():
                raise RaceFault(
                    f"write and write of the same memory by one instruction, thread {int(who[0])} and others"
                )
            last.block[bytes_], last.warp[bytes_] = block, warp
            last.passed[bytes_], last.warp_passed[bytes_] = passed, warp_passed
            return
        before = last.thread[bytes_], last.block[bytes_], last.warp[bytes_]
        # What was before a barrier of all who did it is forgotten.
        over = (before[1] == block) & (last.passed[bytes_] < passed)
        over |= (before[2] == warp) & (last.warp_passed[bytes_] < warp_passed)
        for field, own, old in zip((last.thread, last.block, last.warp), (thread, block, warp), before, strict=True):
            field[bytes_] = own
            mixed = (field[bytes_] != own) | ((old != own) & (old != _NOBODY) & ~over)
            field[bytes_[mixed]] = _SEVERAL
        last.passed[bytes_] = np.maximum(np.where(over, 0, last.passed[bytes_]), passed)
        last.warp_passed[bytes_] = np.maximum(np.where(over, 0, last.warp_passed[bytes_]), warp_passed)
