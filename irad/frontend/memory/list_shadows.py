"""Lists of numbers among the differentiated arguments: their shadows, and the lists that are the gradients.

A *reflected* list `[…]` is a pointer to the header of an allocation, in which lies the pointer to the payload: sizes, a
flag, the items. A *typed* list is a pointer to a struct of Numba's C code, whose shadow is `%irad.list`
(``irad/backend/runtime/containers.ll``).

The shadow of a list is one block: how many items there are, a header or struct as the engine expects it, the items. In
code that is differentiated itself the items have a block of their own: integers and pointers beside numbers are hard to
tell from them.

The engine moves the shadow's items elsewhere when the list grows, and back on its way through the reverse sweep, so in
the end the block holds the derivatives of the items that the list had at first.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from llvmlite.ir import IRBuilder, Value
from numba.core import cgutils, types
from numba.cpython.listobj import ListInstance
from numba.typed.listobject import new_list

from irad.frontend.emit import INTP, VOID_POINTER, Emit
from irad.frontend.memory.caller_values import TANGENT, item_of, length_of, refuse_length
from irad.frontend.memory.references import References
from irad.frontend.memory.shadows import array_at
from irad.frontend.numba import internals
from irad.frontend.values.layouts import HEADER_DATA, bytes_before_items, size_of_element
from irad.frontend.values.tree import Content
from irad.records import dataclass
from irad.runtime_layouts import LIST

_COUNT = 0  # offsets in a block; a header's first bytes are not used otherwise
_PAYLOAD, _PAYLOAD_SIZE = 64, 32  # of a reflected list; the latter is where Numba has it in the header
_STRUCT = 8  # of a typed list
_TYPED_ITEMS = _STRUCT + LIST.size


@dataclass(frozen=True)
class ListBlock:
    """The shadow of a list: LLVM values.

    Attributes:
        meminfo: meminfo of the block.
        size: its bytes.
        data: its address.
        items: where the items begin, with what precedes them in a payload.
        shadow: the address that belongs to the primal's.
    """

    meminfo: Value
    size: Value
    data: Any
    items: Any
    shadow: Any


def head_size(list_type: types.Type) -> int:
    """Bytes of a block before the payload or the items."""
    return _TYPED_ITEMS if isinstance(list_type, types.ListType) else _PAYLOAD


def items_size(emit: Emit, leaf: Content, flat: Any) -> Value:
    """Bytes of the payload or the items of a list."""
    builder = emit.builder
    if isinstance(leaf.type, types.List):
        room = internals.allocated_items(_reflected(emit, leaf, flat))
    else:
        room = _count(emit, leaf, flat)
    items = builder.mul(room, INTP(size_of_element(leaf.type.dtype)))
    return builder.add(INTP(_before_items(leaf.type)), items)


def open_block(emit: Emit, leaf: Content, flat: Any, block: Value, items: Value, size: Value) -> Any:
    """Makes zeroed memory the shadow of a list; returns the address that belongs to the primal's.

    Args:
        leaf: the list.
        flat: the LLVM values of the arguments.
        block: the memory for what precedes the items.
        items: the memory for these.
        size: bytes of it.
    """
    builder = emit.builder
    count = _count(emit, leaf, flat)
    _store(builder, block, _COUNT, count)
    if isinstance(leaf.type, types.ListType):
        fields = {"items": items, "room": count, "item_size": INTP(size_of_element(leaf.type.dtype))}
        for field, word in fields.items():
            _store(builder, block, _STRUCT + LIST.offset(field), word)
        return builder.gep(block, [INTP(_STRUCT)])
    _store(builder, block, HEADER_DATA, items)
    _store(builder, block, _PAYLOAD_SIZE, size)
    return block


def fill_block(
    emit: Emit,
    leaf: Content,
    block: ListBlock,
    given: tuple[Any, Any],
    references: References,
    name: str,
) -> None:
    """Puts the items of a list, the tangent, into a block; ends the call if it has another length.

    Args:
        leaf: the list.
        block: its shadow.
        given: the tangent and its type; None is zero.
        references: references of the call.
        name: name of the argument.
    """
    builder = emit.builder
    value, list_type = given
    if list_type == types.none:
        return
    count = builder.load(_at(builder, block.data, _COUNT, INTP))
    refuse_length(references.refuse, builder, length_of(emit, list_type, value), count, TANGENT, name)
    first = _at(builder, block.items, _before_items(leaf.type), emit.context.get_data_type(list_type.dtype))
    kinds = (list_type, list_type.dtype, types.intp)
    with cgutils.for_range(builder, count, intp=INTP) as loop:
        item = item_of(emit, kinds, value, loop.index)
        builder.store(item, builder.gep(first, [loop.index]))


def clear_block(builder: IRBuilder, list_type: types.Type, block: Value, size: Value) -> None:
    """Clears the cotangents in a block of ``size`` bytes."""
    first = INTP(head_size(list_type) + _before_items(list_type))
    cgutils.memset(builder, builder.gep(block, [first]), builder.sub(size, first), 0)


def list_of_block(emit: Emit, list_type: Any, block: Value, items: Value | None, references: References) -> Any:
    """The derivatives in a block as a new list.

    Args:
        list_type: the type of the new list.
        block: a shadow.
        items: of `ListBlock`; None where they follow in the block.
        references: hold it, as a result.
    """
    builder = emit.builder
    count = builder.load(_at(builder, block, _COUNT, INTP))
    payload = builder.gep(block, [INTP(head_size(list_type))]) if items is None else items
    items = builder.gep(payload, [INTP(_before_items(list_type))])
    if isinstance(list_type, types.ListType):
        return references.keep(list_type, _typed_list(emit, list_type, items, count))
    good, made = ListInstance.allocate_ex(emit.context, builder, list_type, count)
    with cgutils.if_unlikely(builder, builder.not_(good)):
        references.fail()
    made.size = count
    target = builder.bitcast(internals.address_of_item(made, INTP(0)), VOID_POINTER)
    cgutils.raw_memcpy(builder, target, items, count, size_of_element(list_type.dtype))
    return references.keep(list_type, made.value)


def _typed_list(emit: Emit, list_type: Any, items: Any, count: Value) -> Any:
    dtype = list_type.dtype

    def make(values: Any) -> Any:
        found = new_list(dtype)
        for i in range(values.size):
            found.append(values[i])
        return found

    array_type = types.Array(dtype, 1, "C")
    values = array_at(emit, array_type, items, (count,), (INTP(size_of_element(dtype)),), None)
    return emit.context.compile_internal(emit.builder, make, list_type(array_type), [values])


def _before_items(list_type: Any) -> int:
    """Bytes of a payload before its items."""
    return 0 if isinstance(list_type, types.ListType) else bytes_before_items(list_type)


def _count(emit: Emit, leaf: Content, flat: Any) -> Any:
    """Number of items of a list."""
    if isinstance(leaf.type, types.List):
        return _reflected(emit, leaf, flat).size
    return emit.context.compile_internal(emit.builder, _length, types.intp(leaf.type), [_value(emit, leaf, flat)])


def _length(values: Any) -> int:
    """Compiled by Numba."""
    return len(values)


def _reflected(emit: Emit, leaf: Content, flat: Any) -> Any:
    """Numba's accessor of a reflected list."""
    return ListInstance(emit.context, emit.builder, leaf.type, _value(emit, leaf, flat))


def _value(emit: Emit, leaf: Content, flat: Any) -> Value:
    helper = emit.context.make_helper(emit.builder, leaf.type)
    for i in range(2):
        helper[i] = flat[leaf.index + i]
    return helper._getvalue()


def _at(builder: IRBuilder, block: Value, offset: int, llvm_type: ir.Type) -> Value:
    return builder.bitcast(builder.gep(block, [INTP(offset)]), llvm_type.as_pointer())


def _store(builder: IRBuilder, block: Value, offset: int, word: Value) -> None:
    builder.store(word, _at(builder, block, offset, word.type))
