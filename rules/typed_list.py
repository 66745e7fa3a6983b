"""Numba's typed lists (numba/cext/listobject.c), each with a shadow list that lives in the arena.

The shadow of the list's struct is `%irad.list` (irad/backend/runtime/containers.ll): the shadows of the items, which
lie as the items do. What the C functions do to items is done to the shadows, in the forward sweep to the pointers in
them, in the reverse sweep, backwards, to the cotangents; in forward mode to pointers and tangents.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.instructions import CallSite
from irad.ir.types import I64, PTR, VOID, Type, function_type
from irad.ir.values import ConstantNull, Value, const_int
from irad.rules.memory import fill, move, move_cotangents
from irad.ruleset.interface import (
    CallRule,
    CopyContext,
    Effects,
    Inactive,
    Origin,
    ReverseContext,
    Rule,
    carried,
    shadow_rule,
)
from irad.ruleset.memory_type import MemoryType
from irad.runtime_layouts import LIST

_SIZE, _STRUCT_BYTES = LIST.offset("item_size"), LIST.size  # in the shadow struct: the bytes of an item; its own
_ITEMS: Final = 0  # where the shadow struct points to the items; names that part of a list
_LENGTH: Final = 8  # names the part of a list where its size is
_NULL: Final = ConstantNull(PTR)
_ZERO: Final = const_int(I64, 0)


def memory_of_list(items: MemoryType | None) -> MemoryType:
    """Memory that a pointer to a list points to, by its parts."""
    return MemoryType(_STRUCT_BYTES, (), behind=((_ITEMS, items), (_LENGTH, MemoryType(8, ((0, "i64"),)))))


def call_helper(build: Builder, name: str, result: Type, arguments: Sequence[Value]) -> Value:
    """Calls a function of the run-time support."""
    declared = build.module.declare(name, function_type(result, [a.type for a in arguments]))
    return build.call(declared, arguments)


def _new(context: CopyContext, call: CallSite) -> None:
    """An empty shadow list."""
    slot, size = call.arguments[:2]
    if not context.is_active(slot):
        return
    struct = context.allocate(const_int(I64, _STRUCT_BYTES))
    build = context.before
    fill(build, struct, const_int(I64, _SIZE))
    build.store(context.value(size), build.byte_offset(struct, _SIZE), align=8)
    context.after.store(struct, context.shadow(slot), align=8)


def _append(context: CopyContext, call: CallSite) -> Sequence[Value]:
    """Room for one more, as in the primal; the shadow of the new item."""
    container = call.arguments[0]
    if not context.is_active(container):
        return ()
    build = context.before
    shadow = context.shadow(container)
    length = call_helper(build, "numba_list_length", I64, [context.value(container)])
    size = call_helper(build, "irad.list_room", I64, [shadow, length])
    memory = context.allocate(size)
    build = context.before
    old = build.load(PTR, shadow, align=8)
    moved = call_helper(build, "irad.list_grow", I64, [shadow, memory, length, size])
    slot = _written(context, call, shadow, length)
    return (slot, old, memory, moved) if slot is not None else ()


def _set(context: CopyContext, call: CallSite) -> Sequence[Value]:
    container, index, _ = call.arguments
    if not context.is_active(container):
        return ()
    slot = _written(context, call, context.shadow(container), context.value(index))
    return (slot,) if slot is not None else ()


def _written(context: CopyContext, call: CallSite, shadow: Value, index: Value) -> Value | None:
    """Shadow of the item that a call writes, null if it fails; None if there are no numbers in items.

    What moves with the item, pointers and tangents, goes there.
    """
    container, item = call.arguments[0], call.arguments[-1]
    build = context.after
    size = build.load(I64, build.byte_offset(shadow, _SIZE), align=8)
    items = build.load(PTR, shadow, align=8)
    succeeded = build.icmp("eq", context.value(call), const_int(types.I32, 0))
    slot = build.select(succeeded, build.byte_offset(items, build.mul(index, size)), _NULL)
    if context.is_carried(container, _ITEMS):
        bytes_ = build.select(succeeded, size, _ZERO)
        if context.is_active(item):
            move(build, slot, context.shadow(item), bytes_)
        else:
            fill(build, slot, bytes_)
    return slot if context.holds_floats(container, _ITEMS) else None


def _written_reverse(context: ReverseContext, call: CallSite, saved: Sequence[Value]) -> None:
    """The item that was copied gets the cotangent of its place in the list, which had other content before, or none."""
    if not saved:
        return
    container, item = call.arguments[0], call.arguments[-1]
    build = context.builder
    slot, *growth = (context.value(v) for v in saved)
    shadow = context.shadow(container)
    size = build.load(I64, build.byte_offset(shadow, _SIZE), align=8)
    bytes_ = build.select(build.icmp("eq", slot, _NULL), _ZERO, size)
    if context.is_active(item) and context.holds_floats(item):
        layout = context.layout(item) or context.layout(container, _ITEMS)
        move_cotangents(build, slot, context.shadow(item), bytes_, layout)
    fill(build, slot, bytes_)
    if growth:
        call_helper(build, "irad.list_shrink", VOID, growth)


def _base(context: CopyContext, call: CallSite) -> None:
    if context.is_active(call):
        context.set_shadow(context.after.load(PTR, context.shadow(call.arguments[0]), align=8))


def _remove(context: CopyContext, call: CallSite) -> Sequence[Value]:
    """The shadows of the items after it move down. Returns where they are, and the length before."""
    container = call.arguments[0]
    if not context.is_active(container):
        return ()
    length = call_helper(context.before, "numba_list_length", I64, [context.value(container)])
    build = context.after
    shadow = context.shadow(container)
    items = build.load(PTR, shadow, align=8)
    succeeded = build.icmp("eq", context.value(call), const_int(types.I32, 0))
    if context.is_carried(container, _ITEMS):
        size = build.load(I64, build.byte_offset(shadow, _SIZE), align=8)
        start, stop, step = _slice(build, [context.value(a) for a in call.arguments[1:]])
        stop = build.select(succeeded, stop, start)
        call_helper(build, "irad.list_remove", VOID, [items, size, length, start, stop, step])
    return (items, length, succeeded) if context.holds_floats(container, _ITEMS) else ()


def _remove_reverse(context: ReverseContext, call: CallSite, saved: Sequence[Value]) -> None:
    if not saved:
        return
    build = context.builder
    items, length, succeeded = (context.value(v) for v in saved)
    size = build.load(I64, build.byte_offset(context.shadow(call.arguments[0]), _SIZE), align=8)
    start, stop, step = _slice(build, [context.value(a) for a in call.arguments[1:]])
    stop = build.select(succeeded, stop, start)
    call_helper(build, "irad.list_restore", VOID, [items, size, length, start, stop, step])


def _slice(build: Builder, given: list[Value]) -> list[Value]:
    """Start, stop and step; of one index those of the slice that has it alone."""
    if len(given) > 1:
        return given
    one = const_int(I64, 1)
    return [given[0], build.add(given[0], one), one]


def _effects(item: int | None = None) -> Effects:
    """Effects of a callee that changes a list: its size, its items, where they are."""
    items = (0, _ITEMS)
    moves = ((items, (item,)),) if item is not None else ()
    return Effects(
        reads=frozenset({0}),
        writes=frozenset({0}),
        frees=frozenset({0}),
        moves=moves,
        alters=(items, (0, _LENGTH)),
        raw=True,
    )


RULES: Final[tuple[Rule, ...]] = (
    shadow_rule(("numba_list_new",), Effects(writes=frozenset({0}), makes=((0, (_ITEMS, _LENGTH)),), raw=True), _new),
    CallRule(("numba_list_append",), _effects(1), _written_reverse, _append, tangent=carried(_append), moves=True),
    CallRule(("numba_list_setitem",), _effects(2), _written_reverse, _set, tangent=carried(_set), moves=True),
    CallRule(
        ("numba_list_delitem", "numba_list_delete_slice"),
        _effects(),
        _remove_reverse,
        _remove,
        tangent=carried(_remove),
        moves=True,
    ),
    shadow_rule(
        ("numba_list_base_ptr",),
        Effects(reads=frozenset({0}), result=Origin.ARGUMENT, header=_ITEMS, raw=True, other=False),
        _base,
    ),
    Inactive(
        ("numba_list_size_address",),
        "where a list keeps its size",
        Effects(reads=frozenset({0}), result=Origin.ARGUMENT, header=_LENGTH, other=False),
    ),
)
