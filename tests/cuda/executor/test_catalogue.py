"""Numba's kernels on the executor compute what NumPy does, in every order and without races."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from irad.backend.executor.kernel import RunReport, load
from irad.backend.executor.launch import Extent
from irad.backend.executor.schedule import IN_ORDER, SCHEDULES, Schedule
from irad.frontend.cuda.program import load_kernel
from tests.cuda.case import Case
from tests.cuda.kernels import CASES, KERNELS

cases = pytest.mark.parametrize("case", CASES, ids=list(KERNELS))


def flattened(argument: Any) -> list[Any]:
    """An argument as Numba passes it to a kernel."""
    match argument:
        case np.ndarray():
            head = [0, 0, argument.size, argument.itemsize, argument.ctypes.data]
            return [*head, *argument.shape, *argument.strides]
        case tuple():
            return [part for each in argument for part in flattened(each)]
        case complex():
            return [argument.real, argument.imag]
        case _:
            return [argument]


def three(sizes: int | tuple[int, ...]) -> tuple[int, int, int]:
    """Sizes along x, y, z."""
    given = (sizes,) if isinstance(sizes, int) else sizes
    x, y, z = (*given, 1, 1)[:3]
    return x, y, z


def launch(case: Case, arguments: tuple[Any, ...], *, races: bool = False, schedule: Schedule = IN_ORDER) -> RunReport:
    """Runs a kernel of the catalogue on its arguments."""
    kernel = load(load_kernel(case.kernel, case.types()).module, races=races)
    arrays = [each for each in arguments if isinstance(each, np.ndarray)]
    flat = [part for argument in arguments for part in flattened(argument)]
    extents = [Extent(a.ctypes.data, a.nbytes, f"array {n}", a.itemsize) for n, a in enumerate(arrays)]
    grid, block = three(case.grid), three(case.block)
    return kernel.run(grid, block, flat, dynamic_shared=case.shared, schedule=schedule, extents=extents)


@cases
def test_results_do_not_depend_on_the_order(case: Case):
    for schedule in SCHEDULES:
        arguments = case.fresh()
        launch(case, arguments, schedule=schedule)
        case.check(arguments)


@cases
def test_there_are_no_races(case: Case):
    for schedule in (IN_ORDER, SCHEDULES[-1]):
        arguments = case.fresh()
        launch(case, arguments, races=True, schedule=schedule)
        case.check(arguments)
