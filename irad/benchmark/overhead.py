"""What a call costs that does nothing: the part of a time that does not depend on the work."""

from __future__ import annotations

from functools import partial
from typing import Any

import numba
import numpy as np

import irad
from irad.benchmark.clock import time_interleaved
from irad.frontend.generated import function_from


def _nothing(count: int) -> Any:
    """A compiled function of so many parameters: tuples of star arguments would take longer to pass."""
    parameters = ", ".join(f"x{i}" for i in range(count))
    source = f"def nothing({parameters}):\n    return 0.0\n"
    return numba.njit(function_from("nothing", source, "irad.benchmark", {}))


def call_overhead(values: tuple[Any, ...], positions: tuple[int, ...], rounds: int) -> dict[str, float]:
    """CPU seconds of a call from Python, of a function and of its value-and-gradient, that compute nothing.

    Args:
        values: the arguments of the calls; of arrays one without elements is passed, of the same type, of lists one
            with the first item.
        positions: of those that there is a gradient of.
        rounds: samples.
    """
    little = tuple(map(_little, values))
    nothing = _nothing(len(little))
    runs = {"primal": partial(nothing, *little), "gradient": partial(irad.value_and_grad(nothing, positions), *little)}
    timings = time_interleaved(runs, rounds)
    return {name: timing.median for name, timing in timings.items()}


def _little(value: Any) -> Any:
    if isinstance(value, np.ndarray) and value.ndim:
        return value[:0]
    return value[:1] if isinstance(value, list) else value
