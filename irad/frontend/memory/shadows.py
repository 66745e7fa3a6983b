"""Shadow memory in generated code: byte extents, congruent buffers, overlap.

A shadow is congruent with its primal to the byte: same strides, same offsets. The buffer of a strided array therefore
covers the array's whole byte extent.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Any

from llvmlite import ir
from llvmlite.ir import IRBuilder, Value
from numba.core import cgutils, types
from numba.np.arrayobj import populate_array

from irad.frontend.emit import INTP, VOID_POINTER, Emit
from irad.frontend.values import layouts, tree
from irad.frontend.values.tree import (
    Content,
    content_of,
)
from irad.records import dataclass

ALIGNMENT = 64
NO_MEMORY = ("not enough memory for the derivative (heap, or stack if it recurses deeply)",)
MEMINFO_TYPE = types.MemInfoPointer(types.voidptr)
BYTES = types.Array(types.uint8, 1, "C")


@dataclass(frozen=True)
class Extent:
    """The addresses that an array or record spans: from ``low`` to before ``high``; ``data`` is that of its start."""

    data: Any
    low: Value
    high: Value

    def size(self, builder: IRBuilder) -> Value:
        """Number of bytes spanned."""
        return builder.sub(self.high, self.low)


def shape_of(leaf: Content, flat: Sequence[Any]) -> list[Any]:
    """The lengths of an array's dimensions; ``flat`` are all LLVM arguments, indexed as the leaf is."""
    start = leaf.index + tree.SHAPE
    return list(flat[start : start + leaf.type.ndim])


def strides_of(leaf: Content, flat: Sequence[Any]) -> list[Any]:
    """The byte strides of an array's dimensions."""
    start = leaf.index + tree.SHAPE + leaf.type.ndim
    return list(flat[start : start + leaf.type.ndim])


def extent_of(builder: IRBuilder, leaf: Content, flat: Sequence[Any]) -> Extent:
    """The byte extent of an array or record."""
    data = builder.ptrtoint(flat[leaf.data_index], INTP)
    item_size = INTP(layouts.size_of_element(leaf.element))
    if not leaf.is_array:
        return Extent(data, data, builder.add(data, item_size))
    count = flat[leaf.index + tree.ITEM_COUNT]
    if leaf.type.layout in "CF":
        return Extent(data, data, builder.add(data, builder.mul(count, item_size)))
    low, high = data, builder.add(data, item_size)
    zero = INTP(0)
    for length, stride in zip(shape_of(leaf, flat), strides_of(leaf, flat), strict=True):
        reach = builder.mul(builder.sub(length, INTP(1)), stride)
        backwards = builder.icmp_signed("<", reach, zero)
        low = builder.add(low, builder.select(backwards, reach, zero))
        high = builder.add(high, builder.select(backwards, zero, reach))
    is_empty = builder.icmp_signed("==", count, zero)
    return Extent(data, builder.select(is_empty, data, low), builder.select(is_empty, data, high))


def overlap(builder: IRBuilder, left: Extent, right: Extent) -> Any:
    """True if two extents have an address in common."""
    # The last two: an empty extent overlaps nothing, even where it lies within the other.
    conditions = (
        builder.icmp_unsigned("<", left.low, right.high),
        builder.icmp_unsigned("<", right.low, left.high),
        builder.icmp_unsigned("<", left.low, left.high),
        builder.icmp_unsigned("<", right.low, right.high),
    )
    return reduce(builder.and_, conditions)


def overlaps_itself(builder: IRBuilder, leaf: Content, flat: Sequence[Any]) -> Value:
    """True if two elements of a strided array may have the same address.

    They cannot when the dimensions nest: each stride passes over all that the smaller strides reach. Only repeated
    elements as ``np.broadcast_to`` makes them (stride 0) and windows (equal or interleaved strides) fail this test.
    """
    extents = list(zip(shape_of(leaf, flat), strides_of(leaf, flat), strict=True))
    verdicts = []
    for i, (length, stride) in enumerate(extents):
        reach: Value = INTP(layouts.size_of_element(leaf.type.dtype))
        size = _absolute(builder, stride)
        for j, (other_length, other_stride) in enumerate(extents):
            if i == j:
                continue
            other = _absolute(builder, other_stride)
            # Of two equal strides the later one counts as inner, so that exactly one of the two covers the other.
            is_inner = builder.icmp_signed("<=" if j > i else "<", other, size)
            covered = builder.mul(builder.sub(other_length, INTP(1)), other)
            reach = builder.add(reach, builder.select(is_inner, covered, INTP(0)))
        repeats = builder.icmp_signed(">", length, INTP(1))
        verdicts.append(builder.and_(repeats, builder.icmp_signed("<", size, reach)))
    count = builder.icmp_signed(">", flat[leaf.index + tree.ITEM_COUNT], INTP(1))
    return builder.and_(count, any_of(builder, verdicts))


def _absolute(builder: IRBuilder, value: Value) -> Value:
    return builder.select(builder.icmp_signed("<", value, INTP(0)), builder.neg(value), value)


def any_of(builder: IRBuilder, conditions: Iterable[Any]) -> Any:
    """True if one of some bits is set."""
    none: Value = cgutils.false_bit
    return reduce(builder.or_, conditions, none)


def all_of(builder: IRBuilder, conditions: Iterable[Any]) -> Any:
    """True if all of some bits are set."""
    every: Value = cgutils.true_bit
    return reduce(builder.and_, conditions, every)


def differ(builder: IRBuilder, left: Sequence[Any], right: Sequence[Any]) -> Any:
    """True if two shapes are not the same."""
    return any_of(builder, (builder.icmp_signed("!=", mine, theirs) for mine, theirs in zip(left, right, strict=True)))


def clear(builder: IRBuilder, pointer: Value, size: Value, symbol: str | None) -> None:
    """Clears memory: by the function ``symbol`` of a derivative with parallel loops, which uses their threads."""
    if symbol is None:
        cgutils.memset(builder, pointer, size, 0)
        return
    function_type = ir.FunctionType(ir.VoidType(), [VOID_POINTER, INTP])
    callee = cgutils.get_or_insert_function(builder.module, function_type, symbol)
    builder.call(callee, [builder.bitcast(pointer, VOID_POINTER), size])


def shadow_pointer(emit: Emit, meminfo: Value, extent: Extent) -> Value:
    """The shadow of an array's first element in a buffer for an extent."""
    builder = emit.builder
    base = emit.context.nrt.meminfo_data(builder, meminfo)
    return builder.gep(base, [builder.sub(extent.data, extent.low)])


def extent_of_array(emit: Emit, array: Any, array_type: Any) -> Extent:
    """The byte extent of an array that is a value of the function being lowered (a struct proxy)."""
    builder = emit.builder
    flat = emit.context.get_arg_packer((array_type,)).as_arguments(builder, [array._getvalue()])
    return extent_of(builder, content_of(array_type), flat)


def array_at(
    emit: Emit,
    array_type: Any,
    data: Any,
    shape: Sequence[Any],
    strides: Sequence[Any],
    meminfo: Value | None,
) -> Any:
    """An array at an address, which takes over a reference."""
    builder = emit.builder
    array = emit.array(array_type)
    item_size = INTP(layouts.size_of_element(array_type.dtype))
    populate_array(array, builder.bitcast(data, array.data.type), shape, strides, item_size, meminfo)
    return array._getvalue()


def bytes_at(emit: Emit, data: Value, size: Value, meminfo: Value) -> Any:
    """Memory as a value of the state of a pullback, of the type `BYTES`, which takes over a reference."""
    return array_at(emit, BYTES, data, (size,), (INTP(1),), meminfo)
