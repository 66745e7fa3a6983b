"""Timing: interleaved samples of CPU time."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

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
        runs: what to time; each is called before, so that none is compiled while it is timed.
        rounds: samples of each function; every round times all functions once.
        before: called before each call, and not timed: it puts back what the functions write.
        sample_ns: how long a sample takes at least.
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
