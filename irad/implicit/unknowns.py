"""Unknowns of equations in compiled code: a float, an array, or a structure of these, as a vector and back.

v = vector(x, x)            a number stays one; everything else becomes an array with one axis
shaped(v, x)                a value with the structure of x, in new memory where it is not v itself
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numba.core import types
from numba.core.types import Type
from numba.extending import overload
from numba.np.numpy_support import as_dtype

from irad.api.checkpointing.values import Leaf, copied, leaves_of, structured
from irad.errors import SignatureError, SourceLocation
from irad.frontend.generated import function_from
from irad.frontend.numba.messages import described

_FILE: Final = "irad.implicit"
MADE: Final = types.LiteralStrKeyDict | types.DictType
"""The types of dictionaries that compiled code has made; those that Python passes in are named tuples there."""


def vector(value: Any, like: Any) -> Any:
    """A value with the structure of an unknown as a number or a vector; parts that are None are zero."""
    raise NotImplementedError


def shaped(found: Any, like: Any) -> Any:
    """A number or a vector as a value with the structure of an unknown."""
    raise NotImplementedError


def started(value: Any) -> Any:
    """A guess as an unknown of floats, in new memory."""
    raise NotImplementedError


def size_of(found: Any) -> Any:
    """The largest absolute value of a number or a vector; NaN if there is one."""
    raise NotImplementedError


def listed(found: Any) -> Any:
    """A number or a vector as a vector."""
    raise NotImplementedError


def like_listed(found: Any, like: Any) -> Any:
    """A vector as a number or a vector."""
    raise NotImplementedError


def check_unknowns(x: Any) -> None:
    """Nothing, for floats, arrays of floats and tuples of these."""
    raise NotImplementedError


def is_plain(kind: Type) -> bool:
    """Whether an unknown is a number or a vector as it is."""
    return isinstance(kind, types.Float) or (isinstance(kind, types.Array) and kind.ndim == 1)


def _dtype(leaf: Leaf) -> Type:
    found: Type = leaf.type.dtype if isinstance(leaf.type, types.Array) else leaf.type
    return found


@overload(check_unknowns, strict=False)
def _check_unknowns_typed(x: Any) -> Any:
    if isinstance(x, MADE):
        raise made_in_compiled_code("the solver of an implicit equation returns")
    leaves = leaves_of(x)
    if not leaves or not all(isinstance(_dtype(leaf), types.Float) for leaf in leaves):
        raise SignatureError(
            f"the solver of an implicit equation returns {described(x)}",
            "return a float, an array of floats, or a tuple of these",
            "its derivative is found from the equation by solving a linear system for such unknowns",
            SourceLocation.here(),
        )
    return lambda x: None


def _given(value: Any, leaf: Leaf) -> bool:
    """Whether the leaf of a value is there: parts of a cotangent may be None."""
    for step in leaf.path:
        if value == types.none:
            return False
        value = value[step]
    return bool(value != types.none)


def made_in_compiled_code(what: str) -> SignatureError:
    """The error about a dictionary that compiled code has made."""
    return SignatureError(
        f"{what} a dictionary made in compiled code",
        "(a) make a tuple of its parts, in their order, or (b) work with a dictionary that Python passes in",
        "unknowns are put into a vector by their places, and such a dictionary has none",
        SourceLocation.here(),
    )


@overload(vector, strict=False)
def _vector_typed(value: Any, like: Any) -> Any:
    if is_plain(like):
        return lambda value, like: value
    if isinstance(value, MADE):
        raise made_in_compiled_code("the function of an equation returns")
    leaves = leaves_of(like, "like")
    sizes = [f"{leaf.text}.size" if isinstance(leaf.type, types.Array) else "1" for leaf in leaves]
    lines = [f"found, at = zeros({' + '.join(sizes)}), 0"]
    for leaf, size in zip(leaves, sizes, strict=True):
        part = leaf.of("value")
        if _given(value, leaf):
            is_array = isinstance(leaf.type, types.Array)
            lines.append(f"found[at : at + {size}] = flattened({part})" if is_array else f"found[at] = {part}")
        lines.append(f"at += {size}")
    return _written("vector(value, like)", [*lines, "return found"], {"zeros": np.zeros, "flattened": flattened})


def flattened(array: Any) -> Any:
    """The elements of an array in the order of C."""
    raise NotImplementedError


@overload(flattened, strict=False)
def _flattened_typed(array: Any) -> Any:
    if array.layout == "C":
        return lambda array: array.reshape(array.size)
    return lambda array: np.ascontiguousarray(array).reshape(array.size)


@overload(shaped, strict=False)
def _shaped_typed(found: Any, like: Any) -> Any:
    if is_plain(like):
        return lambda found, like: found
    scope: dict[str, Any] = {}
    lines, items = ["at = 0"], []
    for number, leaf in enumerate(leaves_of(like, "like")):
        scope[f"dtype{number}"] = as_dtype(_dtype(leaf)).type
        items.append(f"made{number}")
        if isinstance(leaf.type, types.Array):
            part = f"found[at : at + {leaf.text}.size].astype(dtype{number}).reshape({leaf.text}.shape)"
            lines += [f"made{number} = {part}", f"at += {leaf.text}.size"]
        else:
            lines += [f"made{number} = dtype{number}(found[at])", "at += 1"]
    made = structured(like, iter(items), scope)
    return _written("shaped(found, like)", [*lines, f"return {made}"], scope)


@overload(started, strict=False)
def _started_typed(value: Any) -> Any:
    leaves = leaves_of(value, "value")
    if not leaves or not all(isinstance(_dtype(leaf), types.Float | types.Integer | types.Boolean) for leaf in leaves):
        raise SignatureError(
            f"the solver of an equation begins with {described(value)}",
            "begin with a number, an array of numbers, or a structure of these",
            "unknowns are real numbers, put into a vector",
            SourceLocation.here(),
        )
    if isinstance(value, types.Integer | types.Boolean):
        return lambda value: float(value)
    if isinstance(value, types.Array) and not isinstance(value.dtype, types.Float):
        return lambda value: value.astype(np.float64)
    if isinstance(value, types.BaseTuple):
        scope: dict[str, Any] = {"started_part": started}
        made = structured(value, iter([f"started_part({leaf.text})" for leaf in leaves]), scope)
        return _written("started(value)", [f"return {made}"], scope)
    return lambda value: copied(value)


@overload(size_of, strict=False)
def _size_of_typed(found: Any) -> Any:
    if not isinstance(found, types.Array):
        return lambda found: abs(found)
    return lambda found: np.abs(found).max() if found.size > 0 else 0.0


@overload(listed, strict=False)
def _listed_typed(found: Any) -> Any:
    return (lambda found: found) if isinstance(found, types.Array) else (lambda found: np.array([found]))


@overload(like_listed, strict=False)
def _like_listed_typed(found: Any, like: Any) -> Any:
    return (lambda found, like: found) if isinstance(like, types.Array) else (lambda found, like: found[0])


def _written(head: str, lines: list[str], scope: dict[str, Any]) -> Any:
    body = "".join(f"    {line}\n" for line in lines)
    return function_from(head.partition("(")[0], f"def {head}:\n{body}", _FILE, scope)
