"""Walks through what a function returned, in generated code, when it has returned.

Value and shadow are followed side by side. What is noted is what `object_walk` notes of arguments, for the same
readers: where the derivatives of numbers and arrays lie, of how many items, under which keys. So it holds for the value
as it was returned, whatever becomes of that. Where a shadow leads nowhere, nothing that has a derivative was stored:
zeroed memory of an arena takes its place, or null that of an array or a list of numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, assert_never, cast

from llvmlite import ir
from llvmlite.ir import IRBuilder, Value
from numba.core import cgutils
from numba.core.base import BaseContext

from irad.frontend.memory.containers import Reader
from irad.frontend.memory.kept_notes import KeptBlocks, KeptNotes, support
from irad.frontend.memory.references import References
from irad.frontend.memory.regions import INTP, VOID_POINTER, WORD, Regions
from irad.frontend.memory.shadows import extent_of_array
from irad.frontend.values import tree
from irad.frontend.values.gradients import noted_fields
from irad.frontend.values.layouts import ARRAY_DATA, HEADER_DATA, HEADER_SIZE, size_of_element
from irad.runtime_layouts import DICT, LIST


class ReturnedWalk(Reader):
    """One walk. Without shadows, as None, what would be noted is counted.

    Args:
        context: Numba's target context.
        builder: of llvmlite.
        notes: where it writes.
        blocks: allocates what outlives the notes.
    """

    def __init__(
        self, context: BaseContext, builder: IRBuilder, notes: Regions | KeptBlocks, blocks: KeptBlocks
    ) -> None:
        Reader.__init__(self, context, builder)
        self._notes, self._blocks = notes, blocks

    def value(self, content: tree.Content, place: Any, shadow: Any) -> None:
        """A value in memory, with the shadow of that memory."""
        if not tree.has_derivative(content):
            return
        known = cast("tree.AnyContent", content)
        match known:
            case tree.ArrayContent():
                self._array(known, place, shadow)
            case tree.TupleContent():
                self._parts(known, place, shadow)
            case tree.InstanceContent():
                self._instance(known, *self._led_to(known, place, shadow))
            case tree.ListContent():
                self._list(known, *self._led_to(known, place, shadow))
            case tree.DictionaryContent():
                self._dictionary(known, *self._led_to(known, place, shadow))
            case (
                tree.ConstantContent()
                | tree.NumberContent()
                | tree.OptionalContent()
                | tree.RecordContent()
                | tree.UnknownContent()
            ):
                pass  # they lead nowhere
            case _:
                assert_never(known)

    def _note(self, *words: Any) -> None:
        self._notes.note([INTP(0) if word is None else word for word in words])

    # --- shadows ------------------------------------------------------------------------------------------------------

    def _within(self, shadow: Any, offset: Any) -> Any:
        if shadow is None:
            return None
        return self._builder.gep(shadow, [INTP(offset) if isinstance(offset, int) else offset])

    def _led_to(self, reference: tree.Reference, place: Any, shadow: Any) -> tuple[Any, Any]:
        offset = tree.pointer_at(reference)
        return self._load(place, offset), None if shadow is None else self._load(shadow, offset)

    def _behind(self, shadow: Any, offset: int, size: int) -> Any:
        """The address in a shadow of so many bytes; null where that, or its shadow, is null."""
        if shadow is None:
            return None
        zeros = cgutils.global_constant(self._builder, "irad.zeros", ir.ArrayType(ir.IntType(8), size)(None))
        zeros.align = WORD
        none = cgutils.is_null(self._builder, shadow)
        return self._load(self._builder.select(none, self._builder.bitcast(zeros, VOID_POINTER), shadow), offset)

    def _block(self, shadow: Any, size: Value, before: Any = None) -> Any:
        """As `_floats`, of an array or a list of numbers: null for readers of words, who are to pass over it."""
        if shadow is None or not isinstance(self._notes, Regions):
            return self._floats(shadow, size, before)
        start = shadow if before is None else self._builder.gep(shadow, [self._builder.neg(before)])
        return self._builder.select(cgutils.is_null(self._builder, shadow), shadow, start)

    def _floats(self, shadow: Any, size: Value, before: Any = None) -> Any:
        """Memory of so many bytes that begins so many bytes before an address in a shadow, or stands for it."""
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

    def _parts(self, content: tree.TupleContent | tree.InstanceContent, place: Any, shadow: Any) -> None:
        for part in content.parts:
            self.value(part, self._at(place, part.offset), self._within(shadow, part.offset))

    def _array(self, content: tree.ArrayContent, place: Any, shadow: Any) -> None:
        context, build = self._context, self._builder
        array = context.make_array(content.type)(context, build, self._stored(content.type, place))
        extent = extent_of_array(context, build, array, content.type)
        size, before = extent.size(build), build.sub(extent.data, extent.low)
        data = None if shadow is None else self._load(shadow, ARRAY_DATA)
        dimensions = (*cgutils.unpack_tuple(build, array.shape), *cgutils.unpack_tuple(build, array.strides))
        self._note(self._block(data, size, before), before, size, *dimensions)

    def _instance(self, content: tree.InstanceContent, fields: Any, shadow: Any) -> None:
        if tree.is_headed(content):
            fields, shadow = self._load(fields, HEADER_DATA), self._behind(shadow, HEADER_DATA, HEADER_SIZE)
        shadow = self._floats(shadow, INTP(content.size))
        self._note(shadow)
        for part in noted_fields(content):
            self._notes.note_value(part.type, size_of_element(part.type), self._at(fields, part.offset))
        self._parts(content, fields, shadow)

    def _list(self, content: tree.ListContent, pointer: Any, shadow: Any) -> None:
        build = self._builder
        count, items = self._items_of(content, pointer)
        field, size = (LIST.offset("items"), LIST.size) if content.is_typed else (HEADER_DATA, HEADER_SIZE)
        payload, room = self._behind(shadow, field, size), build.mul(count, INTP(content.stride))
        if payload is not None and content.prefix:
            behind = build.gep(payload, [INTP(content.prefix)])
            payload = build.select(cgutils.is_null(build, payload), payload, behind)
        is_plain = tree.is_plain(content.item)
        shadows = self._block(payload, room) if is_plain else self._floats(payload, room)
        self._note(count, shadows)
        if is_plain:
            return
        each = self._notes.notes_of_items(count)
        with cgutils.for_range(build, count, intp=INTP) as loop, each():
            offset = build.mul(loop.index, INTP(content.stride))
            self.value(content.item, build.gep(items, [offset]), self._within(shadows, offset))

    def _dictionary(self, content: tree.DictionaryContent, pointer: Any, shadow: Any) -> None:
        count = self._call("numba_dict_length", INTP, [pointer])
        self._note(count)
        cells = self._behind(shadow, DICT.offset("cells"), DICT.size)
        each = self._notes.notes_of_items(count)
        with self._entries(pointer) as (number, key, value), each():
            cell = None if cells is None else self._cell(cells, number)
            cell = self._floats(cell, INTP(content.value_at + content.value_size))
            self._note(cell)
            self._hold_key(content, key)
            self._notes.note_value(content.key.type, content.value_at, key)
            self.value(content.value, value, self._within(cell, content.value_at))

    def _cell(self, cells: Any, number: Any) -> Any:
        """The shadow of an entry; null where there are none."""
        build = self._builder
        slot = build.gep(cells, [build.mul(number, INTP(WORD))])
        return self._behind(build.select(cgutils.is_null(build, cells), cells, slot), 0, WORD)

    def _hold_key(self, content: tree.DictionaryContent, key: Any) -> None:
        """Holds what a key leads to, where the dictionary may be gone when the notes are read."""
        if isinstance(self._notes, Regions):
            value = self._stored(content.key.type, key)
            for _, meminfo in self._context.nrt.get_meminfos(self._builder, content.key.type, value):
                self._notes.hold(meminfo)


def kept_notes(
    context: BaseContext,
    builder: IRBuilder,
    content: tree.Content,
    places: tuple[Any, Any],
    arena: Value,
    fail: Callable[[], None],
) -> KeptNotes:
    """Notes for code that follows at once, as long as the arena is there.

    Args:
        context: Numba's target context.
        builder: of llvmlite.
        content: what was returned.
        places: where that is in memory, and the shadow of this memory.
        arena: of the call.
        fail: emits the end of the function when there is no memory.
    """
    blocks = KeptBlocks(context, builder, arena, fail)
    ReturnedWalk(context, builder, blocks, blocks).value(content, *places)
    return KeptNotes(builder, blocks.kept)


def noted_words(
    context: BaseContext,
    builder: IRBuilder,
    content: tree.Content,
    places: tuple[Any, Any],
    arena: Value,
    references: References,
    slot: Any,
) -> Any:
    """Notes for a function that is called later, which `NotedWords` reads: their address.

    Args:
        context: Numba's target context.
        builder: of llvmlite.
        content: what was returned.
        places: where that is in memory, and the shadow of this memory.
        arena: holds what keys lead to, until it is deleted.
        references: of the call.
        slot: for the reference to the notes.
    """
    regions = Regions(context, builder)
    walk = ReturnedWalk(context, builder, regions, KeptBlocks(context, builder, arena, references.fail))
    walk.value(content, places[0], None)
    regions.open(lambda size: references.allocated(size, slot))
    walk.value(content, *places)
    regions.close()
    regions.release(lambda meminfo: support(builder, "irad.arena_defer", ir.VoidType(), arena, meminfo))
    return builder.bitcast(regions.noted, VOID_POINTER)
