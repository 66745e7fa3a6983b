"""Walks through lists, dictionaries and instances, in generated code: of the arguments, and of a returned value.

`ArgumentWalk` runs before the primal. It records regions of memory, how their shadows will be connected, where the
shadows of numbers and arrays are, for `object_gradients`, and references: nothing that an argument points to is freed
in the call. The record describes the arguments as they are before the call, which may change them.

`ReturnedWalk` runs when the function has returned, and follows value and shadow side by side. It notes what
`ArgumentWalk` notes, for the same readers, so the notes hold for the value as it was returned. A null shadow means that
no derivative was stored: zeroed memory of an arena takes its place, or null that of an array or a list of numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final

from llvmlite import ir
from llvmlite.ir import Value
from numba.core import cgutils
from numba.core.types import Type

from irad.frontend import resident
from irad.frontend.emit import INTP, VOID_POINTER, WORD, Emit
from irad.frontend.memory.references import References
from irad.frontend.memory.regions import Owner, Regions, SeparateShadows, ShadowAt, SsaNotes, SsaRecorder
from irad.frontend.memory.shadows import Extent, extent_of_array
from irad.frontend.memory.visitor import Cursor, Visitor, moved
from irad.frontend.values import tree
from irad.frontend.values.gradients import noted_fields
from irad.frontend.values.layouts import ARRAY_DATA, HEADER_DATA, HEADER_SIZE, size_of_element
from irad.runtime_layouts import DICT, LIST

_HEADER_SIZE_SLOT: Final = 32  # where a header has the size of the data
_DICT_KEYS, _ENTRY_COUNT = 8, 16  # in NB_Dict the table; in that, how many entries it has (numba/cext/dictobject.h)
_LIST_ALLOCATED: Final = 8  # in the payload of a reflected list, after the size


class ArgumentWalk(Visitor):
    """One walk.

    Args:
        regions: where it writes.
        owner: of what it meets; where that is not this call, nothing is connected, noted or held.
    """

    def __init__(
        self,
        emit: Emit,
        regions: Regions | SeparateShadows,
        owner: Owner = Owner.CALL,
    ) -> None:
        Visitor.__init__(self, emit)
        self._regions, self._owner = regions, owner
        self._is_mine = owner is Owner.CALL

    # --- what is met --------------------------------------------------------------------------------------------------

    def extent(self, extent: Extent) -> ShadowAt:
        """The region of an array; returns the shadow of its first element."""
        return self._regions.extent(extent, self._owner)

    def _span(self, pointer: Value, size: Value, shadow_size: int | None = None) -> ShadowAt:
        low = self._builder.ptrtoint(pointer, INTP)
        shadow = size if shadow_size is None else INTP(shadow_size)
        return ShadowAt(self._regions.region(low, self._builder.add(low, size), shadow, self._owner), INTP(0))

    def _hold(self, meminfo: Value) -> None:
        if self._is_mine:
            self._regions.hold(meminfo)

    def _note(self, *words: Any) -> None:
        if self._is_mine:
            self._regions.note(words)

    def _store(self, word: Value | ShadowAt, shadow: ShadowAt, offset: int) -> None:
        """Stores the address of a shadow, or a number, in a shadow."""
        if not self._is_mine:
            return
        place = moved(self._emit, shadow, offset)
        if isinstance(word, ShadowAt):
            self._regions.link(place, word)
        else:
            self._regions.number(place, word)

    # --- the walk -----------------------------------------------------------------------------------------------------

    def enters(self, content: tree.Content) -> bool:
        """All parts: one without a derivative may share memory with one that has a derivative."""
        return True

    def visit_reference(self, content: tree.Reference, at: Cursor) -> None:
        """A reference in memory: the address of its target's shadow belongs in the shadow of that memory."""
        found = self.follow(content, self._emit.load(at.value, 0), self._emit.load(at.value, tree.pointer_at(content)))
        self._store(found, at.shadow, tree.pointer_at(content))

    def follow(self, content: tree.Reference, meminfo: Value, pointer: Value) -> ShadowAt:
        """Follows a reference; returns the shadow of its target."""
        self._hold(meminfo)
        found: ShadowAt = Visitor.visit_reference(self, content, Cursor(pointer))
        return found

    def visit_array(self, content: tree.ArrayContent, at: Cursor) -> None:
        """An array: a region, and the notes from which the array in the gradient is made."""
        build, context = self._builder, self._context
        model = context.data_model_manager[content.type]
        stored = build.bitcast(at.value, model.get_data_type().as_pointer())
        array = self._emit.array(content.type, model.load_from_data_pointer(build, stored))
        self._hold(array.meminfo)
        extent = extent_of_array(self._emit, array, content.type)
        found = self.extent(extent)
        self._store(found, at.shadow, ARRAY_DATA)
        if tree.has_derivative(content):
            dimensions = (*cgutils.unpack_tuple(build, array.shape), *cgutils.unpack_tuple(build, array.strides))
            self._note(ShadowAt(found.region, INTP(0)), found.offset, extent.size(build), *dimensions)

    def visit_instance(self, content: tree.InstanceContent, at: Cursor) -> ShadowAt:
        """An instance: its fields, which those of a `StructRef` have the header of an allocation in front of."""
        if not tree.is_headed(content):
            return self._fields(content, at.value)
        header = self._span(at.value, INTP(HEADER_SIZE))
        self._connect(header, self._fields(content, self._emit.load(at.value, HEADER_DATA)), INTP(content.size))
        return header

    def _fields(self, instance: tree.InstanceContent, fields: Any) -> ShadowAt:
        shadow = self._span(fields, INTP(instance.size))
        if tree.has_derivative(instance):
            self._note(shadow)
            for part in noted_fields(instance):
                place = self._emit.at(fields, part.offset)
                self._hold_value(part.type, place)
                if self._is_mine:
                    self._regions.note_value(part.type, size_of_element(part.type), place)
        self.visit_parts(instance.parts, Cursor(fields, shadow))
        return shadow

    def visit_list(self, content: tree.ListContent, at: Cursor) -> ShadowAt:
        """A list: the struct of Numba's C code if it is typed, else header and payload."""
        return self._typed_list(content, at.value) if content.is_typed else self._reflected_list(content, at.value)

    def _reflected_list(self, found: tree.ListContent, pointer: Value) -> ShadowAt:
        build = self._builder
        header = self._span(pointer, INTP(HEADER_SIZE))
        payload = self._emit.load(pointer, HEADER_DATA)
        count, room = self._emit.load_word(payload, 0), self._emit.load_word(payload, _LIST_ALLOCATED)
        size = build.add(INTP(found.prefix), build.mul(room, INTP(found.stride)))
        shadow = self._span(payload, size)
        self._connect(header, shadow, size)
        self._items(found, count, Cursor(payload, shadow).part(self._emit, found.prefix))
        return header

    def _connect(self, header: ShadowAt, data: ShadowAt, size: Value) -> None:
        """Makes the shadow of a header point to that of its data."""
        self._store(data, header, HEADER_DATA)
        self._store(size, header, _HEADER_SIZE_SLOT)

    def _typed_list(self, found: tree.ListContent, pointer: Value) -> ShadowAt:
        build = self._builder
        struct = self._span(pointer, INTP(WORD), LIST.size)
        count = self._emit.call("numba_list_length", INTP, [pointer])
        items = self._emit.call("numba_list_base_ptr", VOID_POINTER, [pointer])
        shadow = self._span(items, build.mul(count, INTP(found.stride)))
        for field, word in {"items": shadow, "room": count, "item_size": INTP(found.stride)}.items():
            self._store(word, struct, LIST.offset(field))
        self._items(found, count, Cursor(items, shadow))
        return struct

    def _items(self, found: tree.ListContent, count: Value, first: Cursor) -> None:
        if tree.has_derivative(found):
            self._note(count, first.shadow)
        if tree.is_plain(found.item):
            return
        with self._each_item(found, count, first, self._around_each(found, count)) as item:
            self.visit(found.item, item)

    def _around_each(self, container: tree.Content, count: Value) -> Callable[[Any], AbstractContextManager[None]]:
        """Surrounds the notes of an item or entry, in a loop that comes next."""
        each = self._regions.notes_of_items(count) if self._is_noted(container) else nullcontext
        return lambda _: each()

    def _is_noted(self, content: tree.Content) -> bool:
        return self._is_mine and tree.has_derivative(content)

    def visit_dictionary(self, content: tree.DictionaryContent, at: Cursor) -> ShadowAt:
        """A dictionary: the struct of Numba's C code, a table of shadows of its entries, and these."""
        build, found, pointer = self._builder, content, at.value
        struct = self._span(pointer, INTP(WORD), DICT.size)
        keys = self._emit.load(pointer, _DICT_KEYS)
        entries = self._emit.load_word(keys, _ENTRY_COUNT)
        low = build.ptrtoint(keys, INTP)
        size = build.mul(entries, INTP(WORD))
        table = ShadowAt(self._regions.region(low, build.add(low, INTP(WORD)), size, self._owner), INTP(0))
        sizes = {"key_size": found.key_size, "value_at": found.value_at, "value_size": found.value_size}
        words = {"cells": table, "room": entries, "count": entries, **{k: INTP(v) for k, v in sizes.items()}}
        for field, word in words.items():
            self._store(word, struct, DICT.offset(field))
        if tree.has_derivative(found):
            self._note(self._emit.call("numba_dict_length", INTP, [pointer]))
        around = self._around_each(found, entries)
        with self._entries(pointer) as (number, key, value), around(number):
            low, end = build.ptrtoint(key, INTP), build.add(build.ptrtoint(value, INTP), INTP(found.value_size))
            cell = self.extent(Extent(low, low, end))
            self._store(cell, table.plus(build, build.mul(number, INTP(WORD))), 0)
            self._hold_value(found.key.type, key)
            if self._is_noted(found):
                self._note(cell)
                self._regions.note_value(found.key.type, found.value_at, key)
            self.visit(found.value, Cursor(value, moved(self._emit, cell, found.value_at)))
        return struct

    def _hold_value(self, numba_type: Type, place: Value) -> None:
        """Holds the memory that a value in memory points to."""
        build, context = self._builder, self._context
        model = context.data_model_manager[numba_type]
        if not model.contains_nrt_meminfo():
            return
        value = model.load_from_data_pointer(build, build.bitcast(place, model.get_data_type().as_pointer()))
        for _, meminfo in context.nrt.get_meminfos(build, numba_type, value):
            self._hold(meminfo)


# --- what a function returned -----------------------------------------------------------------------------------------


class ReturnedWalk(Visitor):
    """One walk. Without shadows, given as None, the notes are only counted.

    Args:
        notes: where it writes.
        blocks: allocates what outlives the notes.
    """

    def __init__(self, emit: Emit, notes: Regions | SsaRecorder, blocks: SsaRecorder) -> None:
        Visitor.__init__(self, emit)
        self._notes, self._blocks = notes, blocks

    def _note(self, *words: Any) -> None:
        self._notes.note([INTP(0) if word is None else word for word in words])

    # --- shadows ------------------------------------------------------------------------------------------------------

    def _behind(self, shadow: Any, offset: int, size: int) -> Any:
        """The address at an offset of a shadow of ``size`` bytes; null where that, or the shadow, is null."""
        if shadow is None:
            return None
        zeros = cgutils.global_constant(self._builder, "irad.zeros", ir.ArrayType(ir.IntType(8), size)(None))
        zeros.align = WORD
        none = cgutils.is_null(self._builder, shadow)
        return self._emit.load(self._builder.select(none, self._builder.bitcast(zeros, VOID_POINTER), shadow), offset)

    def _block(self, shadow: Any, size: Value, before: Any = None) -> Any:
        """Like `_floats`, but null for a table where no derivative was stored; its readers skip null blocks."""
        if shadow is None or not isinstance(self._notes, Regions):
            return self._floats(shadow, size, before)
        start = shadow if before is None else self._builder.gep(shadow, [self._builder.neg(before)])
        return self._builder.select(cgutils.is_null(self._builder, shadow), shadow, start)

    def _floats(self, shadow: Any, size: Value, before: Any = None) -> Any:
        """Memory of ``size`` bytes from ``before`` bytes before an address in a shadow on; zeros where that is null."""
        if shadow is None:
            return None
        build = self._builder
        start = shadow if before is None else build.gep(shadow, [build.neg(before)])
        slot = cgutils.alloca_once(build, VOID_POINTER)
        build.store(start, slot)
        with build.if_then(cgutils.is_null(build, shadow), likely=False):
            memory = self._blocks.allocated(size)
            cgutils.memset(build, memory, size, 0)
            build.store(memory, slot)
        return build.load(slot)

    # --- the walk -----------------------------------------------------------------------------------------------------

    def visit_reference(self, content: tree.Reference, at: Cursor) -> None:
        """A reference in memory: goes on at its target, and at that of its shadow."""
        offset = tree.pointer_at(content)
        value = self._emit.load(at.value, offset)
        shadow = None if at.shadow is None else self._emit.load(at.shadow, offset)
        Visitor.visit_reference(self, content, Cursor(value, shadow))

    def visit_array(self, content: tree.ArrayContent, at: Cursor) -> None:
        """An array: the address of its derivative, and its shape."""
        build = self._builder
        array = self._emit.array(content.type, self._emit.stored(content.type, at.value))
        extent = extent_of_array(self._emit, array, content.type)
        size, before = extent.size(build), build.sub(extent.data, extent.low)
        data = None if at.shadow is None else self._emit.load(at.shadow, ARRAY_DATA)
        dimensions = (*cgutils.unpack_tuple(build, array.shape), *cgutils.unpack_tuple(build, array.strides))
        self._note(self._block(data, size, before), before, size, *dimensions)

    def visit_instance(self, content: tree.InstanceContent, at: Cursor) -> None:
        """An instance: the shadow of its fields, and the values that its gradient has from it."""
        fields, shadow = at.value, at.shadow
        if tree.is_headed(content):
            fields, shadow = self._emit.load(fields, HEADER_DATA), self._behind(shadow, HEADER_DATA, HEADER_SIZE)
        shadow = self._floats(shadow, INTP(content.size))
        self._note(shadow)
        for part in noted_fields(content):
            self._notes.note_value(part.type, size_of_element(part.type), self._emit.at(fields, part.offset))
        self.visit_parts(content.parts, Cursor(fields, shadow))

    def visit_list(self, content: tree.ListContent, at: Cursor) -> None:
        """A list: the number of its items, and the addresses of their derivatives."""
        build = self._builder
        count, items = self._items_of(content, at.value)
        field, size = (LIST.offset("items"), LIST.size) if content.is_typed else (HEADER_DATA, HEADER_SIZE)
        payload, room = self._behind(at.shadow, field, size), build.mul(count, INTP(content.stride))
        if payload is not None and content.prefix:
            first = build.gep(payload, [INTP(content.prefix)])
            payload = build.select(cgutils.is_null(build, payload), payload, first)
        is_plain = tree.is_plain(content.item)
        shadows = self._block(payload, room) if is_plain else self._floats(payload, room)
        self._note(count, shadows)
        if is_plain:
            return
        each = self._notes.notes_of_items(count)
        with self._each_item(content, count, Cursor(items, shadows), lambda _: each()) as item:
            self.visit(content.item, item)

    def visit_dictionary(self, content: tree.DictionaryContent, at: Cursor) -> None:
        """A dictionary: the key of each entry, and the address of the derivative of its value."""
        pointer, shadow = at.value, at.shadow
        count = self._emit.call("numba_dict_length", INTP, [pointer])
        self._note(count)
        cells = self._behind(shadow, DICT.offset("cells"), DICT.size)
        each = self._notes.notes_of_items(count)
        with self._entries(pointer) as (number, key, value), each():
            cell = None if cells is None else self._cell(cells, number)
            cell = self._floats(cell, INTP(content.value_at + content.value_size))
            self._note(cell)
            self._hold_key(content, key)
            self._notes.note_value(content.key.type, content.value_at, key)
            self.visit(content.value, Cursor(value, moved(self._emit, cell, content.value_at)))

    def _cell(self, cells: Any, number: Any) -> Any:
        """The shadow of an entry; null if there are none."""
        build = self._builder
        slot = build.gep(cells, [build.mul(number, INTP(WORD))])
        return self._behind(build.select(cgutils.is_null(build, cells), cells, slot), 0, WORD)

    def _hold_key(self, content: tree.DictionaryContent, key: Any) -> None:
        """Holds the memory of a key, if the dictionary may be gone when the notes are read."""
        if isinstance(self._notes, Regions):
            value = self._emit.stored(content.key.type, key)
            for _, meminfo in self._context.nrt.get_meminfos(self._builder, content.key.type, value):
                self._notes.hold(meminfo)


def notes_in_ssa(
    emit: Emit,
    content: tree.Content,
    places: tuple[Any, Any],
    arena: Value,
    fail: Callable[[], None],
) -> SsaNotes:
    """Notes for code that follows at once, as long as the arena is there.

    Args:
        content: description of the returned value.
        places: where that is in memory, and the shadow of this memory.
        arena: arena of the call.
        fail: emits the end of the function when there is no memory.
    """
    blocks = SsaRecorder(emit, arena, fail)
    ReturnedWalk(emit, blocks, blocks).visit(content, Cursor(*places))
    return SsaNotes(emit, blocks.kept)


def notes_in_table(
    emit: Emit,
    content: tree.Content,
    places: tuple[Any, Any],
    arena: Value,
    references: References,
    slot: Any,
) -> Any:
    """Notes for a function that is called later, which `NotedWords` reads: their address.

    Args:
        content: description of the returned value.
        places: where that is in memory, and the shadow of this memory.
        arena: holds what keys point to, until it is deleted.
        references: references of the call.
        slot: for the reference to the notes.
    """
    builder = emit.builder
    regions = Regions(emit)
    walk = ReturnedWalk(emit, regions, SsaRecorder(emit, arena, references.fail))
    walk.visit(content, Cursor(places[0]))
    regions.open(lambda size: references.allocated(size, slot))
    walk.visit(content, Cursor(*places))
    regions.close()
    regions.release(lambda meminfo: resident.call(builder, "irad.arena_defer", ir.VoidType(), arena, meminfo))
    return builder.bitcast(regions.noted, VOID_POINTER)
