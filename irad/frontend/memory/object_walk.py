"""Walks through the objects among the arguments, in generated code, before the primal runs.

What it finds is written to the table of `regions`: regions of memory, how their shadows will be connected, where the
shadows of numbers and arrays are, for `object_gradients`, and references: nothing that an argument leads to is freed in
the call. The table describes the arguments as they are before the call, which may change them.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final, assert_never, cast

from llvmlite.ir import IRBuilder, Value
from numba.core import cgutils
from numba.core.base import BaseContext

from irad.frontend.memory.containers import Reader
from irad.frontend.memory.regions import INTP, VOID_POINTER, WORD, Owner, Regions, ShadowAt
from irad.frontend.memory.separate_shadows import SeparateShadows
from irad.frontend.memory.shadows import Extent, extent_of_array
from irad.frontend.values import tree
from irad.frontend.values.gradients import noted_fields
from irad.frontend.values.layouts import ARRAY_DATA, HEADER_DATA, HEADER_SIZE, size_of_element
from irad.runtime_layouts import DICT, LIST

_HEADER_SIZE_SLOT: Final = 32  # where a header has the size of the data
_DICT_KEYS, _ENTRY_COUNT = 8, 16  # in NB_Dict the table; in that, how many entries it has (numba/cext/dictobject.h)
_LIST_ALLOCATED: Final = 8  # in the payload of a reflected list, after the size


class Walk(Reader):
    """One walk.

    Args:
        context: Numba's target context.
        builder: of llvmlite.
        regions: where it writes.
        owner: of what it meets; where that is not this call, nothing is connected, noted or held.
    """

    def __init__(
        self,
        context: BaseContext,
        builder: IRBuilder,
        regions: Regions | SeparateShadows,
        owner: Owner = Owner.CALL,
    ) -> None:
        Reader.__init__(self, context, builder)
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
        place = self._shifted(shadow, offset)
        if isinstance(word, ShadowAt):
            self._regions.link(place, word)
        else:
            self._regions.number(place, word)

    def _shifted(self, shadow: ShadowAt, offset: int) -> ShadowAt:
        return shadow.plus(self._builder, INTP(offset)) if offset else shadow

    # --- the walk -----------------------------------------------------------------------------------------------------

    def value(self, content: tree.Content, place: Value, shadow: ShadowAt) -> None:
        """A value in memory, with the shadow of that memory."""
        known = cast("tree.AnyContent", content)
        match known:
            case tree.ArrayContent():
                self._array(known, place, shadow)
            case tree.TupleContent():
                self._parts(known.parts, place, shadow)
            case tree.InstanceContent() | tree.ListContent() | tree.DictionaryContent():
                found = self.reference(known, self._load(place, 0), self._load(place, tree.pointer_at(known)))
                self._store(found, shadow, tree.pointer_at(known))
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

    def reference(self, reference: tree.Reference, meminfo: Value, pointer: Value) -> ShadowAt:
        """What a reference leads to; returns the shadow of that."""
        self._hold(meminfo)
        match reference:
            case tree.InstanceContent():
                return self._instance(reference, pointer)
            case tree.ListContent() if reference.is_typed:
                return self._typed_list(reference, pointer)
            case tree.ListContent():
                return self._reflected_list(reference, pointer)
            case tree.DictionaryContent():
                return self._dictionary(reference, pointer)

    def _parts(self, parts: tuple[tree.Content, ...], place: Value, shadow: ShadowAt) -> None:
        for part in parts:
            self.value(part, self._at(place, part.offset), self._shifted(shadow, part.offset))

    def _array(self, content: tree.ArrayContent, place: Value, shadow: ShadowAt) -> None:
        build, context = self._builder, self._context
        model = context.data_model_manager[content.type]
        stored = build.bitcast(place, model.get_data_type().as_pointer())
        array = context.make_array(content.type)(context, build, model.load_from_data_pointer(build, stored))
        self._hold(array.meminfo)
        extent = extent_of_array(context, build, array, content.type)
        found = self.extent(extent)
        self._store(found, shadow, ARRAY_DATA)
        if tree.has_derivative(content):
            dimensions = (*cgutils.unpack_tuple(build, array.shape), *cgutils.unpack_tuple(build, array.strides))
            self._note(ShadowAt(found.region, INTP(0)), found.offset, extent.size(build), *dimensions)

    def _instance(self, instance: tree.InstanceContent, pointer: Value) -> ShadowAt:
        if not tree.is_headed(instance):
            return self._fields(instance, pointer)
        header = self._span(pointer, INTP(HEADER_SIZE))
        self._connect(header, self._fields(instance, self._load(pointer, HEADER_DATA)), INTP(instance.size))
        return header

    def _fields(self, instance: tree.InstanceContent, fields: Any) -> ShadowAt:
        shadow = self._span(fields, INTP(instance.size))
        if tree.has_derivative(instance):
            self._note(shadow)
            for part in noted_fields(instance):
                place = self._at(fields, part.offset)
                self._hold_value(part.type, place)
                if self._is_mine:
                    self._regions.note_value(part.type, size_of_element(part.type), place)
        self._parts(instance.parts, fields, shadow)
        return shadow

    def _reflected_list(self, found: tree.ListContent, pointer: Value) -> ShadowAt:
        build = self._builder
        header = self._span(pointer, INTP(HEADER_SIZE))
        payload = self._load(pointer, HEADER_DATA)
        count, room = self._load_word(payload, 0), self._load_word(payload, _LIST_ALLOCATED)
        size = build.add(INTP(found.prefix), build.mul(room, INTP(found.stride)))
        shadow = self._span(payload, size)
        self._connect(header, shadow, size)
        self._items(found, count, self._at(payload, found.prefix), self._shifted(shadow, found.prefix))
        return header

    def _connect(self, header: ShadowAt, data: ShadowAt, size: Value) -> None:
        """The shadow of a header leads to that of its data."""
        self._store(data, header, HEADER_DATA)
        self._store(size, header, _HEADER_SIZE_SLOT)

    def _typed_list(self, found: tree.ListContent, pointer: Value) -> ShadowAt:
        build = self._builder
        struct = self._span(pointer, INTP(WORD), LIST.size)
        count = self._call("numba_list_length", INTP, [pointer])
        items = self._call("numba_list_base_ptr", VOID_POINTER, [pointer])
        shadow = self._span(items, build.mul(count, INTP(found.stride)))
        for field, word in {"items": shadow, "room": count, "item_size": INTP(found.stride)}.items():
            self._store(word, struct, LIST.offset(field))
        self._items(found, count, items, shadow)
        return struct

    def _items(self, found: tree.ListContent, count: Value, items: Any, shadow: ShadowAt) -> None:
        build = self._builder
        if tree.has_derivative(found):
            self._note(count, shadow)
        if tree.is_plain(found.item):
            return
        each = self._each(found, count)
        with cgutils.for_range(build, count, intp=INTP) as loop, each():
            offset = build.mul(loop.index, INTP(found.stride))
            self.value(found.item, build.gep(items, [offset]), shadow.plus(build, offset))

    def _each(self, container: tree.Content, count: Value) -> Callable[[], AbstractContextManager[None]]:
        """Surrounds the notes of an item, in a loop that comes next."""
        return self._regions.notes_of_items(count) if self._is_noted(container) else nullcontext

    def _is_noted(self, content: tree.Content) -> bool:
        return self._is_mine and tree.has_derivative(content)

    def _dictionary(self, found: tree.DictionaryContent, pointer: Value) -> ShadowAt:
        build = self._builder
        struct = self._span(pointer, INTP(WORD), DICT.size)
        keys = self._load(pointer, _DICT_KEYS)
        entries = self._load_word(keys, _ENTRY_COUNT)
        low = build.ptrtoint(keys, INTP)
        size = build.mul(entries, INTP(WORD))
        table = ShadowAt(self._regions.region(low, build.add(low, INTP(WORD)), size, self._owner), INTP(0))
        sizes = {"key_size": found.key_size, "value_at": found.value_at, "value_size": found.value_size}
        words = {"cells": table, "room": entries, "count": entries, **{k: INTP(v) for k, v in sizes.items()}}
        for field, word in words.items():
            self._store(word, struct, DICT.offset(field))
        if tree.has_derivative(found):
            self._note(self._call("numba_dict_length", INTP, [pointer]))
        each = self._each(found, entries)
        with self._entries(pointer) as (number, key, value), each():
            low, end = build.ptrtoint(key, INTP), build.add(build.ptrtoint(value, INTP), INTP(found.value_size))
            cell = self.extent(Extent(low, low, end))
            self._store(cell, table.plus(build, build.mul(number, INTP(WORD))), 0)
            self._hold_value(found.key.type, key)
            if self._is_noted(found):
                self._note(cell)
                self._regions.note_value(found.key.type, found.value_at, key)
            self.value(found.value, value, self._shifted(cell, found.value_at))
        return struct

    def _hold_value(self, numba_type: Any, place: Value) -> None:
        """Holds what a value in memory leads to."""
        build, context = self._builder, self._context
        model = context.data_model_manager[numba_type]
        if not model.contains_nrt_meminfo():
            return
        value = model.load_from_data_pointer(build, build.bitcast(place, model.get_data_type().as_pointer()))
        for _, meminfo in context.nrt.get_meminfos(build, numba_type, value):
            self._hold(meminfo)
