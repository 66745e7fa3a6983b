"""Memory for several arrays: a buffer for each, or where any of them overlap one for all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import combinations
from typing import Any

from llvmlite.ir import IRBuilder
from numba.core import cgutils
from numba.core.base import BaseContext

from irad.frontend.memory.references import References
from irad.frontend.memory.regions import VOID_POINTER, Owner, Regions
from irad.frontend.memory.shadows import (
    MEMINFO_TYPE,
    Extent,
    any_of,
    array_at,
    extent_of_array,
    overlap,
    shadow_pointer,
)


def buffers_for(
    context: BaseContext,
    builder: IRBuilder,
    extents: Sequence[Extent],
    slots: Sequence[Any],
    allocate: Callable[[Any, Any], Any],
) -> list[Any]:
    """Makes memory for arrays that may overlap, in which they lie as they lie at first; of each its first element.

    Args:
        context: Numba's target context.
        builder: of llvmlite.
        extents: of the arrays.
        slots: of `References`, for each array one that takes a reference on its memory.
        allocate: makes memory of a size, and puts the reference into a slot.
    """
    places = [cgutils.alloca_once(builder, VOID_POINTER) for _ in extents]
    overlapping = any_of(builder, (overlap(builder, *pair) for pair in combinations(extents, 2)))
    with builder.if_else(overlapping, likely=False) as (joined, apart):
        with joined:
            table = Regions(context, builder)
            table.open_on_stack(len(extents))
            found = [table.extent(extent, Owner.CALL) for extent in extents]
            meminfo = allocate(table.place(joined=True), slots[0])
            data = context.nrt.meminfo_data(builder, meminfo)
            for slot in slots[1:]:
                context.nrt.incref(builder, MEMINFO_TYPE, meminfo)
                builder.store(meminfo, slot)
            for at, place in zip(found, places, strict=True):
                builder.store(table.address(data, at), place)
        with apart:
            for extent, slot, place in zip(extents, slots, places, strict=True):
                meminfo = allocate(extent.size(builder), slot)
                builder.store(shadow_pointer(context, builder, meminfo, extent), place)
    return [builder.load(place) for place in places]


def copy_arrays(
    context: BaseContext,
    builder: IRBuilder,
    arrays: Sequence[Any],
    array_types: Sequence[Any],
    may_overlap: bool,
    references: References,
) -> list[Any]:
    """Copies of arrays in new memory, with their strides; arrays that overlap have copies that do so in the same way.

    Args:
        context: Numba's target context.
        builder: of llvmlite.
        arrays: struct proxies.
        array_types: their Numba types.
        may_overlap: without it no two of them share memory.
        references: hold the copies, as results.
    """
    extents = [extent_of_array(context, builder, a, t) for a, t in zip(arrays, array_types, strict=True)]
    slots = [references.slot(references.results) for _ in arrays]
    allocate = partial(references.allocated, zeroed=False)
    if may_overlap:
        places = buffers_for(context, builder, extents, slots, allocate)
    else:
        made = [allocate(extent.size(builder), slot) for extent, slot in zip(extents, slots, strict=True)]
        places = [shadow_pointer(context, builder, *each) for each in zip(made, extents, strict=True)]
    copies = []
    for array, array_type, extent, slot, place in zip(arrays, array_types, extents, slots, places, strict=True):
        start = builder.gep(place, [builder.sub(extent.low, extent.data)])
        source = builder.inttoptr(extent.low, VOID_POINTER)
        cgutils.raw_memcpy(builder, start, source, extent.size(builder), 1)
        meminfo = builder.load(slot)
        copies.append(array_at(context, builder, array_type, place, array.shape, array.strides, meminfo))
    return copies
