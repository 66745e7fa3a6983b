"""What compiled code is told of memory that Numba hides: addresses, other types for it, a table on the stack."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.base import BaseContext
from numba.extending import intrinsic
from numba.np import arrayobj

from irad.errors import HERE, SignatureError
from irad.frontend.numba.messages import described
from irad.frontend.values.tree import content_of, is_headed

_WORD = types.intp


@intrinsic
def address(_typing_context: Any, value: Any) -> Any:
    """Where an array, a record, a list, a dictionary or an instance begins, as an integer."""

    def generate(context: BaseContext, builder: Any, signature: Any, arguments: Any) -> Any:
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
    """The same value as one of another type: a number converted, what is not None without the option.

    Of an array that is made here the layout is known, and taken for granted.
    """
    target = wanted.instance_type
    is_number = isinstance(value, types.Number | types.Boolean)
    if is_number != isinstance(target, types.Number) and not isinstance(value, types.Optional):
        raise misfit(value, target)
    if isinstance(value, types.Complex) and not isinstance(target, types.Complex):
        raise misfit(value, target)

    def generate(context: BaseContext, builder: Any, signature: Any, arguments: Any) -> Any:
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

    def generate(context: BaseContext, builder: Any, signature: Any, arguments: Any) -> Any:
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
