"""Arrays and records that the caller gives for derivatives: where they lie, and how they are returned."""

from __future__ import annotations

from typing import Any

from llvmlite.ir import IRBuilder, Value
from numba.core import cgutils, types
from numba.core.base import BaseContext

from irad.frontend.memory.references import References
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
