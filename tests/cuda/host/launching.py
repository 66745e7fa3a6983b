"""Derivatives of test kernels, compared with differences of the reference in NumPy, and with each other."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numba import cuda

import irad
import irad.cuda
from tests.cuda.case import Case
from tests.cuda.kernels import KERNELS


@cache
def compiled(name: str) -> Any:
    """The kernel, compiled once for all tests."""
    return cuda.jit(KERNELS[name].kernel)


def directions(case: Case, seed: int) -> dict[int, Any]:
    """A random number for each element of the active arguments."""
    rng = np.random.default_rng(seed)
    return {p: _like(case.fresh()[p], rng) for p in case.active}


def _like(value: Any, rng: np.random.Generator) -> Any:
    if isinstance(value, np.ndarray):
        return rng.normal(size=value.shape).astype(value.dtype)
    return float(rng.normal())


def inner(left: dict[int, Any], right: dict[int, Any]) -> float:
    return float(sum(np.sum(np.asarray(left[p], float) * np.asarray(right[p], float)) for p in left))


def reverse(case: Case, cotangents: dict[int, Any], **options: Any) -> tuple[tuple[Any, ...], dict[int, Any]]:
    """The arguments after the launch, and the derivative with respect to each active one."""
    arguments = case.fresh()
    shadows = {p: each.copy() for p, each in cotangents.items() if isinstance(each, np.ndarray)}
    annotated = [irad.Const(each) for each in arguments]
    for p in case.active:
        annotated[p] = irad.Duplicated(arguments[p], shadows[p]) if p in shadows else irad.Active(arguments[p])
    derivative = irad.cuda.grad(compiled(case.name), **options)
    returned = derivative[case.grid, case.block, 0, case.shared](*annotated)
    return arguments, {p: shadows.get(p, returned[p]) for p in case.active}


def forward(case: Case, tangents: dict[int, Any]) -> tuple[tuple[Any, ...], dict[int, Any]]:
    """The arguments after the launch, and the tangents of those that are arrays."""
    arguments = case.fresh()
    shadows = {p: each.copy() if isinstance(each, np.ndarray) else each for p, each in tangents.items()}
    annotated = [irad.Const(each) for each in arguments]
    for p in case.active:
        annotated[p] = irad.Duplicated(arguments[p], shadows[p])
    irad.cuda.autodiff(irad.Forward, compiled(case.name))[case.grid, case.block, 0, case.shared](*annotated)
    return arguments, {p: each for p, each in shadows.items() if isinstance(each, np.ndarray)}


def difference(case: Case, tangents: dict[int, Any], step: float) -> dict[int, Any]:
    """How the reference changes the arrays in a direction: a central difference."""
    ends = []
    for sign in (1.0, -1.0):
        moved = list(case.fresh())
        for p, each in tangents.items():
            moved[p] = (np.asarray(moved[p], float) + sign * step * np.asarray(each, float))[()]
        case.reference(*moved)
        ends.append(moved)
    arrays = [p for p, each in tangents.items() if isinstance(each, np.ndarray)]
    return {p: (ends[0][p] - ends[1][p]) / (2.0 * step) for p in arrays}
