"""Arrays and records of a call: those that the caller gives, buffers for shadows, copies.

Arrays that overlap have buffers that overlap in the same way. A read-only array whose elements alias (broadcast, zero
strides) is replaced by a packed copy, so that each element has a derivative of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import combinations
from typing import Any

from llvmlite.ir import IRBuilder, Value
from numba.core import cgutils, types
from numba.core.base import BaseContext
from numba.extending import intrinsic, overload

from irad.frontend.emit import INTP, VOID_POINTER, Emit
from irad.frontend.generated import function_from
from irad.frontend.memory.references import References
from irad.frontend.memory.regions import Owner, Regions
from irad.frontend.memory.shadows import (
    MEMINFO_TYPE,
    Extent,
    any_of,
    array_at,
    extent_of_array,
    overlap,
    overlaps_itself,
    shadow_pointer,
    shape_of,
    strides_of,
)
from irad.frontend.numba.boxing import owned_record
from irad.frontend.values import layouts, tree
from irad.frontend.values.tree import Content


def memory_at(emit: Emit, value: Any, numba_type: Any, path: tuple[int, ...]) -> tuple[Any, Any]:
    """The array, as a struct proxy, or the record at a path of a value, with its type."""
    builder = emit.builder
    for step in path:
        numba_type = numba_type.types[step]
    if path:
        value = builder.extract_value(value, list(path))
    if isinstance(numba_type, types.Record):
        return value, numba_type
    assert isinstance(numba_type, types.Array)
    return emit.array(numba_type, value), numba_type


def filled_record(emit: Emit, record: Any, meminfo: Value, content: Any) -> Any:
    """A value of type `OwnedRecord` in new memory, a copy of the record at a pointer."""
    context, builder = emit.context, emit.builder
    data = context.nrt.meminfo_data(builder, meminfo)
    cgutils.raw_memcpy(builder, data, builder.bitcast(content, VOID_POINTER), INTP(record.size), 1)
    return owned_record(context, builder, record, meminfo, data)


def returned_shadow(emit: Emit, shadow: Any, kind: Any, leaf: Content, references: References) -> Any:
    """A shadow that the caller gave, as a result: an array is returned itself, of a record a copy.

    Args:
        shadow: a struct proxy of the array, or a pointer to the record.
        kind: its Numba type.
        leaf: the leaf that it is the shadow of.
        references: hold the result.
    """
    if leaf.is_array:
        emit.context.nrt.incref(emit.builder, kind, shadow._getvalue())
        return references.keep(kind, shadow._getvalue())
    content = shadow.data if isinstance(kind, types.Array) else shadow
    meminfo = references.allocated(INTP(leaf.type.size), references.slot(references.results))
    return filled_record(emit, leaf.type, meminfo, content)


def has_same_layout(argument_type: Any, target_type: Any) -> bool:
    """True if the elements of two arrays of one shape, or two records, are certain to lie at the same offsets."""
    return isinstance(argument_type, types.Record) or argument_type.layout == target_type.layout != "A"


@intrinsic
def shadow_like(typing: Any, array: Any) -> Any:
    """`irad.shadow_like` in compiled code."""

    def lower(context: BaseContext, builder: IRBuilder, signature: Any, values: Sequence[Any]) -> Any:
        (kind,), emit = signature.args, Emit(context, builder)
        given = emit.array(kind, values[0])
        extent = extent_of_array(emit, given, kind)
        meminfo = References(emit, None, ()).scratch(extent.size(builder))  # the result takes it over
        data = shadow_pointer(emit, meminfo, extent)
        shape, strides = (cgutils.unpack_tuple(builder, each) for each in (given.shape, given.strides))
        return array_at(emit, signature.return_type, data, shape, strides, meminfo)

    return types.Array(array.dtype, array.ndim, array.layout)(array), lower


def own_tangent(tangent: object, argument: object) -> Any:
    """A tangent whose arrays are copies, each laid out like the array in the argument that it belongs to."""
    raise NotImplementedError("called in compiled code only")


@overload(own_tangent)
def _own_tangent_typed(tangent, argument):  # type: ignore[no-untyped-def]
    if isinstance(tangent, types.Array):
        return _own_array
    if not isinstance(tangent, types.BaseTuple):
        return lambda tangent, argument: tangent
    parts = "".join(f"own_tangent(tangent[{i}], argument[{i}]), " for i in range(len(tangent)))
    source = f"def parts(tangent, argument):\n    return ({parts})\n"
    return function_from("parts", source, "irad.hvp", {"own_tangent": own_tangent})


def _own_array(tangent, argument):  # type: ignore[no-untyped-def]
    # Broadcasting would hide a tangent of another shape from the check, which comes later.
    own = shadow_like(argument) if tangent.shape == argument.shape else shadow_like(tangent)
    own[...] = tangent
    return own


# --- arrays that may overlap ------------------------------------------------------------------------------------------


def allocate_buffers(
    emit: Emit,
    extents: Sequence[Extent],
    slots: Sequence[Any],
    allocate: Callable[[Any, Any], Any],
) -> list[Any]:
    """Makes memory for arrays that may overlap, in which they lie as they lie at first; of each its first element.

    Args:
        extents: extents of the arrays.
        slots: of `References`, for each array one that takes a reference on its memory.
        allocate: makes memory of a size, and puts the reference into a slot.
    """
    context, builder = emit.context, emit.builder
    places = [cgutils.alloca_once(builder, VOID_POINTER) for _ in extents]
    overlapping = any_of(builder, (overlap(builder, *pair) for pair in combinations(extents, 2)))
    with builder.if_else(overlapping, likely=False) as (joined, apart):
        with joined:
            table = Regions(emit)
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
                builder.store(shadow_pointer(emit, meminfo, extent), place)
    return [builder.load(place) for place in places]


def copy_arrays(
    emit: Emit,
    arrays: Sequence[Any],
    array_types: Sequence[Any],
    may_overlap: bool,
    references: References,
) -> list[Any]:
    """Copies of arrays in new memory, with their strides; arrays that overlap have copies that do so in the same way.

    Args:
        arrays: struct proxies.
        array_types: their Numba types.
        may_overlap: without it no two of them share memory.
        references: hold the copies, as results.
    """
    builder = emit.builder
    extents = [extent_of_array(emit, a, t) for a, t in zip(arrays, array_types, strict=True)]
    slots = [references.slot(references.results) for _ in arrays]
    allocate = partial(references.allocated, zeroed=False)
    if may_overlap:
        places = allocate_buffers(emit, extents, slots, allocate)
    else:
        made = [allocate(extent.size(builder), slot) for extent, slot in zip(extents, slots, strict=True)]
        places = [shadow_pointer(emit, *each) for each in zip(made, extents, strict=True)]
    copies = []
    for array, array_type, extent, slot, place in zip(arrays, array_types, extents, slots, places, strict=True):
        start = builder.gep(place, [builder.sub(extent.low, extent.data)])
        source = builder.inttoptr(extent.low, VOID_POINTER)
        cgutils.raw_memcpy(builder, start, source, extent.size(builder), 1)
        meminfo = builder.load(slot)
        copies.append(array_at(emit, array_type, place, array.shape, array.strides, meminfo))
    return copies


# --- arrays whose elements alias --------------------------------------------------------------------------------------


def unalias_elements(emit: Emit, leaf: Content, flat: list[Any], references: References) -> None:
    """Replaces an array that repeats elements by a packed copy.

    Args:
        leaf: the array.
        flat: all LLVM arguments of the primal; those that say where the array lies are replaced.
        references: hold the copy until the end of the call.
    """
    builder = emit.builder
    slots = _slots_of(builder, leaf, flat)
    owner = references.slot(references.transient)
    with builder.if_then(overlaps_itself(builder, leaf, flat), likely=False):
        shape = shape_of(leaf, flat)
        size = builder.mul(flat[leaf.index + tree.ITEM_COUNT], INTP(layouts.size_of_element(leaf.type.dtype)))
        meminfo = references.allocated(size, owner)
        data = builder.bitcast(emit.context.nrt.meminfo_data(builder, meminfo), flat[leaf.data_index].type)
        strides = _packed_strides(builder, leaf, shape)
        with cgutils.loop_nest(builder, shape, INTP) as indices:
            source = item_at(emit, leaf, flat[leaf.data_index], shape, strides_of(leaf, flat), indices)
            builder.store(builder.load(source), item_at(emit, leaf, data, shape, strides, indices))
        null = cgutils.get_null_value(flat[leaf.index + tree.PARENT].type)
        for slot, value in zip(slots, (meminfo, null, data, *strides), strict=True):
            builder.store(value, slot[1])
    for index, slot in slots:
        flat[index] = builder.load(slot)


def item_at(emit: Emit, leaf: Content, data: Value, shape: Any, strides: Any, indices: Any) -> Any:
    """The place of an element of an array."""
    return cgutils.get_item_pointer2(emit.context, emit.builder, data, shape, strides, leaf.type.layout, indices)


def _slots_of(builder: IRBuilder, leaf: Content, flat: list[Any]) -> list[tuple[int, Any]]:
    """Stack slots with the LLVM arguments that say where the elements of an array are."""
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
    strides: list[Value] = [INTP(layouts.size_of_element(leaf.type.dtype))]
    for length in reversed(shape[1:]):
        strides.insert(0, builder.mul(strides[0], length))
    return strides
