"""Runs adjoints that are written as Python, and compares them with compiled ones."""

from __future__ import annotations

import copy
from typing import Any

import numba
import numpy as np

import irad
from irad.decompile.text import PythonText, adjoint_as_python
from irad.options import Options


def python(function: Any, args: tuple[Any, ...], positions: tuple[int, ...], plan: Any = "default") -> PythonText:
    """The adjoint for the types of the arguments."""
    return adjoint_as_python(function, tuple(map(numba.typeof, args)), positions, Options(plan=plan))


def positions_of(args: tuple[Any, ...]) -> tuple[int, ...]:
    """The arguments that hold floats."""
    return tuple(i for i, argument in enumerate(args) if holds_floats(argument))


def holds_floats(argument: Any) -> bool:
    """Whether any number in an argument is a float."""
    if isinstance(argument, tuple):
        return any(map(holds_floats, argument))
    return isinstance(argument, float | np.floating) or (
        isinstance(argument, np.ndarray) and argument.dtype.kind == "f"
    )


def run(text: PythonText, args: tuple[Any, ...], *cotangents: Any, exact: bool = True) -> Any:
    """What the source returns; floats are numpy's, which do not raise where compiled code does not."""
    function = text.namespace(exact=exact)[text.name]
    with np.errstate(all="ignore"):
        return function(*(np.float64(a) if type(a) is float else copy.deepcopy(a) for a in args), *cotangents)


def assert_equal(found: Any, wanted: Any, tolerance: float) -> None:
    """Numbers, arrays, and tuples of them."""
    if isinstance(wanted, tuple):
        assert len(found) == len(wanted)
        for a, b in zip(found, wanted, strict=True):
            assert_equal(a, b, tolerance)
    elif wanted is None:
        assert found is None
    else:
        np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)


def assert_as_compiled(
    function: Any, args: tuple[Any, ...], plan: Any = "default", *, forms: tuple[bool, ...] = (True, False)
) -> None:
    """Both forms of the source give value and gradient of the compiled function, or all raise the same."""
    positions = positions_of(args)
    text = python(function, args, positions, plan)
    is_single = any(getattr(argument, "dtype", None) == np.float32 for argument in args)
    try:
        wanted = irad.value_and_grad(function, positions)(*copy.deepcopy(args))
    except Exception as error:
        for exact in forms:
            try:
                run(text, args, exact=exact)
            except type(error) as found:
                assert str(found) == str(error)  # noqa: PT017
            else:
                raise AssertionError(f"the source does not raise {error!r}") from None
        return
    for exact in forms:
        value, gradient = run(text, args, exact=exact)
        found = (value, (gradient,) if len(positions) == 1 else gradient)
        assert_equal(found, wanted, 1e-5 if is_single else 1e-12)
