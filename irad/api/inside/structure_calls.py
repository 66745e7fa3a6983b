"""The functions over structures inside compiled code: written for the types that Numba finds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numba.core import types
from numba.extending import overload

from irad.api.nopython import literal
from irad.api.structures.functions import (
    accumulate,
    copy,
    dot,
    from_vec,
    leaves,
    make_zero,
    make_zero_,
    norm,
    one_hot,
    recursive_map,
    recursive_map_,
    recursive_map_into,
    remake_zero_,
    to_vec,
)
from irad.errors import HERE, SignatureError
from irad.frontend.generated import function_from
from irad.frontend.structures import functions
from irad.frontend.structures.functions import COPY, ZERO, Call
from irad.frontend.structures.walk import Operation


def _is_default(value: Any) -> bool:
    """Whether an argument of a call is what it is by default: None or False."""
    if isinstance(value, types.Omitted | types.Literal):
        value = getattr(value, "literal_value", getattr(value, "value", None))
    return value is None or value is False or value == types.none


def check_options(name: str, **options: Any) -> None:
    """Refuses options that are about objects of Python.

    Raises:
        SignatureError: one is not what it is by default.
    """
    for option, value in options.items():
        if not _is_default(value):
            raise SignatureError(
                f"compiled code passes {option}= to {name}",
                f"(a) leave it out or (b) call {name} from Python",
                "compiled code knows types, where these options are about objects of Python",
                HERE,
            )


_OPTIONS = "seen=None, copy_if_inactive=False, inactive=None"


def _new(function: Callable[..., Any], operation: Operation) -> None:
    name = f"irad.data.{function.__name__}"

    def typed(x: Any, seen: Any = None, copy_if_inactive: Any = False, inactive: Any = None) -> Callable[..., Any]:
        check_options(name, seen=seen, copy_if_inactive=copy_if_inactive, inactive=inactive)
        return functions.make(Call(name, f"x, {_OPTIONS}"), operation, {"x": x})

    overload(function, prefer_literal=True, strict=False)(typed)


def _cleared(function: Callable[..., Any], *, keeps: bool) -> None:
    name = f"irad.data.{function.__name__}"

    def typed(x: Any, inactive: Any = None) -> Callable[..., Any]:
        check_options(name, inactive=inactive)
        return functions.overwrite(Call(name, "x, inactive=None"), ZERO, {"x": x}, {"x": x}, keeps=keeps)

    overload(function, strict=False)(typed)


def _of_one(function: Callable[..., Any], write: Callable[..., Any]) -> None:
    name = f"irad.data.{function.__name__}"

    def typed(x: Any, inactive: Any = None) -> Callable[..., Any]:
        check_options(name, inactive=inactive)
        made: Callable[..., Any] = write(Call(name, "x, inactive=None"), {"x": x})
        return made

    overload(function, strict=False)(typed)


@overload(dot, strict=False)
def _dot(x: Any, y: Any, inactive: Any = None) -> Callable[..., Any]:
    check_options("irad.data.dot", inactive=inactive)
    return functions.dot(Call("irad.data.dot", "x, y, inactive=None"), {"x": x, "y": y})


@overload(from_vec, strict=False)
def _from_vec(vector: Any, like: Any, inactive: Any = None) -> Callable[..., Any]:
    check_options("irad.data.from_vec", inactive=inactive)
    return functions.from_vec(Call("irad.data.from_vec", "vector, like, inactive=None"), "vector", "like", like)


@overload(accumulate, prefer_literal=True, strict=False)
def _accumulate(x: Any, y: Any, f: Any = None, atomic: Any = False, inactive: Any = None) -> Callable[..., Any]:
    name = "irad.data.accumulate"
    check_options(name, atomic=atomic, inactive=inactive)
    operation = functions.sum_with(None if _is_default(f) else "f")
    call = Call(name, "x, y, f=None, atomic=False, inactive=None")
    return functions.overwrite(call, operation, {"x": x, "y": y}, {"x": x})


# --- functions that are mapped ----------------------------------------------------------------------------------------

_MOST_INPUTS: Final = 8
_INPUTS: Final = tuple(f"a{i}" for i in range(_MOST_INPUTS))
_ABSENT: Final = "irad: no argument"
_NAMED: Final = {"outputs": "1", "seen": "None", "copy_if_inactive": "False", "inactive": "None"}


def _overload_map(function: Callable[..., Any], write: Callable[..., Any], before: str, *, without: str = "") -> None:
    """Tells Numba of one of these functions: it takes the parameters of a call from those that are written out."""
    name = f"irad.data.{function.__name__}"
    named = {option: default for option, default in _NAMED.items() if option != without}
    inputs, options = (", ".join(f"{each}=_absent" for each in _INPUTS), ", ".join(map("=".join, named.items())))
    head = f"{before}, {inputs}, {options}"
    given = ", ".join(f"{option}={option}" for option in named if option != "outputs")
    body = f"    return typed({before}, ({', '.join(_INPUTS)}), outputs, dict({given}))\n"
    scope = {"_absent": _ABSENT}

    def typed(f: Any, *rest: Any) -> Callable[..., Any]:
        *given_output, arguments, outputs, chosen = rest
        check_options(name, **chosen)
        kinds = {each: kind for each, kind in zip(_INPUTS, arguments, strict=True) if isinstance(kind, types.Type)}
        count = literal(outputs, "outputs")
        operation = functions.mapped("f", f, len(kinds), count)
        found: Callable[..., Any] = write(Call(name, head, scope=scope), operation, kinds, *given_output, count)
        return found

    typing = function_from("typing", f"def typing({head}):\n{body}", "irad.data", {"typed": typed, **scope})
    overload(function, prefer_literal=True, strict=False)(typing)


def _map_into(returns: bool) -> Callable[..., Any]:
    def write(call: Call, operation: Any, kinds: dict[str, Any], output: Any, count: int) -> Callable[..., Any]:
        outputs = {"output": output}
        if count > 1:
            outputs = {f"output[{i}]": output.types[i] for i in range(count)}
        return functions.overwrite(call, operation, kinds, outputs, returns=returns)

    return write


_overload_map(recursive_map, functions.make, "f")
_overload_map(recursive_map_into, _map_into(True), "f, output", without="copy_if_inactive")
_overload_map(recursive_map_, _map_into(False), "f, output", without="copy_if_inactive")


@overload(one_hot, strict=False)
def _one_hot(x: Any, index: Any, inactive: Any = None) -> Callable[..., Any]:
    check_options("irad.data.one_hot", inactive=inactive)

    def made(x, index, inactive=None):  # type: ignore[no-untyped-def]
        vector = np.zeros(len(to_vec(x)))
        if index < 0 or index >= len(vector):
            raise SignatureError(
                "there is no such element in the structure",
                "pass an index from 0 on, of an element of irad.data.to_vec(x)",
                "what is shared counts once, a complex number twice",
                HERE,
            )
        vector[index] = 1.0
        return from_vec(vector, x)

    return made


_new(make_zero, ZERO)
_new(copy, COPY)
_cleared(make_zero_, keeps=False)
_cleared(remake_zero_, keeps=True)
_of_one(norm, functions.norm)
_of_one(to_vec, functions.to_vec)
_of_one(leaves, functions.leaves)
