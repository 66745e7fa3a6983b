"""Launches with a tape: each thread has a slice of one buffer.

How much threads want is known when they have run. So what the launch changes is copied before; if a slice was too
small, it is put back, and the kernel runs again with larger slices. A launch that uses a tape therefore waits until it
is done. Where slices may not become large enough, the derivative that counts says which line saves most.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from irad.backend.executor.launch import Extent
from irad.cuda.calls.memory import Copy, put_back
from irad.cuda.calls.vectors import is_contiguous, on_vectors, prepare, spoil, words_at
from irad.cuda.calls.watching import WatchedLaunch
from irad.cuda.devices.current import current_device
from irad.cuda.devices.device import ArrayView, Device, Launch
from irad.cuda.devices.pool import Buffer
from irad.debug.tape import ALLOW_MORE, Measurement, largest_named, shown
from irad.errors import BackendError, SourceLocation, TapeLimitError
from irad.frontend.calls.raising import public
from irad.kernel.derive import KernelDerivative
from irad.kernel.wrapper import report_words
from irad.runtime_layouts import WARP

# Launches with a tape that are captured in a CUDA graph: nobody can wait for their report.
#
# Slices are as large as launches before have found out. If a thread wants more when the graph runs, the derivatives
# become NaN on the device, and a word that all graphs share says so, for `check_graphs`.

_WORD: Final = 8
_REPORT_WORDS: Final = 2


def prepare_capture(device: Device, shadows: Sequence[ArrayView], stream: int) -> None:
    """Makes everything ready that a later capture of the launch needs; it is not captured itself."""
    if not device.pool.can_be_captured:
        return
    if device.pool.status is None:
        device.pool.status = device.pool.take(_WORD, stream)
        device.clear(device.pool.status.address, _WORD, stream)
    status = words_at(device.pool.status.address, 1, device.pool.status)
    for dtype in sorted({view.dtype.str for view in shadows}):
        view = next(view for view in shadows if view.dtype.str == dtype)
        prepare(device, spoil, view, status, status)


def spoil_if_failed(
    device: Device, written: Sequence[ArrayView], shadows: Sequence[ArrayView], report: Buffer, stream: int
) -> None:
    """Sets the results of a launch to NaN if its tape was too small.

    Args:
        device: that it runs on.
        written: arrays that the kernel writes to.
        shadows: where derivatives are.
        report: report of the launch.
        stream: on which it is captured.

    Raises:
        BackendError: no such launch has run before.
    """
    status = device.pool.status
    assert status is not None
    words = words_at(report.address, _REPORT_WORDS, report), words_at(status.address, 1, status)
    for view in (*shadows, *(each for each in written if is_contiguous(each))):
        if view.dtype.kind in "fc":
            on_vectors(device, spoil, view, *words, stream=stream)


def never_launched(name: str) -> BackendError:
    """The error for a launch that is captured before it has run."""
    return BackendError(
        f"the derivative of {name} uses a tape, and its first launch is captured in a CUDA graph",
        "run the step once on the same stream, release its tape (tape.reset()), then capture it",
        "the size of the tape is known only after a run",
    )


@public
def check_graphs() -> None:
    """Raises an error if a launch in a CUDA graph wanted more tape than it has; waits until everything is done.

    The derivatives that such a launch computes are NaN. Launches outside of graphs need no check.

    Raises:
        TapeLimitError: there was such a launch since the last call.

    Examples:
        >>> import irad
        >>> with irad.cuda.executor():
        ...     irad.cuda.check_graphs()
    """
    device = current_device()
    if device.pool.status is None:
        return
    device.synchronize()
    address = device.pool.status.address
    if any(device.download(address, _WORD, 0)):
        device.clear(address, _WORD, 0)
        raise TapeLimitError(
            "a launch in a CUDA graph needed more tape than it has; its results are NaN",
            "run the step once with these values outside the graph, which determines the size of the tape, and "
            "capture it again",
            "the graph was captured with as much tape as earlier launches had needed",
        )


_SLICE: Final = 64
"""Slices grow in multiples of it; the tape has whole words, and slices for whole warps."""
_FIRST_SLICE: Final = 256  # bytes; a launch that needs more runs again with larger slices
# More bytes than any process has addresses for.
_NO_LIMIT: Final = 1 << 47


@dataclass(slots=True)
class TapeUse:
    """Known facts about the tape of a derivative.

    Attributes:
        slice: bytes for each thread, as far as is known.
        wanted: bytes that the thread with the largest tape used in the last launch.
        threads: threads of that launch.
        measured: bytes that the launch saved, by place, if they are measured.
    """

    slice: int = _FIRST_SLICE
    wanted: int = 0
    threads: int = 0
    measured: Measurement | None = None


@dataclass(frozen=True, slots=True)
class TapedLaunch:
    """One launch of a derivative that uses a tape.

    Attributes:
        derivative: the kernel to launch.
        metered: makes the derivative that counts what is saved.
        source: the user's kernel.
        device, launch: where and how.
        arguments: those in front of the tape.
        shared: bytes of dynamic shared memory that the primal sees.
        memory: memory that the kernel may access besides the tape.
        saved: copies of what the launch changes.
        lend: gives a buffer of a size for the time of the launch.
        tape: tape of this derivative.
        limit: the most bytes of the tape, None where there is no limit.
        watched: in debug mode, what is reported.
    """

    derivative: KernelDerivative
    metered: Callable[[], KernelDerivative]
    source: SourceLocation
    device: Device
    launch: Launch
    arguments: Sequence[int | float]
    shared: int
    memory: Sequence[Extent]
    saved: Sequence[Copy]
    lend: Callable[[int], Buffer]
    tape: TapeUse
    limit: int | None
    watched: WatchedLaunch | None = None

    def captured(self) -> Buffer:
        """Launches the kernel once, in a capture, with the slices that are known; gives the report.

        Raises:
            BackendError: no launch before has found out how large they must be.
        """
        if not self.tape.threads:
            raise never_launched(self.source.function)
        return self.sent(self.derivative, min(self.tape.slice, self.largest_slice))

    def run(self) -> None:
        """Launches the kernel, as often as it takes until the slices are large enough.

        Raises:
            TapeLimitError: they would exceed the limit; everything is as it was before.
        """
        most = self.largest_slice
        while True:
            tried = min(self.tape.slice, most)
            wanted, failed, *units = self.launched(self.derivative, tried)
            units = units[: len(self.derivative.derivative.tape)]
            if not failed:
                self.tape.wanted, self.tape.threads = wanted, self.launch.threads
                self.tape.measured = self.measurement(self.derivative, units) if units else None
                return
            self.put_back()
            if tried == most or wanted > most:
                raise self.limit_error(wanted)
            self.tape.slice = -(-max(wanted, 2 * tried) // _SLICE) * _SLICE

    @property
    def padded_threads(self) -> int:
        """Number of threads that have a slice, in whole warps."""
        return padded(self.launch.threads)

    @property
    def largest_slice(self) -> int:
        """Bytes that the limit leaves for each thread."""
        most = _NO_LIMIT if self.limit is None else self.limit
        return most // self.padded_threads // _WORD * _WORD

    def launched(self, derivative: KernelDerivative, slice_: int) -> tuple[int, ...]:
        """Launches a derivative, with slices of a size; gives the words of the report."""
        report, length = self.sent(derivative, slice_), _WORD * report_words(derivative.derivative)
        return tuple(np.frombuffer(self.device.download(report.address, length, self.launch.stream), np.int64).tolist())

    def sent(self, derivative: KernelDerivative, slice_: int) -> Buffer:
        """Launches a derivative, and does not wait; gives the memory of the report."""
        stream, size = self.launch.stream, self.padded_threads * slice_
        length = _WORD * report_words(derivative.derivative)
        buffer, report = self.device.pool.tape(size, stream), self.lend(length)
        self.device.clear(report.address, length, stream)
        if derivative.derivative.table is not None and self.watched is not None:
            number = self.watched.opened().to_bytes(_WORD, "little")
            self.device.upload(report.address + length - _WORD, number, stream)
        trailing = (buffer.address, slice_, report.address, self.shared)
        within = (Extent(buffer.address, size, "the tape"), Extent(report.address, length, "the report", _WORD))
        self.device.launch(derivative.module, self.launch, [*self.arguments, *trailing], [*self.memory, *within])
        return report

    def put_back(self) -> None:
        """Undoes the changes of the launch."""
        put_back(self.device, self.saved, self.launch.stream)

    def measurement(self, derivative: KernelDerivative, units: Sequence[int]) -> Measurement:
        """Memory that a launch saved; each thread has one frame, which is the last place."""
        return Measurement(derivative.derivative.tape, (*units[:-1], self.launch.threads))

    def limit_error(self, wanted: int) -> TapeLimitError:
        """The error to raise: a thread wanted ``wanted`` bytes, and had not done."""
        metered = self.metered()
        _, _, *units = self.launched(metered, self.largest_slice)
        units = units[: len(metered.derivative.tape)]
        self.put_back()
        uses = [use for use in self.measurement(metered, units).uses() if use.storage != "frame"]
        function, threads = self.source.function, self.launch.threads
        total = wanted * self.padded_threads
        problem = (
            f"the tape of {function} takes at least {shown(total)}, {wanted} for each of {threads} threads in whole "
            f"warps, but max_tape_bytes is {shown(self.limit or 0)}"
        )
        remedies = (
            ALLOW_MORE,
            "launch fewer threads, which take several elements each",
            f"shorten that loop; irad.tape_report({function}[blocks, threads], …) lists all lines",
        )
        return largest_named(problem, remedies, self.source, uses)


def padded(threads: int) -> int:
    """Number of slices of a tape for some threads: those of whole warps."""
    return -(-threads // WARP) * WARP
