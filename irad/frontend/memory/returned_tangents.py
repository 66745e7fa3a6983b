"""Tangents of what a function returned, read from the shadow of the memory that it was returned through.

Value and shadow are followed side by side: the value tells how many items there are and which keys. Where a shadow
leads nowhere, tangents are zero: what is read there are zeros of a constant.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, assert_never, cast

from llvmlite import ir
from llvmlite.ir import IRBuilder, Value
from numba.core import cgutils
from numba.core.base import BaseContext

from irad.frontend.memory.containers import Maker, Reader
from irad.frontend.memory.regions import INTP, VOID_POINTER, WORD
from irad.frontend.memory.shadows import ALIGNMENT, array_at, extent_of_array, shadow_pointer
from irad.frontend.numba.boxing import owned_record
from irad.frontend.values import tree
from irad.frontend.values.gradients import gradient_of_content, is_mirrored
from irad.frontend.values.layouts import ARRAY_DATA, HEADER_DATA, HEADER_SIZE
from irad.runtime_layouts import DICT, LIST


class ReturnedTangents(Reader):
    """Reads them.

    Args:
        context: Numba's target context.
        builder: of llvmlite.
        fail: emits the end of the function when there is no memory.
    """

    def __init__(self, context: BaseContext, builder: IRBuilder, fail: Callable[[], None]) -> None:
        Reader.__init__(self, context, builder)
        self._fail, self._maker = fail, Maker(context, builder, fail)

    def tangent(self, content: tree.Content, place: Any, shadow: Any) -> Any:
        """The tangent as a value of the type `gradient_of_content`, a new reference.

        Args:
            content: of what was returned, or of a part.
            place: where that is in memory.
            shadow: of that memory.
        """
        if not tree.has_derivative(content):
            return self._context.get_dummy_value()
        known = cast("tree.AnyContent", content)
        match known:
            case tree.NumberContent():
                return self._stored(known.type, shadow)
            case tree.ArrayContent():
                return self._array(known, place, shadow)
            case tree.RecordContent():
                return self._record(known, shadow)
            case tree.TupleContent():
                return self._parts(known, place, shadow)
            case tree.InstanceContent():
                return self._instance(known, place, shadow)
            case tree.ListContent():
                return self._list(known, *self._led_to(known, place, shadow))
            case tree.DictionaryContent():
                return self._dictionary(known, *self._led_to(known, place, shadow))
            case tree.ConstantContent() | tree.OptionalContent() | tree.UnknownContent():
                return self._context.get_dummy_value()
            case _:
                assert_never(known)

    def _led_to(self, reference: tree.Reference, place: Any, shadow: Any) -> tuple[Value, Value]:
        offset = tree.pointer_at(reference)
        return self._load(place, offset), self._load(shadow, offset)

    def _or_zeros(self, shadow: Value, size: int) -> Any:
        """A shadow of so many bytes; zeros where it is null."""
        zeros = cgutils.global_constant(self._builder, "irad.zeros", ir.ArrayType(ir.IntType(8), size)(None))
        zeros.align = ALIGNMENT
        none = cgutils.is_null(self._builder, shadow)
        return self._builder.select(none, self._builder.bitcast(zeros, VOID_POINTER), shadow)

    def _array(self, content: tree.ArrayContent, place: Value, shadow: Value) -> Any:
        """A copy of the shadow, with the strides of the value."""
        context, build = self._context, self._builder
        array = context.make_array(content.type)(context, build, self._stored(content.type, place))
        extent = extent_of_array(context, build, array, content.type)
        data = self._load(shadow, ARRAY_DATA)
        source = build.gep(data, [build.sub(extent.low, extent.data)])
        meminfo = self._copied(data, source, extent.size(build))
        shape, strides = (cgutils.unpack_tuple(build, each) for each in (array.shape, array.strides))
        start = shadow_pointer(context, build, meminfo, extent)
        return array_at(context, build, gradient_of_content(content), start, shape, strides, meminfo)

    def _record(self, content: tree.RecordContent, shadow: Value) -> Any:
        data = self._load(shadow, 0)
        meminfo = self._copied(data, data, INTP(content.type.size))
        start = self._context.nrt.meminfo_data(self._builder, meminfo)
        return owned_record(self._context, self._builder, content.type, meminfo, start)

    def _copied(self, data: Value, source: Any, size: Any) -> Any:
        """A meminfo with a copy of some memory; with zeros where ``data`` is null."""
        build, nrt = self._builder, self._context.nrt
        meminfo = nrt.meminfo_alloc_aligned_unchecked(build, size, ALIGNMENT)
        with cgutils.if_unlikely(build, cgutils.is_null(build, meminfo)):
            self._fail()
        start = nrt.meminfo_data(build, meminfo)
        with build.if_else(cgutils.is_null(build, data), likely=False) as (without, with_shadow):
            with without:
                cgutils.memset(build, start, size, 0)
            with with_shadow:
                cgutils.raw_memcpy(build, start, source, size, 1)
        return meminfo

    def _parts(self, content: tree.TupleContent | tree.InstanceContent, place: Value, shadow: Value) -> Any:
        items = [
            self.tangent(part, self._at(place, part.offset), self._at(shadow, part.offset)) for part in content.parts
        ]
        return self._context.make_tuple(self._builder, gradient_of_content(content), items)

    def _instance(self, content: tree.InstanceContent, place: Value, shadow: Value) -> Any:
        fields, their_shadow = self._led_to(content, place, shadow)
        if tree.is_headed(content):
            fields = self._load(fields, HEADER_DATA)
            their_shadow = self._load(self._or_zeros(their_shadow, HEADER_SIZE), HEADER_DATA)
        shadow = self._or_zeros(their_shadow, content.size)
        if not is_mirrored(content):
            return self._parts(content, fields, shadow)
        return self._maker.instance(content.type, [self._field(part, fields, shadow) for part in content.parts])

    def _field(self, part: tree.Content, fields: Value, shadow: Value) -> Any:
        place = self._at(fields, part.offset)
        if tree.has_derivative(part):
            return self.tangent(part, place, self._at(shadow, part.offset))
        value = self._stored(part.type, place)
        self._context.nrt.incref(self._builder, part.type, value)
        return value

    def _list(self, content: tree.ListContent, pointer: Value, shadow: Value) -> Any:
        build = self._builder
        count, items = self._items_of(content, pointer)
        if content.is_typed:
            shadows = self._load(self._or_zeros(shadow, LIST.size), LIST.offset("items"))
        else:
            shadows = self._load(self._or_zeros(shadow, HEADER_SIZE), HEADER_DATA)

        def item(index: Any) -> Any:
            offset = build.mul(index, INTP(content.stride))
            its_shadow = build.gep(shadows, [build.add(offset, INTP(content.prefix))])
            found = build.select(cgutils.is_null(build, shadows), shadows, its_shadow)
            return self.tangent(content.item, build.gep(items, [offset]), self._or_zeros(found, content.stride))

        return self._maker.list_of(gradient_of_content(content), count, item)

    def _dictionary(self, content: tree.DictionaryContent, pointer: Value, shadow: Value) -> Any:
        build = self._builder
        made, insert = self._maker.dictionary(gradient_of_content(content))
        cells = self._load(self._or_zeros(shadow, DICT.size), DICT.offset("cells"))
        with self._entries(pointer) as (number, key, value):
            slot = build.gep(cells, [build.mul(number, INTP(WORD))])
            cell = self._load(self._or_zeros(build.select(cgutils.is_null(build, cells), cells, slot), WORD), 0)
            within = self._at(self._or_zeros(cell, content.value_at + content.value_size), content.value_at)
            insert(self._stored(content.key.type, key), self.tangent(content.value, value, within))
        return made
