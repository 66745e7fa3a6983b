"""A benchmark of a kernel's derivative."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Arrays = dict[str, Any]
Launch = tuple[Any, Any]


@dataclass(frozen=True)
class GpuCase:
    """A kernel with the reverse kernel that an expert would write.

    Attributes:
        name: of the case.
        kernel: of `numba.cuda.jit`; its arguments go by name.
        make: arrays and numbers by name, for a size.
        active: names of what is differentiated; arrays have shadows ``d`` + name, numbers arrays of one element.
        output: the name of the array that the kernel writes.
        hand: adds to the shadows what irad adds to them, from ``d`` + output; it may launch several kernels.
        launch: grid and block for a size.
        size: of the benchmark: beyond the caches of today's GPUs.
        small: for tests.
        traffic: bytes that any derivative has to move, for a size.
        why: purpose of the case.
    """

    name: str
    kernel: Any
    make: Callable[[int, np.random.Generator], Arrays]
    active: tuple[str, ...]
    output: str
    hand: Callable[[Launch, Arrays], None]
    launch: Callable[[int], Launch]
    size: int
    small: int
    traffic: Callable[[int], int]
    why: str


def blocks_of(threads: int) -> Callable[[int], Launch]:
    """Launches with a thread for each element, in blocks of ``threads``."""
    return lambda size: (-(-size // threads), threads)
