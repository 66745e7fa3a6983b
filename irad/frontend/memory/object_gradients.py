"""Gradients with respect to objects, read from what `walks` noted, after the reverse sweep has run.

An instance becomes an instance or a named tuple, a list a list, a dictionary a dictionary with the same keys: the
structure that the argument had before the call. Arrays are those of the shadows themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, assert_never, cast

from llvmlite.ir import Value
from numba.core import cgutils

from irad.frontend.emit import INTP, Emit
from irad.frontend.memory.containers import Maker, Reader
from irad.frontend.memory.regions import SsaNotes, TableNotes
from irad.frontend.memory.shadows import ALIGNMENT, MEMINFO_TYPE, array_at
from irad.frontend.values import tree
from irad.frontend.values.gradients import gradient_of_content, is_mirrored, noted_fields
from irad.frontend.values.layouts import size_of_element


class ObjectGradients(Reader):
    """Reads what was noted of the objects of a call, in the same order; ``rewind`` starts again.

    Args:
        noted: where the notes are.
        meminfo: of the memory of the shadows; None where that ends with the call: gradients are copies.
        fail: emits the end of the function when there is no memory for gradients.
    """

    def __init__(
        self,
        emit: Emit,
        noted: TableNotes | SsaNotes,
        meminfo: Value | None = None,
        fail: Callable[[], None] = lambda: None,
    ) -> None:
        Reader.__init__(self, emit)
        self._meminfo, self._fail = meminfo, fail
        self._maker = Maker(emit, fail)
        self._noted = noted
        self._word, self._shadow, self.rewind = noted.word, noted.shadow, noted.rewind

    def _noted_value(self, numba_type: Any, size: int) -> Any:
        return self._noted.value(size, self._context.data_model_manager[numba_type])

    def _noted_fields(self, instance: tree.InstanceContent) -> tuple[Any, list[Any]]:
        """The shadow of the fields, and the values of those that the gradient has from the instance."""
        shadow = self._shadow()
        return shadow, [self._noted_value(part.type, size_of_element(part.type)) for part in noted_fields(instance)]

    # --- gradients ----------------------------------------------------------------------------------------------------

    def gradient(self, content: tree.Content, place: Any = None) -> Any:
        """The gradient as a value of the type `gradient_of_content`, a new reference.

        Args:
            content: of the object, or a part of one.
            place: of a part the shadow.
        """
        if not tree.has_derivative(content):
            return self._context.get_dummy_value()
        known = cast("tree.AnyContent", content)
        match known:
            case tree.NumberContent():
                return self._number(known, place)
            case tree.ArrayContent():
                return self._array(known)
            case tree.TupleContent():
                return self._parts(known, place)
            case tree.InstanceContent():
                return self._instance(known)
            case tree.ListContent():
                return self._list(known)
            case tree.DictionaryContent():
                return self._dictionary(known)
            case tree.ConstantContent() | tree.OptionalContent() | tree.RecordContent() | tree.UnknownContent():
                return self._context.get_dummy_value()
            case _:
                assert_never(known)

    def _number(self, content: tree.NumberContent, place: Value) -> Any:
        return self._emit.stored(content.type, place)

    def _array(self, content: tree.ArrayContent) -> Any:
        context, build = self._context, self._builder
        array_type = gradient_of_content(content)
        data, low, size, shape, strides = self._noted_array(content)
        if self._meminfo is not None:
            context.nrt.incref(build, MEMINFO_TYPE, self._meminfo)
            return array_at(self._emit, array_type, data, shape, strides, self._meminfo)
        meminfo = context.nrt.meminfo_alloc_aligned_unchecked(build, size, ALIGNMENT)
        with cgutils.if_unlikely(build, cgutils.is_null(build, meminfo)):
            self._fail()
        copy = context.nrt.meminfo_data(build, meminfo)
        cgutils.raw_memcpy(build, copy, low, size, 1)
        away = build.sub(build.ptrtoint(data, INTP), build.ptrtoint(low, INTP))
        return array_at(self._emit, array_type, build.gep(copy, [away]), shape, strides, meminfo)

    def _noted_array(self, content: tree.ArrayContent) -> tuple[Any, Any, Any, list[Any], list[Any]]:
        """Data, lowest address, bytes spanned, shape and strides."""
        low = self._shadow()
        data, size = self._builder.gep(low, [self._word()]), self._word()
        shape = [self._word() for _ in range(content.type.ndim)]
        return data, low, size, shape, [self._word() for _ in range(content.type.ndim)]

    def _parts(self, content: tree.TupleContent | tree.InstanceContent, place: Value) -> Any:
        build = self._builder
        items = [self.gradient(part, build.gep(place, [INTP(part.offset)])) for part in content.parts]
        return self._context.make_tuple(build, gradient_of_content(content), items)

    def _instance(self, content: tree.InstanceContent) -> Any:
        shadow, noted = self._noted_fields(content)
        if not is_mirrored(content):
            return self._parts(content, shadow)
        kept = iter(noted)
        return self._maker.instance(content.type, [self._field(part, shadow, kept) for part in content.parts])

    def _field(self, part: tree.Content, shadow: Value, kept: Iterator[Any]) -> Any:
        if tree.has_derivative(part):
            return self.gradient(part, self._emit.at(shadow, part.offset))
        value = next(kept)
        self._context.nrt.incref(self._builder, part.type, value)
        return value

    def _list(self, content: tree.ListContent) -> Any:
        count, items = self._word(), self._shadow()
        each = self._each(content)

        def item(index: Any) -> Any:
            with each(index):
                return self.gradient(content.item, self._item(content, items, index))

        return self._maker.list_of(gradient_of_content(content), count, item)

    def _each(self, content: tree.ListContent) -> Callable[[Any], AbstractContextManager[None]]:
        """What surrounds the reading of an item: items that lead nowhere have no notes."""
        return (lambda _: nullcontext()) if tree.is_plain(content.item) else self._noted.items()

    def _item(self, content: tree.ListContent, items: Any, index: Any) -> Any:
        """The shadow of an item."""
        return self._builder.gep(items, [self._builder.mul(index, INTP(content.stride))])

    def _dictionary(self, content: tree.DictionaryContent) -> Any:
        made, insert = self._maker.dictionary(gradient_of_content(content))
        with self._each_entry(content, self._word()) as (key, cell):
            insert(key, self.gradient(content.value, cell))
        return made

    @contextmanager
    def _each_entry(self, content: tree.DictionaryContent, count: Any) -> Iterator[tuple[Any, Any]]:
        """A loop over entries: key and shadow of the value."""
        build = self._builder
        each = self._noted.items()
        with cgutils.for_range(build, count, intp=INTP) as loop, each(loop.index):
            cell = build.gep(self._shadow(), [INTP(content.value_at)])
            yield self._noted_value(content.key.type, content.value_at), cell

    # --- without gradients --------------------------------------------------------------------------------------------

    def clear(self, content: tree.Content) -> None:
        """Makes the cotangents of all numbers zero."""
        self._pass(content, None, lambda place, size: cgutils.memset(self._builder, place, size, 0))

    def skip(self, content: tree.Content, place: Any = None) -> None:
        """Reads what was noted, and does nothing."""
        self._pass(content, place, lambda place, size: None)

    def _pass(self, content: tree.Content, place: Any, visit: Callable[[Any, Any], None]) -> None:
        """Emits what is done with each stretch of numbers: its place and its bytes."""
        build = self._builder
        if not tree.has_derivative(content):
            return
        known = cast("tree.AnyContent", content)
        match known:
            case tree.NumberContent():
                visit(place, INTP(size_of_element(known.type)))
            case tree.ArrayContent():
                _, low, size, _, _ = self._noted_array(known)
                visit(low, size)
            case tree.TupleContent() | tree.InstanceContent():
                start = self._noted_fields(known)[0] if isinstance(known, tree.InstanceContent) else place
                for part in known.parts:
                    self._pass(part, build.gep(start, [INTP(part.offset)]), visit)
            case tree.ListContent():
                count, items = self._word(), self._shadow()
                each = self._each(known)
                with cgutils.for_range(build, count, intp=INTP) as loop, each(loop.index):
                    self._pass(known.item, self._item(known, items, loop.index), visit)
            case tree.DictionaryContent():
                with self._each_entry(known, self._word()) as (_, cell):
                    self._pass(known.value, cell, visit)
            case tree.ConstantContent() | tree.OptionalContent() | tree.RecordContent() | tree.UnknownContent():
                pass
            case _:
                assert_never(known)
