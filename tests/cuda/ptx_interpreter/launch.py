"""Runs PTX on memory of the host, as the driver would, in one order of threads."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.cuda.ptx_interpreter.building import build
from tests.cuda.ptx_interpreter.machine import IN_STEP, Machine, Order, Size
from tests.cuda.ptx_interpreter.memory import Region
from tests.cuda.ptx_interpreter.syntax import Variable, parse


def launch(
    ptx: str,
    grid: Size,
    block: Size,
    arguments: Sequence[Any],
    regions: Sequence[Region],
    *,
    shared: int = 0,
    order: Order = IN_STEP,
    races: bool = True,
) -> None:
    """Runs the only kernel of a module; the regions hold what it leaves.

    Args:
        arguments: numbers, and addresses as integers.
        shared: bytes of dynamic shared memory.
        races: whether accesses that nothing orders are faults.

    Raises:
        PtxFault: the kernel is wrong.
    """
    program = parse(ptx)
    machine = Machine(program, grid, block, regions, dynamic_shared=shared, order=order, races=races)
    build(machine)
    parameters = program.entry.parameters
    machine.run([packed(each, value) for each, value in zip(parameters, arguments, strict=True)])


def packed(parameter: Variable, value: Any) -> bytes:
    """An argument as the bytes of a parameter."""
    size = parameter.size
    if isinstance(value, float | np.floating):
        return np.array(value, f"<f{size}").tobytes()
    return (int(value) % (1 << 8 * size)).to_bytes(size, "little")


def region_of(address: int, size: int, name: str = "", itemsize: int = 1) -> Region:
    """A copy of memory of this process."""
    return Region(address, np.frombuffer(ctypes.string_at(address, size), np.uint8).copy(), name, itemsize)
