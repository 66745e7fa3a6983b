"""Checks for NaN in the results of speculative derivatives, which are repeated with strong zeros (`retry`).

See `irad.passes.analysis.speculation`. Compiled code says so by an exception, which the dispatcher catches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from llvmlite import ir
from llvmlite.ir import IRBuilder, Value
from numba.core import cgutils, types

from irad.frontend import resident
from irad.frontend.calls.definition import Definition
from irad.frontend.calls.retry import FoundNaN
from irad.frontend.calls.sweeps import Lane, Sweeps
from irad.frontend.emit import INTP, VOID_POINTER, Emit
from irad.frontend.memory.references import References
from irad.frontend.memory.shadows import any_of
from irad.frontend.numba.private import shadow
from irad.frontend.values import layouts, tree

_BIT = ir.IntType(1)
_INERT = (types.Integer, types.Boolean, types.NoneType, types.Omitted)


# ------------------------------------------------------------------------------------------------ derivatives of others


def speculative_call(
    given: tuple[Any, ...],
    plain: Definition,
    certain: Definition,
    repeats: Callable[[tuple[Any, ...]], bool],
    searched: Callable[..., tuple[Any, Any]] | None,
    into: int | None,
    is_made: Callable[..., tuple[Any, Any]] | None,
) -> tuple[Any, Callable[..., Any]]:
    """The signature of a call of `dispatcher.speculating`, and its lowering.

    Args:
        given: the types of the arguments; the others are as there.
    """
    chosen = dict[bool, tuple[Any, Callable[..., Any]]]()

    def choose() -> tuple[Any, Callable[..., Any]]:
        is_inside = shadow().is_here()  # where it is differentiated itself, nobody would call it again
        if is_inside not in chosen:
            chosen[is_inside] = certain.define(given) if is_inside or not may_speculate() else checked()
        return chosen[is_inside]

    def may_speculate() -> bool:
        return repeats(given) and (into is None or _is_checkable(given[into]))

    def checked() -> tuple[Any, Callable[..., Any]]:
        signature, lower = plain.define(given)
        # A NaN in what cannot be looked through would go unnoticed.
        if not _is_checkable(signature.return_type):
            return certain.define(given)

        def lower_checked(emit: Emit, called: Any, values: Sequence[Value]) -> Any:
            context, builder, result = emit.context, emit.builder, lower(emit, called, values)
            held = result, called.return_type, builder
            parts = [] if searched is None else [searched(held)]
            parts += [] if into is None else [(values[into], called.args[into])]
            found = any_of(builder, [bit for part in parts for bit in _nans(emit, *part)])
            if is_made is not None:
                found = builder.and_(found, cgutils.as_bool_bit(builder, is_made(held)[0]))
            with cgutils.if_unlikely(builder, found):
                # The call is made again, so nobody takes this result.
                context.nrt.decref(builder, called.return_type, result)
                References(emit, None, list(zip(values, called.args, strict=True))).release()
                context.call_conv.return_user_exc(builder, FoundNaN, ())
            return result

        return signature, lower_checked

    def lower(*args: Any) -> Value:
        return choose()[1](*args)

    return choose()[0], lower


def _is_checkable(kind: Any) -> bool:
    """True if all floats of a type can be looked through."""
    if isinstance(kind, types.BaseTuple):
        return all(map(_is_checkable, kind.types))
    if isinstance(kind, types.Array):
        return kind.layout in ("C", "F") and (kind.dtype in _FLOATS or isinstance(kind.dtype, _INERT))
    return kind in _FLOATS or isinstance(kind, _INERT)


_FLOATS = (*layouts.FLOATS, *layouts.COMPLEX)


def _nans(emit: Emit, value: Value, kind: Any) -> Iterator[Value]:
    """Bits that say that there is one."""
    builder = emit.builder
    if isinstance(kind, types.BaseTuple):
        for number, each in enumerate(kind.types):
            yield from _nans(emit, builder.extract_value(value, number), each)
    elif isinstance(kind, types.Array) and kind.dtype in _FLOATS:
        array: Any = emit.array(kind, value)
        yield _has_nan(builder, kind.dtype, array.data, array.nitems)
    elif kind in layouts.COMPLEX:
        for number in range(2):
            part = builder.extract_value(value, number)
            yield builder.fcmp_unordered("uno", part, part)
    elif kind in layouts.FLOATS:
        yield builder.fcmp_unordered("uno", value, value)


def _has_nan(builder: IRBuilder, element: Any, data: Value, count: Value) -> Value:
    """True if there is a NaN among elements that lie side by side."""
    is_complex = element in layouts.COMPLEX
    number = element.underlying_float if is_complex else element
    if is_complex:
        count = builder.mul(count, INTP(2))
    start = builder.bitcast(data, VOID_POINTER)
    found: Value = resident.call(builder, f"irad.has_nan_f{number.bitwidth}", _BIT, start, count)
    return found


# ------------------------------------------------------------------------------------------------ gradients


def check_for_nan(sweeps: Sweeps) -> None:
    """Ends the call with `FoundNaN` if a derivative has one."""
    found = [bit for lane in sweeps.lanes for bit in (*_in_numbers(sweeps, lane), *_in_arrays(sweeps, lane))]
    with cgutils.if_unlikely(sweeps.builder, any_of(sweeps.builder, found)):
        sweeps.drop_value()
        sweeps.references.release()
        sweeps.context.call_conv.return_user_exc(sweeps.builder, FoundNaN, ())


def _in_numbers(sweeps: Sweeps, lane: Lane) -> list[Value]:
    values = [sweeps.builder.load(pointer) for pointer in lane.cotangents.pointers()]
    return [sweeps.builder.fcmp_unordered("uno", value, value) for value in values]


def _in_arrays(sweeps: Sweeps, lane: Lane) -> list[Value]:
    return [
        _has_nan(
            sweeps.builder,
            leaf.element,
            lane.memory.shadow_of(leaf.data_index),
            sweeps.flat[leaf.index + tree.ITEM_COUNT],
        )
        for _, leaf in sweeps.derivation.active_memory()
    ]
