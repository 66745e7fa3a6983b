"""Runs kernels on the executor, for tests that compare with NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numba
from numba import cuda

from irad.backend.executor.kernel import load
from irad.backend.executor.schedule import IN_ORDER, Schedule
from irad.frontend.cuda.arguments import flatten
from irad.frontend.cuda.program import load_kernel

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
    """Launches a kernel.

    Args:
        kernel: a plain function or what `numba.cuda.jit` made.
        types: of the arguments, if not those that Numba finds.
        options: of `numba.cuda.jit`, for a plain function.
    """
    kernel = kernel if hasattr(kernel, "py_func") else cuda.jit(**options)(kernel)
    found = tuple(types or map(numba.typeof, arguments))
    program = load_kernel(kernel, found)
    executable = load(program.module, races=races)
    executable.run(
        _three(grid), _three(block), flatten(program.signature, arguments), dynamic_shared=shared, schedule=schedule
    )


def _three(size: Size) -> tuple[int, int, int]:
    sizes = (size,) if isinstance(size, int) else size
    x, y, z = (*sizes, 1, 1)[:3]
    return x, y, z
