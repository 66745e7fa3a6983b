"""Arguments that compiled code cannot take, by name, with replacements."""

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
from irad.frontend.calls.task import AutodiffAnnotation
from irad.frontend.diagnosis.unexpected import spelled
from irad.frontend.numba.messages import location_of
from irad.frontend.packing.packed import Structure, shown_structure
from irad.message import with_article

_OBJECT = (
    "(a) pass the parts that the function needs as numbers, arrays or a named tuple or (b) make its class a "
    "numba.experimental.jitclass"
)
_LIBRARIES = {  # by package, which is not imported
    "torch": "pass its memory as a NumPy array: {0}.detach().cpu().numpy()",
    "jax": "pass it as a NumPy array: np.asarray({0})",
    "jaxlib": "pass it as a NumPy array: np.asarray({0})",
    "tensorflow": "pass it as a NumPy array: {0}.numpy()",
    "cupy": "(a) pass it as a NumPy array: cupy.asnumpy({0}) or (b) differentiate a kernel: irad.cuda.grad",
}
_REASON = "compiled code takes numbers, arrays, tuples, and Numba's own lists, dictionaries and classes"


def untypable(function: Callable[..., object], values: Mapping[str, object]) -> IradError | None:
    """Problem with the first argument that Numba cannot hold; None if it can hold all.

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
        if isinstance(value, numba.types.Type):
            continue
        if isinstance(value, list | set) and any(isinstance(item, list | set) for item in value):
            return _nested(place, function, name)
        foreign = _foreign_part(name, value)
        if foreign is None and _is_typable(value):
            continue
        way, part = foreign or _unknown_part(name, value)
        within = "" if way == name else f": {way} is {_described(part)}"
        return BackendError(
            f"{place} is {_described(value)}{within}, which Numba does not support",
            _remedy(way, part),
            _REASON,
            location_of(function),
            focus=name,
        )
    return None


def untypable_besides(callee: str, function: Callable[..., object], values: Mapping[str, object]) -> IradError | None:
    """Problem with a direction, a cotangent or memory that a derivative takes, if Numba cannot hold it.

    Args:
        callee: the derivative, as it is shown.
        function: it is a derivative of this.
        values: by the name of the derivative's parameter.
    """
    for name, value in values.items():
        foreign = _foreign_part(name, value)
        if foreign is None and (isinstance(value, numba.types.Type) or _is_typable(value)):
            continue
        way, part = foreign or _unknown_part(name, value)
        within = "" if way == name else f": {way} is {_described(part)}"
        what = "a shadow or tangent" if name.startswith("irad_") else name  # what is in an annotation has no name
        way = "it" if name.startswith("irad_") else way
        return BackendError(
            f"{what} of {callee} is {_described(value)}{within}, which Numba does not support",
            _remedy(way, part),
            _REASON,
            location_of(function),
        )
    return None


def _nested(place: str, function: Callable[..., object], name: str) -> BackendError:
    return BackendError(
        f"{place} is a list of lists, of which Numba can change only the outer one",
        f"(a) np.array({name}), a two-dimensional array, if all rows have the same length or (b) a list of arrays: "
        f"[np.asarray(row) for row in {name}]",
        "compiled code works on copies of Python's lists, and cannot write back to lists within lists",
        location_of(function),
        focus=name,
    )


def is_of_another_library(value: object) -> bool:
    """True if a value, or an item of a tuple or list, is an array of a library other than NumPy."""
    return _foreign_part("", value) is not None


def as_numpy(value: object) -> object:
    """An array of another library as a NumPy array on the same memory, if possible; any other value unchanged.

    That of a tensor which requires a gradient cannot: nothing would come of its gradient.
    """
    if _library_of(value) not in _LIBRARIES or not hasattr(value, "__dlpack__") or _is_tracer(value):
        return value
    try:
        array = np.from_dlpack(value)
    except (BufferError, RuntimeError, TypeError, ValueError):  # as libraries say that NumPy cannot have the memory
        return value
    return array if array.ndim else array[()]


def _foreign_part(name: str, value: object) -> tuple[str, object] | None:
    return next(((way, part) for way, part in _parts(name, value) if _library_of(part) in _LIBRARIES), None)


def _library_of(value: object) -> str:
    """The package that the type of a value belongs to."""
    return type(value).__module__.partition(".")[0]


def _is_tracer(value: object) -> bool:
    """True if a value has no numbers: JAX passes such while it records a function."""
    return _library_of(value) in ("jax", "jaxlib") and "Tracer" in type(value).__name__


def _parts(name: str, value: object) -> Iterator[tuple[str, object]]:
    """An argument and the items of a tuple or list, each with its path."""
    yield name, value
    for way, part in pieces(value, name) if isinstance(value, tuple) else ((name, value),):
        if way != name:
            yield way, part
        if isinstance(part, list):
            yield from ((f"{way}[{i}]", item) for i, item in enumerate(part))


def _annotated(what: str, function: Callable[..., object], name: str) -> SignatureError:
    return SignatureError(
        what,
        f"(a) pass {name} itself, and select the differentiated arguments with argnums or (b) "
        f"irad.autodiff(irad.Reverse, {function.__name__}, …), with an annotation around each argument",
        "annotations are for irad.autodiff, which takes one around each argument",
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
    """The first part of an argument that Numba cannot hold, with its path; the argument itself if it is one."""
    return next(
        ((way, part) for way, part in _parts(name, value) if way != name and not _is_typable(part)), (name, value)
    )


def _described(value: object) -> str:
    if isinstance(value, Structure):
        return shown_structure(type(value))
    if isinstance(value, np.ma.MaskedArray):
        return "a masked array"
    if isinstance(value, np.ndarray):
        order = "" if value.dtype.isnative else ", whose bytes are not in the order of this machine"
        return f"an array of {value.dtype}{order}"
    if _library_of(value) in _LIBRARIES:
        library = {"torch": "PyTorch", "jax": "JAX", "jaxlib": "JAX", "tensorflow": "TensorFlow", "cupy": "CuPy"}
        kind = "tracer" if _is_tracer(value) else "array" if "rray" in type(value).__name__ else type(value).__name__
        return with_article(f"{library[_library_of(value)]} {kind}")
    if isinstance(value, list | set) and not value:
        return f"an empty {type(value).__name__}"
    return with_article(type(value).__qualname__.rpartition(".")[2])


def _remedy(name: str, value: object) -> str:
    match value:
        case _ if _is_tracer(value):
            return (
                "(a) call it outside of jax.jit, jax.grad and jax.vmap, with np.asarray(…) of JAX arrays or (b) call "
                "it in a function for jax.pure_callback, with a derivative from jax.custom_vjp"
            )
        case _ if _library_of(value) in _LIBRARIES:
            return _LIBRARIES[_library_of(value)].format(name)
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
                f"pass an array without a mask: {name}.filled(0.0), or {name}.compressed() to leave out masked elements"
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
