"""``python -m bench.compile_times [CASE]...``: how long gradients take to compile, beside Numba's time for the primal.

The protocol, also that of ``python -m bench``: a fresh process, since Numba and LLVM keep what they compiled; small
functions go through Numba and irad first, as both load parts of themselves, and compile functions of NumPy, when these
are first used; then the primal is compiled, and after it the gradient. What counts is the CPU time of the first call
less that of the second. The ratio is that of two times of one process; of several processes the median counts.
"""

from __future__ import annotations

import json
import math
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import click
import numpy as np
from numba import njit

from bench.case import Case
from bench.cases import CASES, find
from bench.variants import irad_gradient


def measure(case: Case, *, with_irad: bool) -> dict[str, float]:
    """Seconds of CPU time to compile primal, irad's gradient and hand-written adjoint, by the name of the variant.

    With irad also the parts of its time, by the names of `bench.array_code.measure.STAGES`.
    """
    command = [sys.executable, "-m", "bench.compile_times", "--worker", case.name, "irad" if with_irad else ""]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    times: dict[str, float] = json.loads(done.stdout)
    return times


def _first_call(function: Callable[..., Any], args: tuple[Any, ...]) -> float:
    start = time.process_time()
    function(*args)
    first = time.process_time() - start
    start = time.process_time()
    function(*args)
    return first - (time.process_time() - start)


@njit(error_model="numpy")
def _numbers(x: Any, n: int) -> Any:
    """Loops, branches and mathematics."""
    total = 0.0
    for i in range(n):
        if x > 0.5 * i:
            total += math.exp(-x) * math.sqrt(x) + math.log(1.0 + x * x) - math.sin(x) ** 2
    return total


@njit(error_model="numpy")
def _arrays(x: Any, rows: Any) -> Any:
    """Array expressions, slices, reductions, new arrays."""
    y = np.zeros_like(x)
    y[1:] = 0.5 * (x[1:] + x[:-1]) ** 2
    z = np.empty((rows.shape[0], 3))
    for i in range(rows.shape[0]):
        z[i] = rows[i, :3] * y[0] + np.exp(rows[i, 0])
    return y.sum() + np.sum(z * z)


@njit(error_model="numpy")
def _parts(x: Any, k: Any) -> Any:
    """A called function, a tuple, integers that index."""
    a, b = _pair(x[k[0]], x[-1])
    return a * b + x.copy()[k[1]]


@njit(error_model="numpy")
def _pair(a: Any, b: Any) -> Any:
    return max(a, b), abs(a - b)


def _warm_up(*, with_irad: bool) -> None:
    """Loads what is loaded when it is first used, whatever is compiled."""
    x, rows, k = np.ones(4), np.ones((3, 3)), np.array([0, 1])
    for function, args in ((_numbers, (1.0, 3)), (_arrays, (x, rows)), (_parts, (x, k))):
        function(*args)
        if with_irad:
            import irad  # here, so that the cases can be timed alone

            irad.value_and_grad(function)(*args)


def _times(name: str, *, with_irad: bool) -> dict[str, float]:
    """The times of a case, in this process, which has compiled nothing before."""
    case = find(name)
    args = case.make("small")
    _warm_up(with_irad=with_irad)
    times = {"primal": _first_call(case.primal, args)}
    if with_irad:
        from bench.array_code.measure import timed  # of irad

        stages = dict[str, float]()
        with timed(stages):
            times["irad"] = _first_call(irad_gradient(case), args)
        times |= stages
    if not case.is_drawn:  # the last, as it leaves functions of NumPy compiled that the gradient needs as well
        times["hand"] = _first_call(case.hand, args)
    return times


@click.command()
@click.argument("names", nargs=-1, metavar="[CASE]...")
@click.option("--rounds", default=3, show_default=True, type=click.IntRange(1), help="Processes for each case.")
def main(names: tuple[str, ...], rounds: int) -> None:
    """CPU seconds to compile primal and gradient, and the parts of the latter. Without CASE all are measured."""
    stages = ("lower", "normalise", "derive", "optimise", "emit")
    click.echo(f"{'case':20}{'primal':>8}{'irad':>8}{'ratio':>8}" + "".join(f"{each:>11}" for each in stages))
    ratios = []
    for case in [find(name) for name in names] or CASES:
        runs = [measure(case, with_irad=True) for _ in range(rounds)]
        ratios.append(statistics.median(run["irad"] / run["primal"] for run in runs))
        middle = [statistics.median(run.get(each, 0.0) for run in runs) for each in ("primal", "irad", *stages)]
        primal, irad, *parts = (f"{each:.3f}" for each in middle)
        line = f"{case.name:20}{primal:>8}{irad:>8}{ratios[-1]:>8.2f}" + "".join(f"{each:>11}" for each in parts)
        click.echo(line)
    click.echo(f"geometric mean {statistics.geometric_mean(ratios):.2f}, largest {max(ratios):.2f}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        print(json.dumps(_times(sys.argv[2], with_irad=sys.argv[3] == "irad")))
    else:
        main()
