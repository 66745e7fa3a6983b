"""Read-only arrays that repeat elements: each element gets a derivative of its own, in a packed copy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite.ir import IRBuilder, Value
from numba.core import cgutils
from numba.core.base import BaseContext

from irad.frontend.memory.references import References
from irad.frontend.memory.shadows import overlaps_itself, shape_of, strides_of
from irad.frontend.values import layouts, tree
from irad.frontend.values.tree import Content

_INTP = cgutils.intp_t


def separate(context: BaseContext, builder: IRBuilder, leaf: Content, flat: list[Any], references: References) -> None:
    """Replaces an array that repeats elements by a packed copy.

    Args:
        context: Numba's target context.
        builder: of llvmlite.
        leaf: the array.
        flat: all LLVM arguments of the primal; those that say where the array lies are replaced.
        references: hold the copy until the end of the call.
    """
    slots = _slots_of(builder, leaf, flat)
    owner = references.slot(references.transient)
    with builder.if_then(overlaps_itself(builder, leaf, flat), likely=False):
        shape = shape_of(leaf, flat)
        size = builder.mul(flat[leaf.index + tree.ITEM_COUNT], _INTP(layouts.size_of_element(leaf.type.dtype)))
        meminfo = references.allocated(size, owner)
        data = builder.bitcast(context.nrt.meminfo_data(builder, meminfo), flat[leaf.data_index].type)
        strides = _packed_strides(builder, leaf, shape)
        with cgutils.loop_nest(builder, shape, _INTP) as indices:
            source = item_at(context, builder, leaf, flat[leaf.data_index], shape, strides_of(leaf, flat), indices)
            builder.store(builder.load(source), item_at(context, builder, leaf, data, shape, strides, indices))
        null = cgutils.get_null_value(flat[leaf.index + tree.PARENT].type)
        for slot, value in zip(slots, (meminfo, null, data, *strides), strict=True):
            builder.store(value, slot[1])
    for index, slot in slots:
        flat[index] = builder.load(slot)


def item_at(
    context: BaseContext, builder: IRBuilder, leaf: Content, data: Any, shape: Any, strides: Any, indices: Any
) -> Any:
    """The place of an element of an array."""
    return cgutils.get_item_pointer2(context, builder, data, shape, strides, leaf.type.layout, indices)


def _slots_of(builder: IRBuilder, leaf: Content, flat: list[Any]) -> list[tuple[int, Any]]:
    """Stack slots with the LLVM arguments that describe where an array lies."""
    first = leaf.index + tree.SHAPE + leaf.type.ndim
    indices = (
        leaf.index + tree.MEMINFO,
        leaf.index + tree.PARENT,
        leaf.data_index,
        *range(first, first + leaf.type.ndim),
    )
    slots = [(index, cgutils.alloca_once(builder, flat[index].type)) for index in indices]
    for index, slot in slots:
        builder.store(flat[index], slot)
    return slots


def _packed_strides(builder: IRBuilder, leaf: Content, shape: Sequence[Any]) -> list[Any]:
    strides: list[Value] = [_INTP(layouts.size_of_element(leaf.type.dtype))]
    for length in reversed(shape[1:]):
        strides.insert(0, builder.mul(strides[0], length))
    return strides
