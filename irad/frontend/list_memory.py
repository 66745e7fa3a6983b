"""Lists of numbers among the differentiated arguments: their shadows, and the lists that are the gradients.

A list of Numba is a pointer to the header of an allocation, in which lies the pointer to the payload: sizes, a flag,
the items. Its shadow is one block: a header with the same layout, then a payload with room for as many items. The
engine moves the shadow's items elsewhere when the list grows, and back on its way through the reverse sweep, so in the
end the block holds the derivatives of the items that the list had at first. How many these were stands at its start.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import cgutils
from numba.cpython.listobj import ListInstance

from irad.frontend.abi import HEADER_DATA, Leaf, bytes_before_items, size_of_element
from irad.frontend.numba_untyped import types

_INTP = cgutils.intp_t
_VOID_POINTER = cgutils.voidptr_t

BLOCK_TYPE = types.Array(types.uint8, 1, "C")
"""A shadow as a value of the state of a pullback."""

HEADER = 64
_COUNT, _SIZE = 0, 32  # in the header, beside HEADER_DATA; the latter is where Numba has it


def list_at(context: Any, builder: Any, leaf: Leaf, flat: Any) -> Any:
    """The list that a leaf is, as Numba's accessor."""
    helper = context.make_helper(builder, leaf.type)
    helper.meminfo, helper.parent = (flat[leaf.index + i] for i in range(2))
    return ListInstance(context, builder, leaf.type, helper._getvalue())


def block_size(context: Any, builder: Any, leaf: Leaf, flat: Any) -> Any:
    """Bytes of the shadow of a list."""
    room = list_at(context, builder, leaf, flat)._payload.allocated
    items = builder.mul(room, _INTP(size_of_element(leaf.type.dtype)))
    return builder.add(_INTP(HEADER + bytes_before_items(leaf.type)), items)


def open_block(context: Any, builder: Any, leaf: Leaf, flat: Any, block: Any, size: Any) -> None:
    """Makes zeroed memory the shadow of a list."""
    count = list_at(context, builder, leaf, flat).size
    builder.store(count, _word(builder, block, _COUNT, _INTP))
    builder.store(builder.gep(block, [_INTP(HEADER)]), _word(builder, block, HEADER_DATA, _VOID_POINTER))
    builder.store(builder.sub(size, _INTP(HEADER)), _word(builder, block, _SIZE, _INTP))


def clear_block(builder: Any, block: Any, size: Any) -> None:
    """Clears the cotangents in a block of so many bytes."""
    cgutils.memset(builder, builder.gep(block, [_INTP(HEADER)]), builder.sub(size, _INTP(HEADER)), 0)


def list_of_block(context: Any, builder: Any, list_type: Any, block: Any, fail: Callable[[], None]) -> Any:
    """The derivatives in a block as a new list.

    Args:
        context: Numba's target context.
        builder: of llvmlite.
        list_type: the type of the new list.
        block: a shadow.
        fail: emits the end of the function when there is no memory.
    """
    count = builder.load(_word(builder, block, _COUNT, _INTP))
    good, made = ListInstance.allocate_ex(context, builder, list_type, count)
    with cgutils.if_unlikely(builder, builder.not_(good)):
        fail()
    made.size = count
    items = builder.gep(block, [_INTP(HEADER + bytes_before_items(list_type))])
    target = builder.bitcast(made._gep(_INTP(0)), _VOID_POINTER)
    cgutils.raw_memcpy(builder, target, items, count, size_of_element(list_type.dtype))
    return made.value


def _word(builder: Any, block: Any, offset: int, llvm_type: ir.Type) -> Any:
    return builder.bitcast(builder.gep(block, [_INTP(offset)]), llvm_type.as_pointer())
