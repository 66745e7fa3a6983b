"""Duration of launches."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median, quantiles
from typing import Protocol


class Clock(Protocol):
    """Takes the time of what a function launches."""

    def milliseconds(self, run: Callable[[], None]) -> float:
        """Time of one call."""
        ...


class DeviceClock:
    """Events of the GPU: what the launches take there, without the time of the host."""

    def milliseconds(self, run: Callable[[], None]) -> float:
        """Time of one call."""
        from numba import cuda  # needs a driver

        begin, end = cuda.event(), cuda.event()
        begin.record()
        run()
        end.record()
        end.synchronize()
        return float(cuda.event_elapsed_time(begin, end))


class HostClock:
    """The host's time: on the executor launches return when they are done."""

    def milliseconds(self, run: Callable[[], None]) -> float:
        """Time of one call."""
        begin = time.perf_counter()
        run()
        return 1e3 * (time.perf_counter() - begin)


@dataclass(frozen=True)
class Times:
    """Of several calls, in milliseconds; ``spread`` is the interquartile range over the median."""

    median: float
    spread: float


def take_times(clock: Clock, runs: dict[str, Callable[[], None]], rounds: int) -> dict[str, Times]:
    """Calls functions in turn: a change of the frequency meets all of them. A first round does not count."""
    taken: dict[str, list[float]] = {name: [] for name in runs}
    for number in range(rounds + 1):
        for name, run in runs.items():
            found = clock.milliseconds(run)
            if number:
                taken[name].append(found)
    return {name: _of(times) for name, times in taken.items()}


def _of(times: list[float]) -> Times:
    middle = median(times)
    if len(times) < 4:
        return Times(middle, 0.0)
    low, _, high = quantiles(times, n=4)
    return Times(middle, (high - low) / middle)
