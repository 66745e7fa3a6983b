"""Launches with a tape that are captured in a CUDA graph: nobody can wait for their report.

Slices are as large as launches before have found out. If a thread wants more when the graph runs, the derivatives
become NaN on the device, and a word that all graphs share says so, for `check_graphs`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from irad.cuda.calls.vectors import is_contiguous, on_vectors, prepare, spoil, words_at
from irad.cuda.devices.current import current_device
from irad.cuda.devices.device import ArrayView, Device
from irad.cuda.devices.pool import Buffer
from irad.errors import BackendError, TapeLimitError
from irad.frontend.calls.raising import public

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
    """Makes what a launch computes NaN if its tape was too small.

    Args:
        device: that it runs on.
        written: arrays that the kernel writes to.
        shadows: where derivatives are.
        report: of the launch.
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
        "run the step once on the same stream, let go of its tape (tape.reset()), then capture it",
        "how large the tape must be is found out by running",
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
            "a launch in a CUDA graph wanted more tape than it has; what it computed is NaN",
            "run the step once with these values outside of the graph, which finds out how much it takes, and capture "
            "it again",
            "the graph was captured with the tape that earlier launches had wanted",
        )
