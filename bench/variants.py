"""The functions that are compared, compiled and checked against each other."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any
from unittest.mock import patch

import numpy as np
from numba import njit

from bench.case import Case

HAND_FLAGS: dict[str, set[str]] = {"hand": set(), "hand reassoc": {"reassoc"}}


def make_variants(case: Case, *, with_irad: bool, against: Sequence[str] = ()) -> dict[str, Callable[..., Any]]:
    """Primal, hand-written adjoints and irad's gradient of a case, by the names of the report.

    The hand-written adjoint is compiled twice: as strictly as the primal, and with leave to reorder its sums, which is
    what irad does with the sums of an adjoint. The faster one is the yardstick; ``hand_opt``, where there is one, is
    not. With ``against``, see `irad_against`, irad's gradient is there a second time.
    """
    variants: dict[str, Callable[..., Any]] = {"primal": case.primal}
    if not case.is_drawn:
        again = njit(error_model="numpy", fastmath=HAND_FLAGS["hand reassoc"])
        variants |= {"hand": case.hand, "hand reassoc": again(python_function(case.hand))}
    if case.hand_opt is not None:
        variants["hand_opt"] = case.hand_opt
    if with_irad:
        variants["irad"] = irad_gradient(case)
        if against:
            variants["against"] = irad_against(case, against)
    return variants


def irad_gradient(case: Case) -> Callable[..., Any]:
    """Irad's ``(value, gradients)`` of a case."""
    import irad  # here, so that the cases can be tested and timed alone

    return irad.value_and_grad(case.primal, argnums=case.argnums)


def settings_of(settings: Sequence[str]) -> tuple[Any, set[str]]:
    """Options of irad, and the passes to leave out.

    Args:
        settings: ``name=value`` for a field of `irad.Options`, or the name of a pass of `irad.passes.pipeline` or
            `irad.backend.optimise`, which is left out.

    Raises:
        ValueError: there is no such field or pass.
    """
    import irad  # as above
    from irad.backend.optimise import REWRITES, SHAPES
    from irad.passes.pipeline import PIPELINE

    passes = {*SHAPES, *REWRITES, *(each.name for each in PIPELINE)}
    pairs = dict(setting.split("=", 1) for setting in settings if "=" in setting)
    left_out = {setting for setting in settings if "=" not in setting}
    fields = {each.name for each in dataclasses.fields(irad.Options)}
    if unknown := [*sorted(pairs.keys() - fields), *sorted(left_out - passes)]:
        raise ValueError(f"{unknown[0]!r} is neither an option of irad nor a pass")
    known: dict[str, Any] = {"True": True, "False": False, "None": None}
    values = {name: known.get(text, int(text) if text.isdecimal() else text) for name, text in pairs.items()}
    return irad.Options(**values), left_out


def irad_against(case: Case, settings: Sequence[str]) -> Callable[..., Any]:
    """Irad's ``(value, gradients)`` with other settings, as for `settings_of`, to find what a mechanism is worth.

    Without a pass that others rely on, the derivative fails or is wrong.
    """
    import irad  # as above
    from irad.backend import optimise
    from irad.passes import pipeline

    options, left_out = settings_of(settings)
    passes = tuple(each for each in pipeline.PIPELINE if each.name not in left_out)
    shapes, rewrites = (
        {name: run for name, run in table.items() if name not in left_out}
        for table in (optimise.SHAPES, optimise.REWRITES)
    )
    # Another function, so that nothing is shared with the derivative that it is compared with.
    again = njit(error_model="numpy")(python_function(case.primal))
    gradient = irad.value_and_grad(again, argnums=case.argnums, options=options)
    is_compiled = False

    def run(*args: Any) -> Any:
        nonlocal is_compiled
        if is_compiled:
            return gradient(*args)
        is_compiled = True
        with (
            patch.object(pipeline, "PIPELINE", passes),
            patch.multiple(optimise, SHAPES=shapes, REWRITES=rewrites),
        ):
            return gradient(*args)

    return run


def python_function(dispatcher: Callable[..., Any]) -> Callable[..., Any]:
    """Python function that a dispatcher was made from."""
    function: Callable[..., Any] = getattr(dispatcher, "py_func")  # noqa: B009 - Numba's dispatcher is untyped
    return function


def largest_error(found: tuple[float, tuple[Any, ...]], expected: tuple[float, tuple[Any, ...]]) -> float:
    """Largest difference over value and gradients, each relative to the largest entry of what is expected."""
    pairs = [(found[0], expected[0]), *zip(found[1], expected[1], strict=True)]
    return max(float(np.max(np.abs(np.subtract(a, b))) / np.max(np.abs(b))) for a, b in pairs)
