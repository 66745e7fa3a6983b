"""Programs of array expressions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class ArrayProgram:
    """One function of arrays and small arguments for it: what is measured is how long it takes to compile.

    Attributes:
        name: as on the command line.
        title: one-line description of the computation.
        primal: an njit function that returns a float and leaves its arguments as they are.
        make: makes the arguments.
        argnums: positions of the arguments whose gradient is asked for.
    """

    name: str
    title: str
    primal: Callable[..., float]
    make: Callable[[], tuple[Any, ...]]
    argnums: tuple[int, ...]
