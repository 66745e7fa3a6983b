"""From an entry to a function of floats with a float as its value, and its check."""

from __future__ import annotations

import ast
import cmath
import functools
import heapq
import linecache
import math
import operator
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numba
import numpy as np
import pytest
from numba import typed, types
from numba.core.errors import NumbaError
from numba.extending import overload
from numba.typed import Dict, List

import irad
from irad.data.copies import copied
from irad.data.floats import has_floats, read_floats, with_floats
from irad.errors import ActivityError, IradError, SignatureError, UnsupportedError
from irad.options import Options, PlanName
from irad.testing.gradients.slope import gradient
from tests.support.entries import Entry, Outcome
from tests.support.language import DAY, Shade
from tests.tools.catalogue import floats

ARGUMENTS: Final = {
    "x": lambda: floats(5),
    "y": lambda: floats(5, seed=1),
    "A": lambda: floats(3, 3) + np.eye(3),
    "B": lambda: floats(3, 3, seed=1),
    "u": lambda: 0.7,
    "v": lambda: 1.3,
    "n": lambda: 2,
    "k": lambda: np.array([2, 0, 3, 1, 2]),
    "m": lambda: np.array([True, False, True, True, False]),
    "t": lambda: "gradient",
    "g": lambda: np.random.default_rng(5),
    "M": lambda: floats(5).data,
}
"""The free names of a use, each with what makes its value."""

_SCOPE: Final = {
    "np": np, "math": math, "cmath": cmath, "operator": operator, "random": random, "functools": functools,
    "heapq": heapq, "numba": numba, "List": List, "Dict": Dict, "Set": getattr(typed, "Set", None),
    "Shade": Shade, "DAY": DAY,
}  # fmt: skip


def contracted(value):
    """A float that every number in a value has a part in, each with its own weight."""
    if isinstance(value, (tuple, list, np.ndarray)):
        entries = value.flat if isinstance(value, np.ndarray) else value
        return sum(((0.5 + 0.1 * i) * contracted(entry) for i, entry in enumerate(entries)), 0.0)
    return complex(value).real + 0.7 * complex(value).imag


@overload(contracted)
def _contracted(value):
    match value:
        case types.Complex():
            return lambda value: value.real + 0.7 * value.imag
        case types.Array():
            return _contracted_array
        case types.Tuple(count=0) | types.UniTuple(count=0):
            return lambda value: 0.0
        case types.BaseTuple():
            return lambda value: contracted(value[-1]) * (0.4 + 0.1 * len(value)) + contracted(value[:-1])
        case types.List() | types.ListType():
            return _contracted_list
        case types.Boolean():
            return lambda value: 1.0 if value else 0.0
        case types.Number():
            return lambda value: float(value)
    return None


def _contracted_array(value):
    total, weight = 0.0, 0.5
    for entry in value.flat:
        total += weight * contracted(entry)
        weight += 0.1
    return total


def _contracted_list(value):
    total, weight = 0.0, 0.5
    for entry in value:
        total += weight * contracted(entry)
        weight += 0.1
    return total


@dataclass(frozen=True, slots=True)
class Use:
    """An entry as a function with a float as its value.

    Attributes:
        plain: the Python function.
        function: compiled by Numba.
        make: makes its arguments.
    """

    plain: Callable[..., Any]
    function: Callable[..., Any]
    make: Callable[[], tuple[Any, ...]]


def use_of(entry: Entry) -> Use:
    """The function and the arguments of an entry."""
    if not isinstance(entry.use, str):
        arguments = entry.arguments
        return Use(entry.use, entry.use, lambda: copied(arguments))
    names = _free_names(entry.use)
    if entry.outcome is Outcome.CONSTANT and "u" not in names:
        names = (*names, "u")
    text = _text(entry, names)
    file = f"<{entry}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    scope = {**_SCOPE, "contracted": contracted}
    exec(compile(text, file, "exec"), scope)
    plain = scope["use"]
    return Use(plain, numba.njit(plain), lambda: tuple(ARGUMENTS[name]() for name in names))


def _free_names(source: str) -> tuple[str, ...]:
    tree = ast.parse("\n".join(_lines(source)))
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    stored = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    stored |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    used = {node.id for node in names} - stored
    return tuple(name for name in ARGUMENTS if name in used)


def _lines(source: str) -> list[str]:
    return [line.strip() for line in source.split(";")]


def _text(entry: Entry, names: Sequence[str]) -> str:
    assert isinstance(entry.use, str)
    *statements, result = _lines(entry.use)
    weight = " * u" if entry.outcome is Outcome.CONSTANT else ""
    body = [*statements, f"return contracted({result}){weight}"]
    return "\n    ".join([f"def use({', '.join(names)}):", *body]) + "\n"


def check(entry: Entry, plans: Sequence[PlanName] = ("default",)) -> None:
    """Checks what an entry says.

    Raises:
        AssertionError: it does not hold.
    """
    use = use_of(entry)
    match entry.outcome:
        case Outcome.REFUSED:
            _check_refused(entry, use)
        case Outcome.NUMBA_FAILS:
            with pytest.raises((NumbaError, NotImplementedError)):
                use.function(*use.make())
        case _:
            _check_derivative(entry, use, plans)


def _check_derivative(entry: Entry, use: Use, plans: Sequence[PlanName]) -> None:
    rounded = replace(entry, use=entry.reference, reference="")
    reference = use_of(rounded).plain if entry.reference else use.plain if entry.is_python else use.function
    if not entry.is_continuous:
        _check_draw(use, plans)
        return
    value, derivatives = _reference(reference, use.make)
    argnums = tuple(derivatives)
    for plan in plans:
        found, gradients = irad.value_and_grad(use.function, argnums, options=Options(plan=plan))(*use.make())
        np.testing.assert_allclose(
            found, value, rtol=1e-7 if entry.reference else 1e-12, err_msg=f"value (plan {plan})"
        )
        for position, gradient_found in zip(argnums, gradients, strict=True):
            wanted = derivatives[position]
            atol = entry.rtol * max(1e-3, float(np.max(np.abs(wanted), initial=0.0)))
            message = f"gradient with respect to argument {position} (plan {plan})"
            np.testing.assert_allclose(read_floats(gradient_found), wanted, entry.rtol, atol, err_msg=message)


def _check_draw(use: Use, plans: Sequence[PlanName]) -> None:
    argnums = tuple(i for i, a in enumerate(use.make()) if has_floats(a))
    for plan in plans:
        found, gradients = irad.value_and_grad(use.function, argnums, options=Options(plan=plan))(*use.make())
        assert found == use.function(*use.make())
        for found_gradient in gradients:
            leaves = read_floats(found_gradient)
            assert np.all(np.isfinite(leaves))
            assert np.all(leaves != 0.0)


def _check_refused(entry: Entry, use: Use) -> None:
    arguments = use.make()
    argnums = tuple(i for i, a in enumerate(arguments) if has_floats(a)) or (0,)
    with pytest.raises(IradError) as caught:
        irad.value_and_grad(use.function, argnums)(*arguments)
    message = str(caught.value)
    assert isinstance(caught.value, UnsupportedError | SignatureError | ActivityError), message
    assert entry.why in message, f"{entry.why!r} is not in: {message}"


def _reference(function: Callable[..., Any], make: Callable[[], tuple[Any, ...]]) -> tuple[float, dict[int, Any]]:
    """Value and differences by each argument that holds floats."""
    with np.errstate(all="ignore"):
        value = function(*make())
        derivatives = {}
        for position, argument in enumerate(make()):
            if has_floats(argument):
                found, errors = gradient(_along(function, make, position), read_floats(argument))
                limit = 1e-5 * max(1.0, float(np.max(np.abs(found), initial=0.0)))
                assert np.all(errors <= limit), f"differences by argument {position} do not converge: {errors}"
                derivatives[position] = found
    return value, derivatives


def _along(function: Callable[..., Any], make: Callable[[], tuple[Any, ...]], position: int) -> Callable[[Any], float]:
    def at(leaves: Any) -> float:
        arguments = list(make())
        arguments[position] = with_floats(arguments[position], leaves)
        return float(function(*arguments))

    return at
