"""Compile times of one program, in a fresh process: ``python -m bench.array_code.measure PROGRAM`` prints JSON."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numba import njit
from numba.core.codegen import CPUCodeLibrary

import irad
from bench.array_code import BY_NAME
from bench.array_code.program import ArrayProgram
from irad.frontend import derivation
from irad.frontend.numba import cpu

# What the time goes to: where the function stands, its name. Nested ones are not counted twice.
STAGES: dict[str, tuple[tuple[Any, str], ...]] = {
    "lower": ((cpu, "_compile"),),  # Numba: types, LLVM text
    "normalise": ((cpu, "_load"),),  # linking, LLVM's scalar pipeline
    "derive": ((derivation, "derive"),),  # irad: parser, analyses, sweeps, printer
    "optimise": ((CPUCodeLibrary, "_optimize_functions"), (CPUCodeLibrary, "_optimize_final_module")),
    "emit": ((CPUCodeLibrary, "_finalize_final_module"),),
}


def measure(name: str) -> dict[str, float]:
    """Seconds of CPU time: of the plain function's first call, the gradient's, and the gradient's by stage.

    A process of its own, because Numba and LLVM keep what they compiled.
    """
    command = [sys.executable, "-m", "bench.array_code.measure", name]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    times: dict[str, float] = json.loads(done.stdout)
    return times


@njit
def _warm_up(x: Any) -> Any:
    """Compiles the first array expression of a process: parts of Numba are loaded, others compiled themselves."""
    y = x.copy()
    y[1:-1, 1:-1] = 0.5 * (x[1:-1, 1:-1] + x[:-2, 2:]) ** 2
    y[0, :] = 0.0
    y[:, 0] = x[:, 1]
    z = np.zeros_like(y)
    z[1:, 1:, ...] += y[:-1, :-1]
    return np.sum(z)


@contextmanager
def timed(spent: dict[str, float]) -> Iterator[None]:
    """Adds the time of each stage up; a stage inside another one counts as that."""
    inside: list[str] = []
    originals = [(owner, name, getattr(owner, name)) for places in STAGES.values() for owner, name in places]

    def counted(stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            if inside:
                return function(*args, **kwargs)
            inside.append(stage)
            start = time.process_time()
            try:
                return function(*args, **kwargs)
            finally:
                spent[stage] = spent.get(stage, 0.0) + time.process_time() - start
                inside.pop()

        return call

    for stage, places in STAGES.items():
        for owner, name in places:
            setattr(owner, name, counted(stage, getattr(owner, name)))
    try:
        yield
    finally:
        for owner, name, original in originals:
            setattr(owner, name, original)


def compile_times(program: ArrayProgram) -> dict[str, float]:
    """CPU seconds to compile a program and its gradient in this process, where it has not been called yet."""
    args = program.make()
    start = time.process_time()
    program.primal(*args)
    primal = time.process_time() - start
    stages: dict[str, float] = {}
    gradient = irad.value_and_grad(program.primal, argnums=program.argnums)
    with timed(stages):
        start = time.process_time()
        gradient(*args)
        total = time.process_time() - start
    return {"primal": primal, "gradient": total, **stages}


def _main(name: str) -> None:
    small = np.ones((4, 4), np.float32)
    _warm_up(small)
    irad.value_and_grad(_warm_up)(small)
    print(json.dumps(compile_times(BY_NAME[name])))


if __name__ == "__main__":
    _main(*sys.argv[1:])
