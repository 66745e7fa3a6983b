"""Identity of objects in compiled code: which are one object.

An array is one with another if it has the same elements in the same memory: address, shape and strides. Other objects
are one if they are at one address. A few objects are compared one by one; those in lists and dictionaries go into a
table.

The table is an array of integers with a row for each object, found by its address: its number counted from 1, its key,
and the keys of what is at the same place in other structures. It begins on the stack.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from llvmlite import ir
from llvmlite.ir import IRBuilder, Value
from numba.core import cgutils, types
from numba.core.base import BaseContext
from numba.core.typing import Signature
from numba.extending import intrinsic, overload, register_jitable
from numba.np import arrayobj

from irad.errors import HERE, SignatureError
from irad.frontend.numba.messages import described
from irad.frontend.values.tree import content_of, is_headed

# What Numba hides of memory: addresses, other types for it, a table on the stack.

_WORD = types.intp


@intrinsic
def address(_typing_context: Any, value: Any) -> Any:
    """Address of an array, a record, a list, a dictionary or an instance, as an integer."""

    def generate(context: BaseContext, builder: IRBuilder, signature: Signature, arguments: Any) -> Value:
        (argument,) = arguments
        if isinstance(value, types.Record):
            pointer = argument
        else:
            struct = context.make_helper(builder, value, value=argument)
            pointer = struct.meminfo if is_headed(content_of(value)) else struct.data
        return builder.ptrtoint(pointer, context.get_value_type(_WORD))

    return _WORD(value), generate


@intrinsic
def as_type(_typing_context: Any, value: Any, wanted: Any) -> Any:
    """A value as one of another type: a number converted, an optional value that is there without the option.

    Of an array that is made here the layout is known, and taken for granted.
    """
    target = wanted.instance_type
    is_number = isinstance(value, types.Number | types.Boolean)
    if is_number != isinstance(target, types.Number) and not isinstance(value, types.Optional):
        raise misfit(value, target)
    if isinstance(value, types.Complex) and not isinstance(target, types.Complex):
        raise misfit(value, target)

    def generate(context: BaseContext, builder: IRBuilder, signature: Signature, arguments: Any) -> Value:
        found = arguments[0]
        if not isinstance(value, types.Array):
            found = context.cast(builder, found, value, target)
        context.nrt.incref(builder, target, found)
        return found

    return target(value, wanted), generate


def misfit(found: Any, wanted: Any) -> SignatureError:
    """The error about a function that returns something else than a vector like its first argument."""
    return SignatureError(
        f"a function that is mapped over a structure returns {described(found)} for {described(wanted)}",
        "return a value like the first argument",
        "the result has the types of the first structure",
        HERE,
    )


@intrinsic(prefer_literal=True)
def stack_words(_typing_context: Any, rows: Any, columns: Any) -> Any:
    """An array of integers, all zero, that lives until the function returns; its shape is written out."""
    shape = rows.literal_value, columns.literal_value
    made = types.Array(_WORD, 2, "C")

    def generate(context: BaseContext, builder: IRBuilder, signature: Signature, arguments: Any) -> Value:
        word = context.get_value_type(_WORD)
        room = ir.ArrayType(word, shape[0] * shape[1])
        place = cgutils.alloca_once(builder, room)
        cgutils.memset(builder, place, word(context.get_abi_sizeof(room)), 0)
        array = context.make_array(made)(context, builder)
        arrayobj.populate_array(
            array,
            data=builder.bitcast(place, array.data.type),
            shape=[word(each) for each in shape],
            strides=[word(each) for each in (shape[1] * _WORD.bitwidth // 8, _WORD.bitwidth // 8)],
            itemsize=word(_WORD.bitwidth // 8),
            meminfo=None,
        )
        return array._getvalue()

    return made(rows, columns), generate


ROWS_ON_STACK: Final = 32  # half of them may be used: 15 objects take no memory from the heap


def key(value: Any) -> Any:
    """Key that tells an object from others of its type: a tuple of integers."""
    raise NotImplementedError


@overload(key, strict=False)
def _key_typed(value: Any) -> Any:
    if isinstance(value, types.Array) and value.ndim > 0:
        return lambda value: (address(value), *value.shape, *value.strides)
    return lambda value: (address(value),)


def key_length(numba_type: types.Type) -> int:
    """Number of integers of a key."""
    return 1 + 2 * numba_type.ndim if isinstance(numba_type, types.Array) else 1


def same(a: Any, b: Any) -> bool:
    """True if two objects are one; arrays without elements never are."""
    raise NotImplementedError


@overload(same, strict=False)
def _same_typed(a: Any, b: Any) -> Any:
    if not isinstance(a, types.Array):
        return lambda a, b: address(a) == address(b)
    if a.ndim == 0:
        return lambda a, b: address(a) == address(b)
    return lambda a, b: a.size != 0 and address(a) == address(b) and a.shape == b.shape and a.strides == b.strides


def holds_nothing(value: Any) -> bool:
    """True if it is an array without elements: nothing tells such arrays apart."""
    raise NotImplementedError


@overload(holds_nothing, strict=False)
def _holds_nothing_typed(value: Any) -> Any:
    if isinstance(value, types.Array):
        return lambda value: value.size == 0
    return lambda value: False


@register_jitable
def overlaps(one, other):  # type: ignore[no-untyped-def]
    """True if the memory of two arrays may overlap, by what they span; for compiled code."""
    if one.size == 0 or other.size == 0:
        return False
    start, end = _extent(one)
    first, last = _extent(other)
    return start < last and first < end


@register_jitable
def _extent(array):  # type: ignore[no-untyped-def]
    """The first byte of an array, and the one after the last."""
    low = address(array)
    high = low + array.itemsize
    for length, stride in zip(array.shape, array.strides):  # noqa: B905
        if stride < 0:
            low += (length - 1) * stride
        else:
            high += (length - 1) * stride
    return low, high


# --- the table --------------------------------------------------------------------------------------------------------


@register_jitable
def is_entered(rows, row, start, words):  # type: ignore[no-untyped-def]
    """True if a row has a key."""
    is_found = True
    for i in range(len(words)):
        is_found = is_found and rows[row, start + i] == words[i]
    return is_found


@register_jitable
def row_of(rows, wanted):  # type: ignore[no-untyped-def]
    """The row of an object, or the free one that it would go to."""
    mask = rows.shape[0] - 1
    row = ((wanted[0] >> 3) ^ (wanted[0] >> 11)) & mask
    while rows[row, 0] != 0:
        if is_entered(rows, row, 1, wanted):
            break
        row = (row + 1) & mask
    return row


@register_jitable
def enter(rows, row, number, start, words):  # type: ignore[no-untyped-def]
    """Writes a key into a row; the first one takes the row."""
    if start == 1:
        rows[row, 0] = number + 1
    for i in range(len(words)):
        rows[row, start + i] = words[i]


@register_jitable
def roomy(rows, used):  # type: ignore[no-untyped-def]
    """The table, or a larger one once half of it is used."""
    if 2 * used < rows.shape[0]:
        return rows
    larger = np.zeros((4 * rows.shape[0], rows.shape[1]), np.intp)
    mask = larger.shape[0] - 1
    for old in range(rows.shape[0]):
        if rows[old, 0] != 0:
            row = ((rows[old, 1] >> 3) ^ (rows[old, 1] >> 11)) & mask
            while larger[row, 0] != 0:
                row = (row + 1) & mask
            larger[row] = rows[old]
    return larger
