"""Runs kernels on the executor, for tests that compare with NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numba
import numpy as np
from numba import cuda

from irad.backend.executor.kernel import load
from irad.backend.executor.launch import Extent
from irad.backend.executor.scheduler import IN_ORDER, Schedule
from irad.cuda.devices.device import numpy_view
from irad.frontend.cuda.exceptions import RECORD_SIZE, exception_of
from irad.frontend.cuda.program import flatten, load_kernel

Size = int | tuple[int, ...]


def run(
    kernel: Callable[..., Any],
    grid: Size,
    block: Size,
    arguments: Sequence[Any],
    *,
    shared: int = 0,
    schedule: Schedule = IN_ORDER,
    races: bool = False,
    types: Sequence[Any] | None = None,
    **options: Any,
) -> None:
    """Launches a kernel, and raises what it raises.

    Args:
        kernel: a plain function or what `numba.cuda.jit` made.
        types: of the arguments, if not those that Numba finds.
        options: of `numba.cuda.jit`, for a plain function.
    """
    kernel = kernel if hasattr(kernel, "py_func") else cuda.jit(**options)(kernel)
    found = tuple(types or map(numba.typeof, arguments))
    program = load_kernel(kernel, found)
    executable = load(program.module, races=races)
    record = np.zeros(RECORD_SIZE, np.uint8)
    flat = [*flatten(program.signature, arguments), *[record.ctypes.data] * program.raises]
    memory = [*extents(*arguments), Extent(record.ctypes.data, record.nbytes, "the record of exceptions", 4)]
    executable.run(_three(grid), _three(block), flat, dynamic_shared=shared, schedule=schedule, extents=memory)
    error = exception_of(record.tobytes())
    if error is not None:
        raise error


def extents(*values: Any) -> list[Extent]:
    """The memory of arrays, and of those in tuples."""
    found = []
    for number, value in enumerate(values):
        if isinstance(value, tuple):
            found += extents(*value)
        elif isinstance(value, np.ndarray | np.void):
            low, high = numpy_view(value).extent
            found.append(Extent(low, high - low, f"argument {number}", value.dtype.itemsize))
    return found


def _three(size: Size) -> tuple[int, int, int]:
    sizes = (size,) if isinstance(size, int) else size
    x, y, z = (*sizes, 1, 1)[:3]
    return x, y, z
