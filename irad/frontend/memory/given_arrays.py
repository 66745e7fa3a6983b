"""Arrays and records that the caller gives for derivatives: where they lie, copies of them, how they are returned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite.ir import IRBuilder, Value
from numba.core import cgutils, types
from numba.core.base import BaseContext
from numba.extending import intrinsic, overload

from irad.frontend.generated import function_from
from irad.frontend.memory.references import References
from irad.frontend.memory.shadows import array_at, extent_of_array, shadow_pointer
from irad.frontend.numba.boxing import owned_record
from irad.frontend.values.tree import Content

_INTP = cgutils.intp_t
_VOID_POINTER = cgutils.voidptr_t


def memory_at(
    context: BaseContext, builder: IRBuilder, value: Any, numba_type: Any, path: tuple[int, ...]
) -> tuple[Any, Any]:
    """The array, as a struct proxy, or the record at a path of a value, with its type."""
    for step in path:
        numba_type = numba_type.types[step]
    if path:
        value = builder.extract_value(value, list(path))
    if isinstance(numba_type, types.Record):
        return value, numba_type
    assert isinstance(numba_type, types.Array)
    return context.make_array(numba_type)(context, builder, value), numba_type


def filled_record(context: BaseContext, builder: IRBuilder, record: Any, meminfo: Value, content: Any) -> Any:
    """A value of type `OwnedRecord` in new memory, a copy of the record at a pointer."""
    data = context.nrt.meminfo_data(builder, meminfo)
    cgutils.raw_memcpy(builder, data, builder.bitcast(content, _VOID_POINTER), _INTP(record.size), 1)
    return owned_record(context, builder, record, meminfo, data)


def returned_shadow(
    context: BaseContext, builder: IRBuilder, shadow: Any, kind: Any, leaf: Content, references: References
) -> Any:
    """A shadow that the caller gave, as a result: an array is returned itself, of a record a copy.

    Args:
        context: Numba's target context.
        builder: of llvmlite.
        shadow: a struct proxy of the array, or a pointer to the record.
        kind: its Numba type.
        leaf: what it is the shadow of.
        references: hold the result.
    """
    if leaf.is_array:
        context.nrt.incref(builder, kind, shadow._getvalue())
        return references.keep(kind, shadow._getvalue())
    content = shadow.data if isinstance(kind, types.Array) else shadow
    meminfo = references.allocated(_INTP(leaf.type.size), references.slot(references.results))
    return filled_record(context, builder, leaf.type, meminfo, content)


def lies_alike(argument_type: Any, target_type: Any) -> bool:
    """Whether the elements of two arrays of one shape, or two records, are certain to lie at the same offsets."""
    return isinstance(argument_type, types.Record) or argument_type.layout == target_type.layout != "A"


@intrinsic
def shadow_like(typing: Any, array: Any) -> Any:
    """`irad.shadow_like` in compiled code."""

    def lower(context: BaseContext, builder: IRBuilder, signature: Any, values: Sequence[Any]) -> Any:
        (kind,) = signature.args
        given = context.make_array(kind)(context, builder, values[0])
        extent = extent_of_array(context, builder, given, kind)
        meminfo = References(context, builder, None, ()).scratch(extent.size(builder))  # the result takes it over
        data = shadow_pointer(context, builder, meminfo, extent)
        shape, strides = (cgutils.unpack_tuple(builder, each) for each in (given.shape, given.strides))
        return array_at(context, builder, signature.return_type, data, shape, strides, meminfo)

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
