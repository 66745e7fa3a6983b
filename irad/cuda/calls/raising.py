"""Exceptions of kernels compiled with ``debug=True``: threads record the first exception, the host raises it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from irad.backend.executor.launch import Extent
from irad.cuda.calls.flatten import Primal
from irad.cuda.calls.memory import copied, extents_of, merged, put_back
from irad.cuda.devices.device import ArrayView, Device
from irad.cuda.devices.pool import Buffer
from irad.errors import UnsupportedError
from irad.frontend.cuda.exceptions import RECORD_SIZE, exception_of


@contextmanager
def raising(
    device: Device, primal: Primal, stream: int, kept: Sequence[ArrayView] = ()
) -> Iterator[tuple[Extent, ...]]:
    """Raises the exception of the launch in the block, when it is done.

    Args:
        device: where.
        primal: the kernel.
        stream: stream of the launch.
        kept: arrays that are to be as they were before, if it raises.

    Yields:
        The memory of the record that the kernel takes after its arguments, nothing if it cannot raise.

    Raises:
        UnsupportedError: the kernel can raise, and the launch is captured in a CUDA graph.
        Exception: the exception of the first thread that raised one.
    """
    if not primal.program.raises:
        yield ()
        return
    if device.capture(stream):
        raise UnsupportedError(
            f"{primal.name} is compiled with debug=True, and its launch is captured in a CUDA graph",
            "capture the kernel without debug=True",
            "exceptions of its threads are known only after they have run, and a captured launch has not run when it "
            "returns",
            primal.program.source,
        )
    with ExitStack() as stack:

        def lend(size: int) -> Buffer:
            return stack.enter_context(device.pool.lent(size, stream))

        copies = copied(device, merged(extents_of(kept)), lend, stream)
        record = lend(RECORD_SIZE).address
        device.clear(record, RECORD_SIZE, stream)
        yield (Extent(record, RECORD_SIZE, "the record of exceptions", 4),)
        error = exception_of(device.download(record, RECORD_SIZE, stream))
        if error is not None:
            put_back(device, copies, stream)
            raise error
