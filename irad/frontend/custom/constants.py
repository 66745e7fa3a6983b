"""Arguments through which no derivative flows, in derivatives that are differentiated again.

Input   a value that Numba lowers, its type.
Output  the same value, of which every derivative is zero, whatever the order and mode.
Method  numbers go through a function that the engine knows to carry no derivative. Memory keeps its address, and gets a
        shadow of its own, which nothing else sees: zeros where tangents are read, and cotangents that come there are lost.
Why     the engine itself treats such parameters as constant. What it then writes for the first derivative is plain code,
        in which the next one would find a path from the argument to the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from llvmlite import ir
from llvmlite.ir import IRBuilder, Value
from numba.core import cgutils, types
from numba.core.base import BaseContext
from numba.core.types import Type

from irad.errors import UnsupportedError
from irad.frontend.numba.messages import described
from irad.frontend.values import build, layouts, tree

STOP_MEMORY: Final = "irad.stop.memory"


def stopped_number(builder: IRBuilder, value: Value) -> Value:
    """A float as a constant."""
    name = "irad.stop.f64" if isinstance(value.type, ir.DoubleType) else "irad.stop.f32"
    function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(value.type, [value.type]), name)
    function.attributes.add("nounwind")
    function.attributes.add("readnone")
    return builder.call(function, [value])


def stopped(context: BaseContext, builder: IRBuilder, numba_type: Type, value: Value, name: str) -> Value:
    """An argument as a constant.

    Args:
        context: Numba's target context.
        builder: of llvmlite.
        numba_type: of the argument.
        value: it.
        name: of the argument and its function, for the message.

    Raises:
        UnsupportedError: it is memory that leads to other memory.
    """
    if numba_type in layouts.FLOATS:
        return stopped_number(builder, value)
    if numba_type in layouts.COMPLEX:
        for part in range(2):
            number = stopped_number(builder, builder.extract_value(value, part))
            value = builder.insert_value(value, number, part)
        return value
    if isinstance(numba_type, types.BaseTuple):
        for i, item_type in enumerate(numba_type.types):
            item = stopped(context, builder, item_type, builder.extract_value(value, i), name)
            value = builder.insert_value(value, item, i)
        return value
    match build.kind_of(numba_type):
        case tree.LeafKind.INERT:
            return value
        case tree.LeafKind.ARRAY:
            return _stopped_array(context, builder, numba_type, value)
        case tree.LeafKind.RECORD:
            return _stopped_memory(builder, value, cgutils.intp_t(0), cgutils.intp_t(layouts.size_of_element(numba_type)))
        case _:
            raise UnsupportedError(
                f"{name}, an inactive argument, is {described(numba_type)}, and a derivative is differentiated",
                "(a) pass numbers, arrays, or tuples of these or (b) give the function a rule, in irad.rules",
                "the next derivative finds every way into memory that leads to other memory",
            )


def _stopped_array(context: BaseContext, builder: IRBuilder, numba_type: Any, value: Value) -> Value:
    array = context.make_array(numba_type)(context, builder, value)
    shape, strides = cgutils.unpack_tuple(builder, array.shape), cgutils.unpack_tuple(builder, array.strides)
    low, size = _extent(builder, shape, strides, layouts.size_of_element(numba_type.dtype))
    array.data = _stopped_memory(builder, array.data, low, size)
    return array._getvalue()


def _extent(builder: IRBuilder, shape: Sequence[Value], strides: Sequence[Value], item: int) -> tuple[Value, Value]:
    """Where the memory of an array begins, in bytes from its first element, and how many these are."""
    zero = cgutils.intp_t(0)
    low, high, is_empty = zero, cgutils.intp_t(item), ir.Constant(ir.IntType(1), 0)
    for count, stride in zip(shape, strides, strict=True):
        reach = builder.mul(builder.sub(count, cgutils.intp_t(1)), stride)
        is_backwards = builder.icmp_signed("<", reach, zero)
        low = builder.add(low, builder.select(is_backwards, reach, zero))
        high = builder.add(high, builder.select(is_backwards, zero, reach))
        is_empty = builder.or_(is_empty, builder.icmp_signed("==", count, zero))
    return builder.select(is_empty, zero, low), builder.select(is_empty, zero, builder.sub(high, low))


def _stopped_memory(builder: IRBuilder, pointer: Value, low: Value, size: Value) -> Value:
    """The pointer, for memory that begins ``low`` bytes after where it points to."""
    bytes_ = cgutils.voidptr_t
    kind = ir.FunctionType(bytes_, [bytes_, cgutils.intp_t])
    function = cgutils.get_or_insert_function(builder.module, kind, STOP_MEMORY)
    start = builder.gep(builder.bitcast(pointer, bytes_), [low])
    apart = builder.call(function, [start, size])
    return builder.bitcast(builder.gep(apart, [builder.neg(low)]), pointer.type)
