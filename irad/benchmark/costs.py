"""Costs of a call: interleaved samples of CPU time, the peak of memory, and a call that does nothing."""

from __future__ import annotations

import ctypes
import gc
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import numba
import numpy as np

import irad
from irad.frontend.generated import function_from

Run = Callable[[], Any]
Clock = Callable[[], int]

SAMPLE_NS: Final = 10_000_000  # long against the resolution of the clock and the timing loop


@dataclass(frozen=True)
class Timing:
    """CPU seconds of one call, a sample per round."""

    samples: tuple[float, ...]

    @property
    def median(self) -> float:
        """The middle sample."""
        return statistics.median(self.samples)

    @property
    def spread(self) -> float:
        """Distance of the quartiles over the median; above 0.1 the machine was busy and the figures are rough."""
        low, _, high = statistics.quantiles(self.samples, n=4)
        return (high - low) / self.median


def time_interleaved(
    runs: Mapping[str, Run],
    rounds: int,
    *,
    before: Run | None = None,
    sample_ns: int = SAMPLE_NS,
    clock: Clock = time.thread_time_ns,
) -> dict[str, Timing]:
    """CPU time of each function, in turns, so that a slow moment of the machine meets all of them.

    Args:
        runs: functions to time; each is called once before, so that none is compiled while it is timed.
        rounds: samples of each function; every round times all functions once.
        before: called before each call, and not timed: it puts back what the functions write.
        sample_ns: minimum duration of a sample.
        clock: nanoseconds; of the thread that calls, unless another one is given: work on other threads is not seen.

    Returns:
        One timing per name, ``rounds`` samples each.
    """
    sample = _sampler(clock) if before is None else _sampler_with(before, clock)
    repeats = {name: _calls_per_sample(run, sample, sample_ns) for name, run in runs.items()}
    samples: dict[str, list[float]] = {name: [] for name in runs}
    collecting = gc.isenabled()
    gc.disable()
    try:
        for _ in range(rounds):
            for name, run in runs.items():
                samples[name].append(sample(run, repeats[name]))
    finally:
        if collecting:
            gc.enable()
    return {name: Timing(tuple(values)) for name, values in samples.items()}


def _calls_per_sample(run: Run, sample: Callable[[Run, int], float], sample_ns: int) -> int:
    if min(1e9 * sample(run, 1) for _ in range(2)) > 10 * sample_ns:  # the first call may have compiled it
        return 1
    return max(1, round(sample_ns / max(1.0, 1e9 * min(sample(run, 1) for _ in range(3)))))


def _sampler(clock: Clock) -> Callable[[Run, int], float]:
    def sample(run: Run, repeats: int) -> float:
        start = clock()
        for _ in range(repeats):
            run()
        return (clock() - start) / (1e9 * repeats)

    return sample


def _sampler_with(before: Run, clock: Clock) -> Callable[[Run, int], float]:
    def sample(run: Run, repeats: int) -> float:
        total = 0
        for _ in range(repeats):
            before()
            start = clock()
            run()
            total += clock() - start
        return max(total, 1) / (1e9 * repeats)

    return sample


# How much memory a call takes at its peak, as Linux counts it.

_PROCESS: Final = Path("/proc/self")


def peak_bytes(run: Run) -> int | None:
    """Peak of resident memory that one call adds to the process; None if the system does not count it.

    Pages that an earlier call left with the allocator are given back first. What is held longer than a call, as
    compiled code, does not count: ``run`` has been called before.
    """
    try:
        ctypes.CDLL(None).malloc_trim(0)  # glibc's
        (_PROCESS / "clear_refs").write_text("5")  # the peak is from now on
        before = _status("VmRSS")
        run()
        return max(_status("VmHWM") - before, 0)
    except (AttributeError, OSError):
        return None


def _status(name: str) -> int:
    for line in (_PROCESS / "status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return 1024 * int(line.split()[1])
    raise OSError(f"no {name} in /proc/self/status")


# What a call costs that does nothing: the part of a time that does not depend on the work.


def _nothing(count: int) -> Any:
    """A compiled function of ``count`` parameters: tuples of star arguments would take longer to pass."""
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
