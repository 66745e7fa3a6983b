"""The device of launches: that of the innermost `executor()`, the executor of the process, or the GPU."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any, Final

from irad.backend.cuda.limits import limits_of
from irad.backend.executor.scheduler import IN_ORDER, Schedule
from irad.cuda.devices.device import Device
from irad.cuda.devices.emulated import EmulatedDevice
from irad.cuda.devices.gpu import gpu
from irad.options import uses_cuda_executor

_EXECUTOR: Final[ContextVar[EmulatedDevice | None]] = ContextVar("irad.cuda.executor", default=None)
RECORDING: Final[ContextVar[Any]] = ContextVar("irad.cuda.Tape", default=None)
"""Record of the tape that records: launches and copies ask for it."""


@contextmanager
def executor(*, schedule: Schedule = IN_ORDER, races: bool = False, gpu: str | None = None) -> Iterator[EmulatedDevice]:
    """Runs kernels on the CPU, on NumPy arrays, as long as the block lasts: no GPU, driver or toolkit is needed.

    That holds for kernels of ``numba.cuda.jit`` and of `irad.cuda.jit`, for their derivatives and for a `Tape`.
    ``numba.cuda.to_device``, ``device_array``, ``stream``, ``event``, ``synchronize`` and their relatives have
    stand-ins there, so that host code runs unchanged. ``IRAD_CUDA_EXECUTOR=1`` does the same for a whole process.

    Args:
        schedule: the order in which threads and blocks run, by default that of their numbers. A GPU promises none: a
            kernel that is right gives the same result under each of ``irad.cuda.SCHEDULES``, but for the order of
            atomic additions.
        races: look for accesses of different threads to the same memory that nothing orders, and for accesses outside
            of the arrays that were passed: they raise `RaceError` and `KernelBoundsError`. It takes longer.
        gpu: an architecture, as ``"sm_90"``: launches that do not fit such a GPU are refused, for registers, shared,
            constant and parameter memory, or the size of grid and blocks. Registers are counted by ptxas, which must be
            on this machine. Without it, what no GPU would launch is refused, registers aside.

    Raises:
        BackendError: irad does not compile for that GPU.

    Yields:
        The device; ``launches`` counts kernels, ``pool.allocations`` the buffers of tapes and copies.

    Examples:
        >>> import irad.cuda
        >>> import numpy as np
        >>> from numba import cuda
        >>> @cuda.jit
        ... def square(x, y):
        ...     i = cuda.grid(1)
        ...     if i < x.size:
        ...         y[i] = x[i] * x[i]
        >>> x, y = np.array([1.0, 2.0, 3.0]), np.zeros(3)
        >>> with irad.cuda.executor():
        ...     square[1, 32](x, y)
        >>> y
        array([1., 4., 9.])
    """
    if gpu is not None:
        limits_of(gpu)
    token = _EXECUTOR.set(EmulatedDevice(schedule, races=races, gpu=gpu))
    try:
        device = _EXECUTOR.get()
        assert device is not None
        yield device
    finally:
        _EXECUTOR.reset(token)


def emulated() -> EmulatedDevice | None:
    """The executor that launches go to, None where they go to a GPU."""
    found = _EXECUTOR.get()
    if found is None and uses_cuda_executor():
        return _of_process()
    return found


def current_device() -> Device:
    """The device that launches go to.

    Raises:
        BackendError: there is neither a GPU nor an executor.
    """
    return emulated() or gpu()


@cache
def _of_process() -> EmulatedDevice:
    return EmulatedDevice()
