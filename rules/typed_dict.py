"""Numba's typed dictionaries (numba/cext/dictobject.c), each with a shadow dictionary that lives in the arena.

The shadow of the dictionary's struct is `%irad.dict` (irad/backend/runtime/containers.ll): a table of cells, one for
each entry. A lookup passes on what is in a cell, an insertion writes it; so adjoints are those of loads and stores, and
only the cell's address must be known in the reverse sweep. No cell is read after its entry was deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from irad.errors import UnsupportedError
from irad.ir.builder import Builder
from irad.ir.instructions import CallSite
from irad.ir.types import I64, PTR, VOID, function_type
from irad.ir.values import ConstantNull, Value, const_int
from irad.rules.memory import fill, move, move_cotangents
from irad.rules.typed_list import call_helper
from irad.ruleset.interface import (
    CallRule,
    CopyContext,
    Effects,
    MemoryPath,
    ReverseContext,
    Rule,
    TangentContext,
    TangentPart,
    shadow_rule,
)
from irad.ruleset.memory_type import MemoryType
from irad.runtime_layouts import DICT

# In the shadow struct: bytes of a key, where the value is in a cell, bytes of a value; bytes of the struct.
_KEY_BYTES, _VALUE_AT, _VALUE_BYTES = (DICT.offset(field) for field in ("key_size", "value_at", "value_size"))
_STRUCT_BYTES = DICT.size
_KEYS, _VALUES = 0, 8  # the parts of a dictionary
_NULL: Final = ConstantNull(PTR)
_ZERO: Final = const_int(I64, 0)
_LOOKUP: Final = function_type(I64, [PTR, PTR, I64, PTR])


def memory_of_dict(keys: MemoryType | None, values: MemoryType | None) -> MemoryType:
    """Memory that a pointer to a dictionary points to, by its parts."""
    return MemoryType(_STRUCT_BYTES, (), behind=((_KEYS, keys), (_VALUES, values)))


def _new(context: CopyContext, call: CallSite) -> None:
    """An empty shadow dictionary."""
    slot, _, key_size, value_size = call.arguments
    if not context.is_active(slot):
        return
    struct = context.allocate(const_int(I64, _STRUCT_BYTES))
    build = context.before
    fill(build, struct, const_int(I64, _KEY_BYTES))
    size = context.value(key_size)
    raised = build.and_(build.add(size, const_int(I64, 7)), const_int(I64, -8))
    for offset, value in ((_KEY_BYTES, size), (_VALUE_AT, raised), (_VALUE_BYTES, context.value(value_size))):
        build.store(value, build.byte_offset(struct, offset), align=8)
    context.after.store(struct, context.shadow(slot), align=8)


def _insert(context: CopyContext, call: CallSite) -> Sequence[Value]:
    """The cell of the entry, with the shadows of pointers in key and value. Returns it, and its key's if it is new."""
    container, key, hash_, value, old = call.arguments
    if not context.is_active(container):
        return ()
    build = context.before
    shadow = context.shadow(container)
    primal, primal_key, primal_hash = (context.value(v) for v in (container, key, hash_))
    lookup = context.declare("numba_dict_lookup", _LOOKUP)
    before = build.call(lookup, [primal, primal_key, primal_hash, context.value(old)])
    rooms = (call_helper(build, name, I64, [shadow, before]) for name in ("irad.dict_room", "irad.dict_table_room"))
    memory, table = map(context.allocate, list(rooms))
    build = context.after
    given = [shadow, memory, table, before, context.value(call), lookup, primal, primal_key, primal_hash]
    cell = call_helper(build, "irad.dict_insert", PTR, given)
    is_new = build.icmp("slt", before, _ZERO)
    new = build.select(is_new, cell, _NULL)
    _hand_out(context, _replaced(build, shadow, cell, new), (container, _VALUES), old, _VALUE_BYTES)
    _hand_on(context, new, (container, _KEYS), key, _KEY_BYTES)
    _hand_on(context, _value_in(build, shadow, cell), (container, _VALUES), value, _VALUE_BYTES)
    return cell, new


def _insert_reverse(context: ReverseContext, call: CallSite, saved: Sequence[Value]) -> None:
    if not saved:
        return
    container, key, _, value, old = call.arguments
    build = context.builder
    cell, new = (context.value(v) for v in saved)
    shadow = context.shadow(container)
    _take_back(context, _value_in(build, shadow, cell), (container, _VALUES), value, _VALUE_BYTES)
    _give_back(context, _replaced(build, shadow, cell, new), (container, _VALUES), old, _VALUE_BYTES)
    _take_back(context, new, (container, _KEYS), key, _KEY_BYTES)


def _replaced(build: Builder, shadow: Value, cell: Value, new: Value) -> Value:
    """Former place of the value that an insertion replaced; null if it replaced none."""
    return build.select(build.icmp("eq", cell, new), _NULL, _value_in(build, shadow, cell))


def _hand_on(context: CopyContext, part: Value, place: tuple[Value, int], source: Value, size_at: int) -> None:
    """The shadow of a key or value that was inserted goes to its part of a cell, if there is one."""
    container, name = place
    if not context.is_carried(container, name):
        return
    build = context.after
    size = _size(build, context.shadow(container), part, size_at)
    if context.is_active(source):
        move(build, part, context.shadow(source), size)
    else:
        fill(build, part, size)


def _take_back(context: ReverseContext, part: Value, place: tuple[Value, int], source: Value, size_at: int) -> None:
    """The key or value that was inserted gets the cotangent of its part of a cell, which is cleared."""
    container, name = place
    if not context.holds_floats(container, name):
        return
    build = context.builder
    size = _size(build, context.shadow(container), part, size_at)
    if context.is_active(source) and context.holds_floats(source):
        layout = context.layout(source) or context.layout(container, name)
        move_cotangents(build, part, context.shadow(source), size, layout)
    fill(build, part, size)


def _size(build: Builder, shadow: Value, part: Value, size_at: int) -> Value:
    """Bytes of a part of a cell; 0 where it is null."""
    size = build.load(I64, build.byte_offset(shadow, size_at), align=8)
    return build.select(build.icmp("eq", part, _NULL), _ZERO, size)


def _value_in(build: Builder, shadow: Value, cell: Value) -> Value:
    """The value's part of a cell; null where that is null."""
    return call_helper(build, "irad.dict_value", PTR, [shadow, cell])


def _lookup(context: CopyContext, call: CallSite) -> Sequence[Value]:
    container, _, _, into = call.arguments
    if not context.is_active(container):
        return ()
    build = context.after
    cell = call_helper(build, "irad.dict_cell", PTR, [context.shadow(container), context.value(call)])
    _hand_out(context, _value_in(build, context.shadow(container), cell), (container, _VALUES), into, _VALUE_BYTES)
    return (cell,)


def _lookup_reverse(context: ReverseContext, call: CallSite, saved: Sequence[Value]) -> None:
    if not saved:
        return
    container, _, _, into = call.arguments
    cell = context.value(saved[0])
    value = _value_in(context.builder, context.shadow(container), cell)
    _give_back(context, value, (container, _VALUES), into, _VALUE_BYTES)


def _hand_out(context: CopyContext, part: Value, place: tuple[Value, int], into: Value, size_at: int) -> None:
    """Moves the derivative of a part of a cell to where the key or value was copied."""
    container, name = place
    if not context.is_active(into) or not context.is_carried(container, name):
        return
    build = context.after
    move(build, context.shadow(into), part, _size(build, context.shadow(container), part, size_at))


def _give_back(context: ReverseContext, part: Value, place: tuple[Value, int], into: Value, size_at: int) -> None:
    """The part of a cell that was copied grows by the cotangent of the copy."""
    container, name = place
    if not context.is_active(into) or not context.holds_floats(into):
        return
    build = context.builder
    target, shadow = context.shadow(into), context.shadow(container)
    if context.holds_floats(container, name):
        layout = context.layout(into) or context.layout(container, name)
        move_cotangents(build, target, part, _size(build, shadow, part, size_at), layout)
    fill(build, target, build.load(I64, build.byte_offset(shadow, size_at), align=8))


def _reads(part: Callable[[CopyContext, CallSite], object], *outputs: int) -> TangentPart:
    """The tangent of a callee that copies entries into its arguments ``outputs``; a constant entry has none."""

    def tangent(context: TangentContext, call: CallSite) -> None:
        if context.is_active(call.arguments[0]):
            part(context, call)
        else:
            for into in (call.arguments[i] for i in outputs):
                _clear(context, into)

    return tangent


def _clear(context: TangentContext, into: Value) -> None:
    """Clears the shadow of memory to which a constant is written.

    Raises:
        UnsupportedError: it is not known how much is written.
    """
    if not context.is_active(into):
        return
    layout = context.number_places(into)
    if layout is None:
        raise UnsupportedError(
            "an entry of a constant dictionary is copied into memory that also holds active values, of unknown type",
            "differentiate with respect to the dictionary as well, or use reverse mode",
            "the tangents of what was in that memory have to be cleared, and it is not known where they are",
        )
    fill(context.after, context.shadow(into), const_int(I64, layout.stride))


def _delete(context: CopyContext, call: CallSite) -> None:
    container, _, entry = call.arguments
    if context.is_active(container):
        given = [context.shadow(container), context.value(entry), context.value(call)]
        call_helper(context.after, "irad.dict_delete", VOID, given)


def _pop(context: CopyContext, call: CallSite) -> Sequence[Value]:
    container, key, value = call.arguments
    if not context.is_active(container):
        return ()
    build, shadow = context.after, context.shadow(container)
    cell = call_helper(build, "irad.dict_pop", PTR, [shadow, context.value(call)])
    _hand_out(context, cell, (container, _KEYS), key, _KEY_BYTES)
    _hand_out(context, _value_in(build, shadow, cell), (container, _VALUES), value, _VALUE_BYTES)
    return (cell,)


def _pop_reverse(context: ReverseContext, call: CallSite, saved: Sequence[Value]) -> None:
    if not saved:
        return
    container, key, value = call.arguments
    cell = context.value(saved[0])
    part = _value_in(context.builder, context.shadow(container), cell)
    _give_back(context, part, (container, _VALUES), value, _VALUE_BYTES)
    _give_back(context, cell, (container, _KEYS), key, _KEY_BYTES)


def _begin(context: CopyContext, call: CallSite) -> None:
    """The iterator's shadow, in the shadow of the memory that the primal's is in."""
    iterator, container = call.arguments
    if context.is_active(iterator):
        call_helper(context.after, "irad.dict_begin", VOID, [context.shadow(iterator), context.shadow(container)])


def _next(context: CopyContext, call: CallSite) -> None:
    """The shadows of key and value are parts of the cell."""
    iterator, key, value = call.arguments
    if not context.is_active(iterator):
        return
    build = context.after
    cell = call_helper(
        build, "irad.dict_next", PTR, [context.shadow(iterator), context.value(iterator), context.value(call)]
    )
    dictionary = build.load(PTR, context.shadow(iterator), align=8)
    if context.is_active(key):
        build.store(cell, context.shadow(key), align=8)
    if context.is_active(value):
        build.store(_value_in(build, dictionary, cell), context.shadow(value), align=8)


_KEY_PLACE: Final[MemoryPath] = (0, _KEYS)
_VALUE_PLACE: Final[MemoryPath] = (0, _VALUES)
_PARTS: Final = (_KEY_PLACE, _VALUE_PLACE)
_ITSELF: Final = frozenset({0})


def _changes(*moves: tuple[MemoryPath, MemoryPath], also: tuple[int, ...] = ()) -> Effects:
    """Effects of a callee that changes a dictionary and writes what the arguments ``also`` point to."""
    return Effects(reads=_ITSELF, writes=_ITSELF | frozenset(also), frees=_ITSELF, moves=moves, alters=_PARTS, raw=True)


RULES: Final[tuple[Rule, ...]] = (
    shadow_rule(
        ("numba_dict_new_sized", "numba_dict_new"),
        Effects(writes=_ITSELF, makes=((0, (_KEYS, _VALUES)),), raw=True),
        _new,
    ),
    CallRule(
        ("numba_dict_insert",),
        _changes((_KEY_PLACE, (1,)), (_VALUE_PLACE, (3,)), ((4,), _VALUE_PLACE)),
        _insert_reverse,
        _insert,
        tangent=_reads(_insert, 4),
        moves=True,
    ),
    CallRule(
        ("numba_dict_lookup",),
        Effects(reads=_ITSELF, writes=frozenset({3}), moves=(((3,), _VALUE_PLACE),), raw=True),
        _lookup_reverse,
        _lookup,
        tangent=_reads(_lookup, 3),
        moves=True,
    ),
    shadow_rule(("numba_dict_delitem",), _changes(), _delete),
    CallRule(
        ("numba_dict_popitem",),
        _changes(((1,), _KEY_PLACE), ((2,), _VALUE_PLACE), also=(1, 2)),
        _pop_reverse,
        _pop,
        tangent=_reads(_pop, 1, 2),
        moves=True,
    ),
    shadow_rule(
        ("numba_dict_iter",), Effects(reads=frozenset({1}), writes=_ITSELF, links=((0, (1,)),), raw=True), _begin
    ),
    shadow_rule(
        ("numba_dict_iter_next",),
        Effects(reads=_ITSELF, writes=frozenset({0, 1, 2}), links=((1, (0, 0, _KEYS)), (2, (0, 0, _VALUES))), raw=True),
        _next,
    ),
)
