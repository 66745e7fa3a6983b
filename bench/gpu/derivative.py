"""The derivative of a case by irad, and arrays for both: on a GPU, or on the executor."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

import numpy as np

import irad
import irad.cuda
from bench.gpu.case import Arrays, GpuCase, Launch

Place = Callable[[np.ndarray[Any, Any]], Any]
"""Brings an array to where kernels run."""


def arrays_of(case: GpuCase, size: int, place: Place, seed: int = 0) -> Arrays:
    """Arguments and shadows, the same for the same seed; the cotangent of the output is random."""
    rng = np.random.default_rng(seed)
    given = case.make(size, rng)
    shadows = {f"d{name}": np.zeros(np.shape(given[name]) or 1) for name in case.active}
    shadows[f"d{case.output}"] = rng.random(given[case.output].shape)
    everything = given | shadows
    return {name: place(value) if isinstance(value, np.ndarray) else value for name, value in everything.items()}


def primal(case: GpuCase, launch: Launch, arrays: Arrays) -> None:
    """Launches the kernel itself."""
    case.kernel[launch](*(arrays[name] for name in parameters(case)))


def reverse(case: GpuCase, launch: Launch, arrays: Arrays) -> None:
    """Launches irad's derivative."""
    with_shadow = {*case.active, case.output}
    given = (
        irad.Duplicated(arrays[name], arrays[f"d{name}"]) if name in with_shadow else irad.Const(arrays[name])
        for name in parameters(case)
    )
    irad.cuda.grad(case.kernel)[launch](*given)


def parameters(case: GpuCase) -> list[str]:
    """Names of the kernel's arguments."""
    return list(signature(case.kernel.py_func).parameters)
