"""Arguments that compiled code cannot be given, by name, with what to pass instead."""

from __future__ import annotations

import decimal
import inspect
import numbers
import types
from collections.abc import Callable, Iterator, Mapping

import numba
import numpy as np
from numba import typeof
from numba.core.errors import NumbaError

from irad.data.structure import pieces
from irad.errors import BackendError, IradError, SignatureError
from irad.frontend.calls.annotations import AutodiffAnnotation
from irad.frontend.diagnosis.spelling import spelled
from irad.frontend.numba.cpu import location_of
from irad.frontend.packing.classes import Structure, shown_structure
from irad.message import with_article

_OBJECT = (
    "(a) pass the parts that the function needs as numbers, arrays or a named tuple or (b) make its class a "
    "numba.experimental.jitclass"
)
_REASON = "compiled code takes numbers, arrays, tuples, and Numba's own lists, dictionaries and classes"


def untypable(function: Callable[..., object], values: Mapping[str, object]) -> IradError | None:
    """What is wrong with the first argument that Numba cannot hold; None if it can hold all.

    Args:
        function: the function that is called.
        values: its arguments by name. What is a Numba type stands for a value of that type.
    """
    names = list(inspect.signature(function).parameters)
    for name, value in values.items():
        place = f"argument {names.index(name)} ({name}) of {function.__qualname__}"
        kinds = _kinds(value)
        if len(kinds) > 1:
            return SignatureError(
                f"{place} is a list of values of different types: {', '.join(kinds)}",
                "(a) pass a tuple, whose items may differ, or (b) pass its numbers as an array",
                "in compiled code all items of a list have the same type",
                location_of(function),
                focus=name,
            )
        if isinstance(value, AutodiffAnnotation):
            return _annotated(f"{place} is wrapped in irad.{type(value).__name__}", function, name)
        if isinstance(value, numba.types.Type) or _is_typable(value):
            continue
        way, part = _unknown_part(name, value)
        within = "" if way == name else f": {way} is {_described(part)}"
        return BackendError(
            f"{place} is {_described(value)}{within}, which Numba does not support",
            _remedy(way, part),
            _REASON,
            location_of(function),
            focus=name,
        )
    return None


def _annotated(what: str, function: Callable[..., object], name: str) -> SignatureError:
    return SignatureError(
        what,
        f"(a) pass {name} itself; argnums says which arguments are differentiated or (b) irad.autodiff(irad.Reverse, "
        f"{function.__name__}, …), with an annotation around each argument",
        "an annotation belongs to irad.autodiff, which takes one around each argument",
        location_of(function),
        focus=name,
    )


def _kinds(value: object) -> list[str]:
    """The names of the types in a list."""
    return list(dict.fromkeys(type(item).__name__ for item in value)) if isinstance(value, list | set) else []


def _is_typable(value: object) -> bool:
    if isinstance(value, tuple):
        return all(isinstance(item, numba.types.Type) or _is_typable(item) for item in value)
    try:
        found = typeof(value)
    except (NumbaError, ValueError):
        return False
    return getattr(found, "dtype", None) != numba.types.pyobject


def _unknown_part(name: str, value: object) -> tuple[str, object]:
    """The first part of an argument that Numba cannot hold, by the way to it; the argument itself where it is one."""
    found = pieces(value, name) if isinstance(value, tuple) else iter(())
    return next(((way, part) for way, part in found if not _is_typable(part)), (name, value))


def _described(value: object) -> str:
    if isinstance(value, Structure):
        return shown_structure(type(value))
    if isinstance(value, np.ma.MaskedArray):
        return "a masked array"
    if isinstance(value, np.ndarray):
        order = "" if value.dtype.isnative else ", whose bytes are not in the order of this machine"
        return f"an array of {value.dtype}{order}"
    if isinstance(value, list | set) and not value:
        return f"an empty {type(value).__name__}"
    return with_article(type(value).__qualname__.rpartition(".")[2])


def _remedy(name: str, value: object) -> str:
    match value:
        case dict():
            return (
                "(a) call a function of irad.jit with it, or a derivative, or (b) pass a numba.typed.Dict, with keys "
                "of one type and values of one type"
            )
        case list() | set() if not value:
            return (
                "(a) numba.typed.List.empty_list(numba.float64), which has an item type, or (b) an array: np.empty(0)"
            )
        case np.ma.MaskedArray():
            return (
                f"pass an array without a mask: {name}.filled(0.0), or {name}.compressed() to leave out what is masked"
            )
        case np.ndarray():
            return f"pass an array of numbers: {name}.astype(float)"
        case numbers.Number() | decimal.Decimal():
            return f"pass a float: float({name})"
        case types.GeneratorType() | range() | Iterator():
            return f"pass its values as an array: np.array(list({name}))"
        case types.BuiltinFunctionType() | np.ufunc():
            return f"pass a compiled function that calls it: numba.njit(lambda x: {spelled(value)}(x))"
        case types.FunctionType():
            return f"pass a compiled function: numba.njit({value.__name__})"
        case _ if hasattr(value, "to_numpy"):
            return f"pass its numbers as an array: {name}.to_numpy()"
        case _:
            return _OBJECT
