"""Debug mode of a launch: NaNs and infinities before and after it, and the thread that produced them."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from irad.cuda.devices.device import Launch
from irad.debug.events import Record, close_call, install, nonfinite, open_call, watched_by
from irad.debug.verdict import check_result, warn_of_ties
from irad.driver import MarkKind
from irad.kernel.derive import KernelDerivative
from irad.kernel.wrapper import BLOCK_NUMBER, THREAD_NUMBER

Named = Sequence[tuple[str, Any]]


@dataclass(slots=True)
class WatchedLaunch:
    """One launch of a derivative in debug mode.

    Args:
        name: name of the kernel.
        derivative: the launched derivative.
        launch: configuration of the launch.
        inputs: arrays, shadows and numbers before the launch, by what messages call them.
    """

    name: str
    derivative: KernelDerivative
    launch: Launch
    inputs: Named
    _number: int = 0
    _record: Record | None = None
    _before: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        derivative = self.derivative.derivative
        install(derivative.table, derivative.places, {})
        found = ((name, nonfinite(value)) for name, value in self.inputs)
        self._before = {name: bad for name, bad in found if bad is not None}

    def opened(self) -> int:
        """The number of the watched call; only the reports of the last call are kept."""
        self.close()
        self._number, self._record = open_call(watched_by(self.derivative.derivative.table))
        self._record.inputs.update(self._before)
        self._record.where = self.thread_in_words
        return self._number

    def close(self) -> None:
        """Ends the call: what it told is asked for no more by generated code."""
        if self._number:
            close_call(self._number)

    def thread_in_words(self, head: int) -> str:
        """The thread in which something happened, in words.

        Args:
            head: address of the head of its tape.
        """
        block, thread = (ctypes.c_int64.from_address(head + at).value for at in (BLOCK_NUMBER, THREAD_NUMBER))
        return f"thread {_along(thread, self.launch.block)} of block {_along(block, self.launch.grid)}"

    def conclude(self, outputs: Named) -> None:
        """Warns of ties, and raises an error for NaNs and infinities.

        Args:
            outputs: as ``inputs``, after the launch.

        Raises:
            NonFiniteError: something is that was not before.
        """
        assert self._record is not None
        warn_of_ties(self._record.of_kind(MarkKind.TIE))
        new = [(name, value) for name, value in outputs if name.removesuffix(" after the call") not in self._before]
        check_result(self.name, self._record, new)


def _along(number: int, sizes: Sequence[int]) -> tuple[int, int, int]:
    """Coordinates of a number, x fastest."""
    return number % sizes[0], number // sizes[0] % sizes[1], number // (sizes[0] * sizes[1])
