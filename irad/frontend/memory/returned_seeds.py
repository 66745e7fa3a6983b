"""Cotangents of lists, dictionaries and instances that a function returned, added to their shadows.

Value, shadow and cotangent are followed side by side. The cotangent has the structure that a gradient has, and None for
parts without one. Where a shadow leads nowhere, nothing that has a derivative was stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from typing import Any, assert_never, cast

from llvmlite.ir import IRBuilder, Value
from numba.core import cgutils, types
from numba.core.base import BaseContext

from irad.frontend.memory.containers import Reader
from irad.frontend.memory.regions import INTP, VOID_POINTER, WORD
from irad.frontend.memory.shadows import differ
from irad.frontend.values import tree
from irad.frontend.values.build import content_of
from irad.frontend.values.layouts import ARRAY_DATA, HEADER_DATA, floats_of_element
from irad.runtime_layouts import DICT, LIST

AddElements = Callable[..., None]


class ReturnedSeeds(Reader):
    """Follows one cotangent.

    Args:
        context: Numba's target context.
        builder: of llvmlite.
        content: what was returned.
        value: that, as Numba holds it.
        seed: the cotangent and its Numba type.
    """

    def __init__(
        self, context: BaseContext, builder: IRBuilder, content: tree.Content, value: Any, seed: tuple[Any, Any]
    ) -> None:
        Reader.__init__(self, context, builder)
        self._content, self._given = content, content_of(seed[1])
        self._places = self._in_memory(content.type, value), self._in_memory(seed[1], seed[0])

    def _in_memory(self, numba_type: Any, value: Any) -> Any:
        model: Any = self._context.data_model_manager[numba_type]
        place = cgutils.alloca_once(self._builder, model.get_data_type())
        self._builder.store(model.as_data(self._builder, value), place)
        return self._builder.bitcast(place, VOID_POINTER)

    def misfit(self, conditions: Sequence[Any]) -> Any:
        """A bit: whether lengths, keys or shapes are not those of the value, which is there if all conditions hold."""
        build = self._builder
        self._flag = cgutils.alloca_once(build, cgutils.false_bit.type)
        build.store(cgutils.false_bit, self._flag)
        is_there: Value = cgutils.true_bit
        with build.if_then(reduce(build.and_, conditions, is_there)):
            self._part(self._content, self._places[0], None, self._given, self._places[1], None)
        return build.load(self._flag)

    def add(self, shadow: Any, add_elements: AddElements) -> None:
        """Adds the cotangent, which fits, to the shadow; ``add_elements`` is `seeding.add_elements`."""
        start = self._builder.bitcast(shadow, VOID_POINTER)
        self._part(self._content, self._places[0], start, self._given, self._places[1], add_elements)

    @contextmanager
    def _if_fits(self, differs: Value | None) -> Iterator[None]:
        """Notes that something differs; the rest is emitted for where it does not."""
        if differs is None:
            yield
            return
        build = self._builder
        build.store(build.or_(build.load(self._flag), differs), self._flag)
        with build.if_then(build.not_(differs)):
            yield

    def _part(
        self, content: tree.Content, place: Any, shadow: Any, given: tree.Content, its: Any, add: AddElements | None
    ) -> None:
        """Follows a part; without ``add`` it is only looked at, and there is no shadow."""
        if given.type == types.none or not tree.has_derivative(content):
            return
        known = cast("tree.AnyContent", content)
        match known:
            case tree.NumberContent():
                if add is not None:
                    self._number(known, shadow, given.type, its)
            case tree.ArrayContent():
                self._array(known, place, shadow, given.type, its, add)
            case tree.TupleContent():
                self._parts(known, place, shadow, given, its, add)
            case tree.InstanceContent():
                self._instance(known, place, shadow, given, its, add)
            case tree.ListContent():
                assert isinstance(given, tree.ListContent)
                self._list(known, place, shadow, given, its, add)
            case tree.DictionaryContent():
                assert isinstance(given, tree.DictionaryContent)
                self._dictionary(known, place, shadow, given, its, add)
            case tree.ConstantContent() | tree.OptionalContent() | tree.RecordContent() | tree.UnknownContent():
                pass
            case _:
                assert_never(known)

    def _number(self, content: tree.NumberContent, shadow: Any, given_type: Any, its: Any) -> None:
        build = self._builder
        value = self._context.cast(build, self._stored(given_type, its), given_type, content.type)
        source = build.bitcast(cgutils.alloca_once_value(build, value), VOID_POINTER)
        build.store(value, build.bitcast(source, value.type.as_pointer()))
        for offset, kind in floats_of_element(content.type):
            target, other = (build.bitcast(self._at(each, offset), kind.as_pointer()) for each in (shadow, source))
            build.store(build.fadd(build.load(target, align=1), build.load(other, align=1)), target, align=1)

    def _array(
        self, content: tree.ArrayContent, place: Any, shadow: Any, given_type: Any, its: Any, add: AddElements | None
    ) -> None:
        context, build = self._context, self._builder
        array = context.make_array(content.type)(context, build, self._stored(content.type, place))
        given = context.make_array(given_type)(context, build, self._stored(given_type, its))
        if add is None:
            shapes = (cgutils.unpack_tuple(build, each.shape) for each in (given, array))
            with self._if_fits(differ(build, *shapes)):
                return
        data = self._load(shadow, ARRAY_DATA)
        with self._unless_null(data):
            start = build.bitcast(data, array.data.type)
            add(context, build, content.type, start, array, given_type, given)

    @contextmanager
    def _unless_null(self, pointer: Any) -> Iterator[None]:
        """What is done where a shadow leads somewhere; there is none where the cotangent is only looked at."""
        if pointer is None:
            yield
        else:
            with self._builder.if_then(cgutils.is_not_null(self._builder, pointer)):
                yield

    def _shadow_behind(self, reference: tree.Reference, shadow: Any) -> Any:
        return None if shadow is None else self._load(shadow, tree.pointer_at(reference))

    def _parts(
        self,
        content: tree.TupleContent | tree.InstanceContent,
        place: Any,
        shadow: Any,
        given: tree.Content,
        its: Any,
        add: AddElements | None,
    ) -> None:
        for part, other in zip(content.parts, tree.children(given), strict=True):
            within = None if shadow is None else self._at(shadow, part.offset)
            self._part(part, self._at(place, part.offset), within, other, self._at(its, other.offset), add)

    def _fields_at(self, reference: tree.Reference, place: Any) -> Any:
        fields = self._load(place, tree.pointer_at(reference))
        return self._load(fields, HEADER_DATA) if tree.is_headed(reference) else fields

    def _instance(
        self,
        content: tree.InstanceContent,
        place: Any,
        shadow: Any,
        given: tree.Content,
        its: Any,
        add: AddElements | None,
    ) -> None:
        within = self._shadow_behind(content, shadow)
        with self._unless_null(within):
            if within is not None and tree.is_headed(content):
                within = self._load(within, HEADER_DATA)
            with self._unless_null(within):
                its = self._fields_at(given, its) if isinstance(given, tree.InstanceContent) else its
                self._parts(content, self._fields_at(content, place), within, given, its, add)

    def _list(
        self,
        content: tree.ListContent,
        place: Any,
        shadow: Any,
        given: tree.ListContent,
        its: Any,
        add: AddElements | None,
    ) -> None:
        build = self._builder
        count, items = self._items_of(content, self._load(place, tree.pointer_at(content)))
        its_count, its_items = self._items_of(given, self._load(its, tree.pointer_at(given)))
        with self._if_fits(None if add is not None else build.icmp_signed("!=", count, its_count)):
            within = self._shadow_behind(content, shadow)
            with self._unless_null(within):
                if within is not None:
                    within = self._load(within, LIST.offset("items") if content.is_typed else HEADER_DATA)
                with self._unless_null(within), cgutils.for_range(build, count, intp=INTP) as loop:
                    offset = build.mul(loop.index, INTP(content.stride))
                    target = None if within is None else build.gep(within, [build.add(offset, INTP(content.prefix))])
                    other = build.gep(its_items, [build.mul(loop.index, INTP(given.stride))])
                    self._part(content.item, build.gep(items, [offset]), target, given.item, other, add)

    def _dictionary(
        self,
        content: tree.DictionaryContent,
        place: Any,
        shadow: Any,
        given: tree.DictionaryContent,
        its: Any,
        add: AddElements | None,
    ) -> None:
        build = self._builder
        pointers = [self._load(at, tree.pointer_at(each)) for each, at in ((content, place), (given, its))]
        lengths = [self._call("numba_dict_length", INTP, [pointer]) for pointer in pointers]
        with self._if_fits(None if add is not None else build.icmp_signed("!=", *lengths)):
            within = self._shadow_behind(content, shadow)
            with self._unless_null(within):
                cells = None if within is None else self._load(within, DICT.offset("cells"))
                with self._unless_null(cells), self._entries(pointers[0]) as (number, key, value):
                    found = self._entry_of(given, self._stored(given.type, its), self._stored(content.key.type, key))
                    absent = build.icmp_signed("<", found, INTP(0))
                    with self._if_fits(None if add is not None else absent):
                        cell = None
                        if cells is not None:
                            slot = build.gep(cells, [build.mul(number, INTP(WORD))])
                            cell = self._load(slot, 0)
                        with self._unless_null(cell):
                            target = None if cell is None else self._at(cell, content.value_at)
                            other = self._entry_at(pointers[1], found)
                            self._part(content.value, value, target, given.value, other, add)
