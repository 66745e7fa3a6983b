"""The functions that are compared, compiled and checked against each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

from bench.case import Case

HAND_FLAGS: dict[str, set[str]] = {"hand": set(), "hand reassoc": {"reassoc"}}


def make_variants(case: Case, *, with_irad: bool) -> dict[str, Callable[..., Any]]:
    """Primal, hand-written adjoints and irad's gradient of a case, by the names of the report.

    The hand-written adjoint is compiled twice: as strictly as the primal, and with leave to reorder its sums, which is
    what irad does with the sums of an adjoint. The faster one is the yardstick; ``hand_opt``, where there is one, is
    not.
    """
    variants: dict[str, Callable[..., Any]] = {"primal": case.primal}
    for name, flags in HAND_FLAGS.items():
        variants[name] = njit(error_model="numpy", fastmath=flags)(python_function(case.hand)) if flags else case.hand
    if case.hand_opt is not None:
        variants["hand_opt"] = case.hand_opt
    if with_irad:
        variants["irad"] = irad_gradient(case)
    return variants


def irad_gradient(case: Case) -> Callable[..., Any]:
    """Irad's ``(value, gradients)`` of a case."""
    import irad  # here, so that the cases can be tested and timed alone

    return irad.value_and_grad(case.primal, argnums=case.argnums)


def python_function(dispatcher: Callable[..., Any]) -> Callable[..., Any]:
    """Python function that a dispatcher was made from."""
    function: Callable[..., Any] = getattr(dispatcher, "py_func")  # noqa: B009 - Numba's dispatcher is untyped
    return function


def largest_error(found: tuple[float, tuple[Any, ...]], expected: tuple[float, tuple[Any, ...]]) -> float:
    """Largest difference over value and gradients, each relative to the largest entry of what is expected."""
    pairs = [(found[0], expected[0]), *zip(found[1], expected[1], strict=True)]
    return max(float(np.max(np.abs(np.subtract(a, b))) / np.max(np.abs(b))) for a, b in pairs)
