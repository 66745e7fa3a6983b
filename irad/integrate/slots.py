"""Values of integrands in compiled code: numbers, arrays and tuples of these, summed without allocating.

A value is a row of numbers to the quadrature; code that is written for its type goes back and forth.

    rows = room(value, 50)               50 rows of zeros
    add(rows, 3, 0.5, value)             rows[3] += 0.5 · value
    taken(rows, 3, value)                rows[3] as a value with the structure of another
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.core import types
from numba.core.types import Type
from numba.extending import overload
from numba.np.numpy_support import as_dtype

from irad.api.checkpointing.values import Leaf, leaves_of, structured
from irad.errors import SourceLocation, UnsupportedError
from irad.frontend.generated import function_from
from irad.frontend.inner import inner_jitable
from irad.frontend.numba.messages import described

_FILE = "irad.integrate"


def room(like: Any, count: Any) -> Any:
    """Rows of zeros for values like one."""
    raise NotImplementedError


def add(rows: Any, index: Any, weight: Any, value: Any) -> None:
    """Adds a multiple of a value to a row."""
    raise NotImplementedError


def taken(rows: Any, index: Any, like: Any) -> Any:
    """A row as a value with the structure of another, in new memory."""
    raise NotImplementedError


def largest(value: Any) -> Any:
    """The largest absolute value in a value; what is None counts as zero."""
    raise NotImplementedError


def inner(cotangent: Any, value: Any) -> Any:
    """The real inner product of a cotangent, parts of which may be None, with a value."""
    raise NotImplementedError


def cleared(value: Any) -> Any:
    """The value with its arrays, overwritten with zeros, and zeros for its numbers."""
    raise NotImplementedError


@inner_jitable
def move(rows, index, weight, source, other):  # type: ignore[no-untyped-def]
    """Adds a multiple of one row to another."""
    for j in range(rows.shape[1]):
        rows[index, j] += weight * source[other, j]


@inner_jitable
def distance(rows, index, source, other):  # type: ignore[no-untyped-def]
    """The largest difference between two rows; NaN if there is one."""
    found = 0.0
    for j in range(rows.shape[1]):
        size = abs(rows[index, j] - source[other, j])
        if not size <= found:
            found = size
    return found


def _item(leaf: Leaf) -> Type:
    """The type of the numbers of a part.

    Raises:
        UnsupportedError: it is not made of numbers.
    """
    found: Type = leaf.type.dtype if isinstance(leaf.type, types.Array) else leaf.type
    if isinstance(found, types.Number | types.Boolean):
        return found
    raise UnsupportedError(
        f"an integrand returns {described(leaf.type)}",
        "return numbers, arrays of numbers and tuples of these",
        "its values are added up",
        SourceLocation.here(),
    )


def _loops(leaf: Leaf, body: str) -> list[str]:
    """The lines that run a statement for each number of a part, as ``each``, with its index as ``place``."""
    if not isinstance(leaf.type, types.Array):
        return [body.replace("{each}", leaf.text).replace("{place}", "")]
    indices = ", ".join(f"i{axis}" for axis in range(leaf.type.ndim)) or "()"
    lines = [f"{'    ' * axis}for i{axis} in range({leaf.text}.shape[{axis}]):" for axis in range(leaf.type.ndim)]
    inside = "    " * leaf.type.ndim
    body = body.replace("{each}", f"{leaf.text}[{indices}]").replace("{place}", f"[{indices}]")
    return [*lines, *(inside + line for line in body.splitlines())]


def _size(leaf: Leaf) -> str:
    return f"{leaf.text}.size" if isinstance(leaf.type, types.Array) else "1"


def _room_typed(like: Any, count: Any) -> Any:
    leaves = leaves_of(like, "like")
    is_complex = any(isinstance(_item(leaf), types.Complex) for leaf in leaves)
    scope = {"zeros": np.zeros, "dtype": np.complex128 if is_complex else np.float64}
    sizes = " + ".join(map(_size, leaves)) or "0"
    return _written("room(like, count)", [f"return zeros((count, {sizes}), dtype)"], scope)


def _add_typed(rows: Any, index: Any, weight: Any, value: Any) -> Any:
    lines = ["at = 0"]
    for leaf in leaves_of(value, "value"):
        lines += _loops(leaf, "rows[index, at] += weight * {each}\nat += 1")
    return _written("add(rows, index, weight, value)", [*_split(lines), "return"], {})


def _split(lines: list[str]) -> list[str]:
    return [part for line in lines for part in line.splitlines()]


def _taken_typed(rows: Any, index: Any, like: Any) -> Any:
    scope: dict[str, Any] = {"empty": np.empty}
    lines, items = ["at = 0"], []
    for number, leaf in enumerate(leaves_of(like, "like")):
        dtype = _item(leaf) if isinstance(_item(leaf), types.Float | types.Complex) else types.float64
        real = "" if isinstance(dtype, types.Complex) or not isinstance(rows.dtype, types.Complex) else ".real"
        scope[f"dtype{number}"] = as_dtype(dtype).type
        items.append(f"made{number}")
        if isinstance(leaf.type, types.Array):
            lines.append(f"made{number} = empty({leaf.text}.shape, dtype{number})")
            lines += _loops(leaf, f"made{number}{{place}} = rows[index, at]{real}\nat += 1")
        else:
            lines += [f"made{number} = dtype{number}(rows[index, at]{real})", "at += 1"]
    made = structured(like, iter(items), scope)
    return _written("taken(rows, index, like)", [*_split(lines), f"return {made}"], scope)


def _largest_typed(value: Any) -> Any:
    lines = ["found = 0.0"]
    for leaf in leaves_of(value, "value"):
        if leaf.type != types.none:
            lines += _loops(leaf, "size = float(abs({each}))\nif not size <= found:\n    found = size")
    return _written("largest(value)", [*_split(lines), "return found"], {})


def _inner_typed(cotangent: Any, value: Any) -> Any:
    lines = ["found = 0.0"]
    for leaf in leaves_of(value, "value"):
        given = cotangent
        for step in leaf.path:
            given = given if given == types.none else given[step]
        if given != types.none:
            lines += _loops(leaf, f"found += real({leaf.of('cotangent')}{{place}} * conj({{each}}))")
    return _written("inner(cotangent, value)", [*_split(lines), "return found"], {"real": np.real, "conj": np.conj})


def _cleared_typed(value: Any) -> Any:
    scope: dict[str, Any] = {}
    lines, items = [], []
    for leaf in leaves_of(value, "value"):
        scope[f"zero_{_item(leaf)}"] = as_dtype(_item(leaf)).type(0)
        items.append(leaf.text if isinstance(leaf.type, types.Array) else f"zero_{_item(leaf)}")
        if isinstance(leaf.type, types.Array):
            lines += _loops(leaf, f"{{each}} = zero_{_item(leaf)}")
    return _written("cleared(value)", [*lines, f"return {structured(value, iter(items), scope)}"], scope)


def _written(head: str, lines: list[str], scope: dict[str, Any]) -> Any:
    body = "".join(f"    {line}\n" for line in lines)
    return function_from(head.partition("(")[0], f"def {head}:\n{body}", _FILE, scope)


for _function, _typed in (
    (room, _room_typed),
    (add, _add_typed),
    (taken, _taken_typed),
    (largest, _largest_typed),
    (inner, _inner_typed),
    (cleared, _cleared_typed),
):
    overload(_function, strict=False)(_typed)
