"""Functions over structures for compiled code, each written for the types of its arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, Final

import numpy as np
from numba.core import types
from numba.typed import List

from irad.errors import HERE, SignatureError
from irad.frontend.numba.messages import described
from irad.frontend.structures import vectors as v
from irad.frontend.structures.kinds import check_alike, check_known, check_length, check_new, check_storage, vectors
from irad.frontend.structures.walk import SCOPE, Operation, Source, Walk
from irad.frontend.values.tree import content_of
from irad.records import dataclass

FILE: Final = "irad.data"
_HELPERS: Final = (
    *(v.add, v.assign, v.clear, v.copied, v.fitted, v.length, v.of_complex, v.of_reals, v.write, v.zeros, check_length),
    *(
        v.subtract,
        v.multiply,
        v.divide,
        v.add_multiple,
        v.squares_of_complex,
        v.squares_of_reals,
        v.read,
        v.read_complex,
        v.refill,
        v.refill_complex,
    ),
    *(v.refilled, v.refilled_complex, v.several),
)
_SCOPE: Final = {**SCOPE, "np": np, "List": List, **{helper.__name__: helper for helper in _HELPERS}}


def is_complex(numba_type: types.Type) -> bool:
    """True if a number, or the elements of an array, are complex."""
    return isinstance(getattr(numba_type, "dtype", numba_type), types.Complex)


def _always(text: str) -> Callable[[Any], str]:
    return lambda numba_type: text


@dataclass(frozen=True)
class Call:
    """A call of a function over structures in compiled code.

    Attributes:
        name: of the function, as messages call it.
        head: its parameters.
        result: its result, with ``{}`` for a structure.
        scope: other names used by the code.
    """

    name: str
    head: str
    result: str = "{}"
    scope: Mapping[str, Any] = field(default_factory=dict)

    def source(self) -> Source:
        """The beginning of its code."""
        return Source(self.head, {**_SCOPE, **self.scope})

    def returned(self, results: Sequence[str]) -> str:
        """The statement that returns structures."""
        if len(results) == 1:
            return f"return {self.result.format(results[0])}"
        return f"return ({', '.join(map(self.result.format, results))})"

    def contents(self, numba_types: Sequence[Any]) -> list[Any]:
        """Contents of structures, which are alike.

        Raises:
            SignatureError: they are not alike, or cannot be taken apart.
        """
        found = [content_of(types.unliteral(each)) for each in numba_types]
        check_known(found[0], self.name)
        for other in found[1:]:
            check_alike(found[0], other)
        return found


def make(call: Call, operation: Operation, values: Mapping[str, Any], results: int = 1) -> Callable[..., Any]:
    """A function that makes new structures.

    Args:
        call: the call that it belongs to.
        operation: operation on vectors.
        values: the types of the inputs by name.
        results: number of results.
    """
    first, *_ = call.contents(list(values.values()))
    check_new(first, call.name)
    source = call.source()
    source.line(call.returned(_new(source, operation, first, list(values), results)))
    return source.function(FILE)


def _new(source: Source, operation: Operation, first: Any, inputs: list[str], results: int = 1) -> Sequence[str]:
    walk = Walk(source, operation, first, values=len(inputs), results=results, is_checked=len(inputs) > 1)
    return walk.visit(first, inputs, None)


def overwrite(
    call: Call,
    operation: Operation,
    values: Mapping[str, Any],
    outputs: Mapping[str, Any],
    *,
    returns: bool = False,
    keeps: bool = False,
) -> Callable[..., Any]:
    """A function that overwrites structures.

    Args:
        call: the call that it belongs to.
        operation: operation on vectors.
        values: the types of the inputs by name.
        outputs: those of what is overwritten; it may be the first input.
        returns: True if what cannot be overwritten is created again, in what the function returns.
        keeps: True if it stays as it is.
    """
    separate = {name: kind for name, kind in outputs.items() if name not in list(values)[:1]}
    first, *_ = call.contents([*values.values(), *separate.values()])
    if not (returns or keeps):
        check_storage(first, call.name)
    source, read = call.source(), [*values, *separate]
    if len(read) > 1:  # before anything is written
        check = Walk(
            source,
            Operation(),
            first,
            values=len(read),
            is_checked=True,
            is_written=True,
            checked_outputs=len(separate),
        )
        check.visit(first, read, None)
        check.check_reads(first, read)
    walk = Walk(source, operation, first, results=len(outputs), in_place=True, keeps=keeps)
    found = walk.visit(first, list(values), list(outputs))
    if returns:
        source.line(call.returned(found))
    return source.function(FILE)


def _read(source: Source, operation: Operation, first: Any, inputs: list[str]) -> None:
    Walk(source, operation, first, values=len(inputs), is_checked=len(inputs) > 1).visit(first, inputs, None)


# --- operations -------------------------------------------------------------------------------------------------------

ZERO: Final = Operation(_always("0"), _always("zeros({0})"), _always("clear({out})"))
COPY: Final = Operation(_always("{0}"), _always("copied({0})"))


def sum_with(f: str | None) -> Operation:
    """Adds the second vector, or what a function of that name makes of it, to the first one."""
    increment = "{1}" if f is None else f"{f}({{1}})"
    return arithmetic(f"{{0}} + {increment}", f"add({{out}}, {increment})")


def arithmetic(number: str, write: str) -> Operation:
    """An expression of vectors, and the statement that writes it to the first one."""
    return Operation(_always(number), _always(f"fitted({number}, {{0}})"), _always(write))


def mapped(f: str, numba_type: types.Type, count: int, results: int = 1) -> Operation:
    """Calls a function with the vectors of all structures.

    Args:
        f: its name.
        numba_type: its type.
        count: number of structures.
        results: number of results.
    """
    arguments = ", ".join(f"{{{i}}}" for i in range(count))
    call = f"{f}({arguments})"
    if results == 1:
        plain = f"write({{out}}, {call})"
        writes = _with_out(numba_type, f"{f}({arguments}, {{out}})", f"{f}({arguments}, out={{out}})") or plain
        array = f"fitted({call}, {{0}})"
        return Operation(_always(call), _always(array), lambda kind: writes if kind.ndim > 0 else plain)
    each = "; ".join(f"write({{out{i}}}, found[{i}])" for i in range(results))
    return Operation(_always(call), _always(f"several({call}, {{0}})"), _always(f"found = {call}; {each}"))


def _with_out(numba_type: types.Type, of_ufunc: str, of_jitted: str) -> str | None:
    """The call that has a function write its result, if it takes a place for it."""
    if isinstance(getattr(numba_type, "typing_key", None), np.ufunc):
        return of_ufunc
    dispatcher = getattr(numba_type, "dispatcher", None)
    takes = dispatcher is not None and "out" in inspect.signature(dispatcher.py_func).parameters
    return of_jitted if takes else None


# --- sums -------------------------------------------------------------------------------------------------------------


def dot(call: Call, values: Mapping[str, Any]) -> Callable[..., Any]:
    """The inner product."""
    first, *_ = call.contents(list(values.values()))
    source = call.source()
    has_complex = any(is_complex(part.type) for part in vectors(first))
    source.line(f"total = {'0j' if has_complex else '0.0'}")

    def read(kind: Any) -> str:
        if not isinstance(kind, types.Array):
            return "total += np.conj({0}) * {1}"
        return f"total += {'of_complex' if is_complex(kind) else 'of_reals'}({{0}}, {{1}})"

    _read(source, Operation(read=read), first, list(values))
    source.line("return total")
    return source.function(FILE)


def norm(call: Call, values: Mapping[str, Any]) -> Callable[..., Any]:
    """The Euclidean norm; its derivative at zero is zero."""
    first, *_ = call.contents(list(values.values()))
    source = call.source()
    source.line("total = 0.0")

    def read(kind: Any) -> str:
        if isinstance(kind, types.Array):
            return f"total += squares_of_{'complex' if is_complex(kind) else 'reals'}({{0}})"
        return "total += " + (v.SQUARE if is_complex(kind) else "{0} * {0}")

    _read(source, Operation(read=read), first, list(values))
    source.line("return np.sqrt(total) if total != 0.0 else 0.0")
    return source.function(FILE)


# --- flat arrays ------------------------------------------------------------------------------------------------------

_LENGTH: Final = Operation(read=_always("size += length({0})"))
"""Counts the doubles of all vectors."""


def _of_parts(real: str, of_complex: str, array: str) -> Callable[[Any], str]:
    """The code for a vector at ``at`` in a flat array: a real or a complex number, or an array."""

    def text(kind: Any) -> str:
        if isinstance(kind, types.Array):
            return array.format("_complex" if is_complex(kind) else "")
        return of_complex if is_complex(kind) else real

    return text


def to_vec(call: Call, values: Mapping[str, Any]) -> Callable[..., Any]:
    """A flat array of all elements."""
    first, *_ = call.contents(list(values.values()))
    source = call.source()
    source.line("size = 0")
    _read(source, _LENGTH, first, list(values))
    source.line("vector = np.empty(size)")
    source.line("at = 0")
    text = _of_parts(
        "vector[at] = {0}", "vector[at] = {0}.real; vector[at + 1] = {0}.imag", "read{}({{0}}, vector, at)"
    )
    _read(source, Operation(read=text, then="at += length({0})"), first, list(values))
    source.line("return vector")
    return source.function(FILE)


def from_vec(call: Call, vector: str, like: str, numba_type: types.Type) -> Callable[..., Any]:
    """A structure with elements of a flat array.

    Args:
        call: what it is for.
        vector: the name of the flat array.
        like: that of a structure.
        numba_type: the type of that.
    """
    first, *_ = call.contents([numba_type])
    check_new(first, call.name)
    source = call.source()
    source.line("size = 0")
    _read(source, _LENGTH, first, [like])
    source.line(f"check_length({vector}.size == size)")
    source.line("at = 0")
    array = f"refilled{{}}({{{{0}}}}, {vector}, at)"
    made = _of_parts(f"{vector}[at]", f"complex({vector}[at], {vector}[at + 1])", array)
    written = _of_parts("", "", f"refill{{}}({{{{out}}}}, {vector}, at)")
    operation = Operation(made, made, written, then="at += length({0})")
    source.line(call.returned(_new(source, operation, first, [like])))
    return source.function(FILE)


def leaves(call: Call, values: Mapping[str, Any]) -> Callable[..., Any]:
    """A typed list of all vectors.

    Raises:
        SignatureError: they are of different types.
    """
    first, *_ = call.contents(list(values.values()))
    kinds = [part.type for part in vectors(first)] or [types.float64]
    common = _common_type(kinds)
    if common is None:
        raise SignatureError(
            f"irad.data.leaves in compiled code: the vectors are of different types, "
            f"{described(kinds[0])} and {described(next(kind for kind in kinds if kind != kinds[0]))}",
            "(a) irad.data.recursive_map, which calls a function with each or (b) irad.data.to_vec",
            "in compiled code all items of a list have one type",
            HERE,
        )
    source = call.source()
    item = source.constant(common, "type")
    source.line(f"found = List.empty_list({item})")
    _read(source, Operation(read=_always(f"found.append(as_type({{0}}, {item}))")), first, list(values))
    source.line("return found")
    return source.function(FILE)


def _common_type(kinds: list[Any]) -> Any:
    if all(kind == kinds[0] for kind in kinds):
        return kinds[0]
    if not all(isinstance(kind, types.Array) for kind in kinds):
        return None
    if len({(kind.dtype, kind.ndim) for kind in kinds}) > 1:
        return None
    return kinds[0].copy(layout="A", readonly=not all(kind.mutable for kind in kinds))
