"""Derivatives of test kernels, compared with differences of the reference in NumPy, and with each other."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np
from numba import cuda

import irad
import irad.cuda
from tests.cuda.case import Case
from tests.cuda.kernels import KERNELS


@dataclass(frozen=True)
class Place:
    """Where kernels run: how an array gets there, and back."""

    there: Callable[[Any], Any]
    back: Callable[[Any], Any]

    def bring(self, value: Any) -> Any:
        return self.there(value) if isinstance(value, np.ndarray) else value

    def fetch(self, value: Any, like: Any) -> Any:
        return self.back(value) if isinstance(like, np.ndarray) else value


HOST: Final = Place(lambda array: array, lambda array: array)
"""The memory of NumPy, for the executor."""


def tolerance_of(case: Case) -> float:
    """Rounding of the precision that a kernel computes in."""
    single = any(getattr(each, "dtype", None) == np.float32 for each in case.fresh())
    return 2e-5 if single else 1e-11


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


def reverse(
    case: Case, cotangents: dict[int, Any], place: Place = HOST, **options: Any
) -> tuple[tuple[Any, ...], dict[int, Any]]:
    """The arguments after the launch, and the derivative with respect to each active one."""
    given = case.fresh()
    arguments = tuple(map(place.bring, given))
    shadows = {p: place.bring(each.copy()) for p, each in cotangents.items() if isinstance(each, np.ndarray)}
    annotated = [irad.Const(each) for each in arguments]
    for p in case.active:
        annotated[p] = irad.Duplicated(arguments[p], shadows[p]) if p in shadows else irad.Active(arguments[p])
    derivative = irad.cuda.grad(compiled(case.name), **options)
    returned = derivative[case.grid, case.block, 0, case.shared](*annotated)
    found = {p: place.back(shadows[p]) if p in shadows else returned[p] for p in case.active}
    return tuple(map(place.fetch, arguments, given)), found


def forward(case: Case, tangents: dict[int, Any], place: Place = HOST) -> tuple[tuple[Any, ...], dict[int, Any]]:
    """The arguments after the launch, and the tangents of those that are arrays."""
    given = case.fresh()
    arguments = tuple(map(place.bring, given))
    shadows = {p: place.bring(copy(each)) for p, each in tangents.items()}
    annotated = [irad.Const(each) for each in arguments]
    for p in case.active:
        annotated[p] = irad.Duplicated(arguments[p], shadows[p])
    irad.cuda.autodiff(irad.Forward, compiled(case.name))[case.grid, case.block, 0, case.shared](*annotated)
    found = {p: place.back(shadows[p]) for p, each in tangents.items() if isinstance(each, np.ndarray)}
    return tuple(map(place.fetch, arguments, given)), found


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
