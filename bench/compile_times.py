"""Compile times of a case, in a fresh process: ``python -m bench.compile_times CASE`` prints JSON."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

from bench.case import Case
from bench.cases import find
from bench.variants import irad_gradient


def measure(case: Case, *, with_irad: bool) -> dict[str, float]:
    """Seconds of CPU time to compile primal, hand-written adjoint and irad's gradient, by the name of the variant.

    A process of its own, because Numba and LLVM keep what they compiled.
    """
    command = [sys.executable, "-m", "bench.compile_times", case.name, "irad" if with_irad else ""]
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


def _warm_up(*, with_irad: bool) -> None:
    """Load Numba, LLVM and irad: the first compilation of a process pays for that, whatever it compiles."""

    @njit(error_model="numpy")
    def square(x: Any) -> Any:
        total = 0.0
        for value in x:
            total += value * value
        return total

    square(np.ones(3))
    if with_irad:
        import irad  # here, so that the cases can be timed alone

        irad.value_and_grad(square)(np.ones(3))


def _main(name: str, irad_wanted: str) -> None:
    with_irad = irad_wanted == "irad"
    case = find(name)
    args = case.make("small")
    _warm_up(with_irad=with_irad)
    times = {"primal": _first_call(case.primal, args)}
    if not case.is_drawn:
        times["hand"] = _first_call(case.hand, args)
    if with_irad:
        times["irad"] = _first_call(irad_gradient(case), args)
    print(json.dumps(times))


if __name__ == "__main__":
    _main(*sys.argv[1:])
