"""``python -m bench.start_up``: what a process pays before derivatives run, and for the first of them.

CPU time of fresh processes, medians. A process in which Numba has compiled a function before irad is imported shows
what irad adds; the others show who pays for Numba's own start.
"""

from __future__ import annotations

import importlib
import json
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import click

ORDERS = {
    "numba alone": ("numba", "first function", "second function"),
    "after a function": ("numba", "first function", "irad", "first gradient", "second gradient", "third gradient"),
    "before any function": ("numba", "irad", "first gradient", "second gradient"),
}


def measured(order: str) -> dict[str, float]:
    """CPU seconds of each step of an order, in this process."""
    number = iter(range(9))
    x: Any = None

    def run(step: str) -> None:
        nonlocal x
        if step == "numba":
            x = importlib.import_module("numpy").ones(3)
            importlib.import_module("numba")
        elif step == "irad":
            _ = importlib.import_module("irad").grad
        else:
            function = _sum_of_squares(next(number))
            (importlib.import_module("irad").grad(function) if "gradient" in step else function)(x)

    return {step: _cpu_time(lambda step=step: run(step)) for step in ORDERS[order]}  # type: ignore[misc]


def _sum_of_squares(number: int) -> Any:
    """Another function each time, of the same code."""
    source = f"def f{number}(x):\n    s = 0.0\n    for i in range(x.size):\n        s += x[i] * x[i]\n    return s\n"
    scope: dict[str, Any] = {}
    exec(compile(source, "<bench.start_up>", "exec"), scope)
    return importlib.import_module("numba").njit(scope[f"f{number}"])


def _cpu_time(run: Callable[[], None]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start


@click.command()
@click.option("--rounds", type=click.IntRange(1), default=15, show_default=True, help="Processes for each order.")
def main(rounds: int) -> None:
    """CPU seconds of `import numba`, `import irad; irad.grad` and the first gradients of a process."""
    samples = defaultdict[tuple[str, str], list[float]](list)
    for _ in range(rounds):
        for order in ORDERS:
            done = subprocess.run(
                [sys.executable, "-m", "bench.start_up", "--", order], check=True, stdout=subprocess.PIPE, text=True
            )
            for step, seconds in json.loads(done.stdout).items():
                samples[order, step].append(seconds)
    for order, steps in ORDERS.items():
        click.echo(order)
        for step in steps:
            click.echo(f"  {step:16} {statistics.median(samples[order, step]):.3f} s")


if __name__ == "__main__":
    if "--" in sys.argv:
        print(json.dumps(measured(sys.argv[-1])))
    else:
        main()
