"""Gradients with respect to objects, made from the notes of `walks` after the reverse sweep has run.

An instance becomes an instance or a named tuple, a list a list, a dictionary a dictionary with the same keys: the
structure that the argument had before the call. Arrays are those of the shadows themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from llvmlite.ir import Value
from numba.core import cgutils
from numba.core.types import Type

from irad.frontend.emit import INTP, Emit
from irad.frontend.memory.containers import Maker
from irad.frontend.memory.regions import SsaNotes, TableNotes
from irad.frontend.memory.shadows import ALIGNMENT, MEMINFO_TYPE, array_at
from irad.frontend.memory.visitor import NOWHERE, Cursor, Visitor
from irad.frontend.values import tree
from irad.frontend.values.gradients import gradient_of_content, is_mirrored, noted_fields
from irad.frontend.values.layouts import size_of_element


class NotesVisitor(Visitor):
    """Goes through the notes on the objects of a call, in the order in which they were made.

    Args:
        noted: where the notes are.
        block: emits what is done with each block of numbers: its place in a shadow, and its bytes. Without it the notes
            are only read, as those of an object between two others.
    """

    def __init__(
        self, emit: Emit, noted: TableNotes | SsaNotes, block: Callable[[Any, Any], None] = lambda place, size: None
    ) -> None:
        Visitor.__init__(self, emit)
        self._noted, self._visit_numbers = noted, block

    def skip(self, content: tree.Content, at: Cursor = NOWHERE) -> None:
        """Reads the notes on a part without making a gradient."""
        NotesVisitor(self._emit, self._noted).visit(content, at)

    # --- notes --------------------------------------------------------------------------------------------------------

    def _noted_value(self, numba_type: Type, size: int) -> Any:
        return self._noted.value(size, self._context.data_model_manager[numba_type])

    def _noted_fields(self, instance: tree.InstanceContent) -> tuple[Any, list[Any]]:
        """The shadow of the fields, and the values of those that the gradient has from the instance."""
        shadow = self._noted.shadow()
        return shadow, [self._noted_value(part.type, size_of_element(part.type)) for part in noted_fields(instance)]

    def _noted_array(self, content: tree.ArrayContent) -> tuple[Any, Any, Any, list[Any], list[Any]]:
        """Data, lowest address, bytes spanned, shape and strides."""
        word = self._noted.word
        low = self._noted.shadow()
        data, size = self._builder.gep(low, [word()]), word()
        shape = [word() for _ in range(content.type.ndim)]
        return data, low, size, shape, [word() for _ in range(content.type.ndim)]

    def _noted_list(self) -> tuple[Any, Any]:
        """Number of items of a list, and the shadow of the first."""
        return self._noted.word(), self._noted.shadow()

    def _around_each(self, content: tree.ListContent) -> Callable[[Any], AbstractContextManager[None]]:
        """Context for reading an item: items that point to no other memory have no notes."""
        return (lambda _: nullcontext()) if tree.is_plain(content.item) else self._noted.items()

    @contextmanager
    def _each_entry(self, content: tree.DictionaryContent, count: Any) -> Iterator[tuple[Any, Any]]:
        """A loop over entries: key and shadow of the value."""
        build = self._builder
        each = self._noted.items()
        with cgutils.for_range(build, count, intp=INTP) as loop, each(loop.index):
            cell = build.gep(self._noted.shadow(), [INTP(content.value_at)])
            yield self._noted_value(content.key.type, content.value_at), cell

    # --- what is visited ----------------------------------------------------------------------------------------------

    def visit_number(self, content: tree.NumberContent, at: Cursor) -> Any:
        """A number in memory that was noted."""
        self._visit_numbers(at.shadow, INTP(size_of_element(content.type)))

    def visit_array(self, content: tree.ArrayContent, at: Cursor) -> Any:
        """An array: all that it spans."""
        _, low, size, _, _ = self._noted_array(content)
        self._visit_numbers(low, size)

    def visit_instance(self, content: tree.InstanceContent, at: Cursor) -> Any:
        """An instance: its fields."""
        self.visit_parts(content.parts, Cursor(shadow=self._noted_fields(content)[0]))

    def visit_list(self, content: tree.ListContent, at: Cursor) -> Any:
        """A list: its items."""
        count, items = self._noted_list()
        with self._each_item(content, count, Cursor(shadow=items), self._around_each(content)) as item:
            self.visit(content.item, item)

    def visit_dictionary(self, content: tree.DictionaryContent, at: Cursor) -> Any:
        """A dictionary: the values of its entries."""
        with self._each_entry(content, self._noted.word()) as (_, cell):
            self.visit(content.value, Cursor(shadow=cell))


class ObjectGradients(NotesVisitor):
    """Makes gradients: ``visit`` returns one, as a value of the type `gradient_of_content`, a new reference.

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
        NotesVisitor.__init__(self, emit, noted)
        self._meminfo, self._fail = meminfo, fail
        self._maker = Maker(emit, fail)

    def visit_other(self, content: tree.Content, at: Cursor) -> Value:
        """None, for the gradient of a part without a derivative."""
        return self._context.get_dummy_value()

    def visit_number(self, content: tree.NumberContent, at: Cursor) -> Value:
        """A number."""
        return self._emit.stored(content.type, at.shadow)

    def visit_array(self, content: tree.ArrayContent, at: Cursor) -> Any:
        """An array: that of the shadow, or a copy of it."""
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

    def visit_tuple(self, content: tree.TupleContent, at: Cursor) -> Any:
        """A tuple: a tuple."""
        return self._tuple_of_parts(content, at)

    def _tuple_of_parts(self, content: tree.TupleContent | tree.InstanceContent, at: Cursor) -> Value:
        items = [self.visit(part, at.part(self._emit, part.offset)) for part in content.parts]
        return self._context.make_tuple(self._builder, gradient_of_content(content), items)

    def visit_instance(self, content: tree.InstanceContent, at: Cursor) -> Any:
        """An instance: an instance, or a named tuple."""
        shadow, noted = self._noted_fields(content)
        if not is_mirrored(content):
            return self._tuple_of_parts(content, Cursor(shadow=shadow))
        kept = iter(noted)
        return self._maker.instance(content.type, [self._field(part, shadow, kept) for part in content.parts])

    def _field(self, part: tree.Content, shadow: Value, kept: Iterator[Any]) -> Any:
        if tree.has_derivative(part):
            return self.visit(part, Cursor(shadow=shadow).part(self._emit, part.offset))
        value = next(kept)
        self._context.nrt.incref(self._builder, part.type, value)
        return value

    def visit_list(self, content: tree.ListContent, at: Cursor) -> Any:
        """A list: a list."""
        count, items = self._noted_list()
        around = self._around_each(content)

        def item(index: Any) -> Any:
            with around(index):
                return self.visit(content.item, Cursor(shadow=items).item(self._emit, content, index))

        return self._maker.list_of(gradient_of_content(content), count, item)

    def visit_dictionary(self, content: tree.DictionaryContent, at: Cursor) -> Any:
        """A dictionary: a dictionary with the same keys."""
        made, insert = self._maker.dictionary(gradient_of_content(content))
        with self._each_entry(content, self._noted.word()) as (key, cell):
            insert(key, self.visit(content.value, Cursor(shadow=cell)))
        return made
