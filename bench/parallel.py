"""``python -m bench.parallel``: the gradients of parallel stencils with one thread and with more.

On a machine that does other things, too, wall time says little. So the CPU time is shown beside it: of all threads
together, and of the calling thread, which takes part in every parallel loop and waits for the others asleep
(``OMP_WAIT_POLICY=passive``, set here). The latter, with one thread over with several, is the speedup that the code
would have on a quiet machine, as long as lanes are even.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("GOMP_SPINCOUNT", "0")

import click
import numba
import numpy as np
from numba import njit, prange

import irad


@njit(parallel=True, error_model="numpy")
def line(a: Any, c: float) -> float:
    """A stencil of three points and a sum: little work for much memory."""
    b = np.zeros_like(a)
    for i in prange(1, a.size - 1):
        b[i] = c * (a[i - 1] - 2 * a[i] + a[i + 1])
    s = 0.0
    for i in prange(a.size):
        s += b[i] * b[i]
    return s


@njit(parallel=True, error_model="numpy")
def plane(u: Any, c: float) -> float:
    """A nonlinear stencil of five points, ten times as much work."""
    new = u.copy()
    for i in prange(1, u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            flow = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4 * u[i, j]
            new[i, j] = u[i, j] + c * np.tanh(flow)
    s = 0.0
    for i in prange(u.shape[0]):
        for j in range(u.shape[1]):
            s += new[i, j] ** 2
    return s


@click.command()
@click.option("--size", default=1_000_000, help="Elements.")
@click.option("--threads", default=2)
@click.option("--rounds", default=25)
def main(size: int, threads: int, rounds: int) -> None:
    """Prints medians in milliseconds."""
    side = int(size**0.5)
    cases = (
        ("line", line, np.random.default_rng(0).uniform(size=size)),
        ("plane", plane, np.random.default_rng(0).uniform(size=(side, side))),
    )
    for name, primal, array in cases:
        for kind, function in (("primal", primal), ("gradient", irad.grad(primal, argnums=(0, 1)))):
            one, many = _measure(function, (array, 0.3), (1, threads), rounds)
            print(f"{name:6} {kind:9} {one}   {many}   speedup {one.calling / many.calling:.2f}")


class _Times:
    """Medians in milliseconds: wall, CPU of all threads, CPU of the calling thread."""

    def __init__(self, samples: list[tuple[float, float, float]]) -> None:
        self.wall, self.total, self.calling = (1e3 * statistics.median(column) for column in zip(*samples, strict=True))

    def __str__(self) -> str:
        return f"wall {self.wall:8.3f}  cpu {self.total:8.3f}  calling {self.calling:8.3f}"


def _measure(
    function: Callable[..., Any], arguments: tuple[Any, ...], threads: tuple[int, int], rounds: int
) -> list[_Times]:
    """Interleaved samples with each number of threads."""
    samples: dict[int, list[tuple[float, float, float]]] = {count: [] for count in threads}
    clocks = (time.perf_counter, time.process_time, time.thread_time)
    for number in range(rounds + 2):
        for count in threads:
            numba.set_num_threads(count)
            start = [clock() for clock in clocks]
            function(*arguments)
            wall, total, calling = (clock() - before for clock, before in zip(clocks, start, strict=True))
            if number >= 2:
                samples[count].append((wall, total, calling))
    return [_Times(samples[count]) for count in threads]


if __name__ == "__main__":
    main()
