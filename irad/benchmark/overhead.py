"""What a call costs that does nothing: the part of a time that does not depend on the work."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

import irad
from irad.benchmark.clock import time_interleaved


@numba.njit  # type: ignore[untyped-decorator]
def _nothing(*_: Any) -> float:
    return 0.0


def call_overhead(values: tuple[Any, ...], positions: tuple[int, ...], rounds: int) -> dict[str, float]:
    """CPU seconds of a call from Python, of a function and of its value-and-gradient, that compute nothing.

    Args:
        values: the arguments of the calls; of arrays one without elements is passed, of the same type.
        positions: of those that there is a gradient of.
        rounds: samples.
    """
    little = tuple(value[:0] if isinstance(value, np.ndarray) and value.ndim else value for value in values)
    gradient = irad.value_and_grad(_nothing, argnums=positions)
    runs = {"primal": lambda: _nothing(*little), "gradient": lambda: gradient(*little)}
    timings = time_interleaved(runs, rounds)
    return {name: timing.median for name, timing in timings.items()}
