"""Tangents of lists and objects among the arguments: given in the structure that a gradient has, put into the shadows.

They are only read: what the function does to an object changes its shadow. None stands for zero.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, assert_never, cast

from llvmlite import ir
from llvmlite.ir import IRBuilder, Value
from numba.core import cgutils, types
from numba.core.base import BaseContext
from numba.cpython.listobj import ListInstance

from irad.frontend.memory.object_gradients import NotedWords, Notes
from irad.frontend.memory.references import References
from irad.frontend.memory.regions import INTP, VOID_POINTER
from irad.frontend.memory.separate_shadows import KeptNotes
from irad.frontend.memory.shadows import differ
from irad.frontend.values import tree
from irad.frontend.values.layouts import floats_of_element

_STRUCTURE = "a tangent has an entry for each number of its argument"

Put = Callable[[IRBuilder, Value, Value], None]
"""Emits what is done with the tangent of a number and the place in a shadow where it belongs."""


def store(builder: IRBuilder, value: Value, place: Value) -> None:
    """Stores the tangent."""
    builder.store(value, place, align=1)


class Differing:
    """Looks for tangents that are not those in the shadows.

    Args:
        builder: of llvmlite.
    """

    def __init__(self, builder: IRBuilder) -> None:
        self._builder = builder
        self._flag = cgutils.alloca_once_value(builder, cgutils.false_bit)

    def compare(self, builder: IRBuilder, value: Any, place: Value) -> None:
        """Compares one bit by bit."""
        bits = ir.IntType(64 if isinstance(value.type, ir.DoubleType) else 32)
        mine, there = (builder.bitcast(each, bits) for each in (value, builder.load(place, align=1)))
        differs = builder.icmp_unsigned("!=", mine, there)
        builder.store(builder.or_(builder.load(self._flag), differs), self._flag)

    def found(self) -> Any:
        """Whether there are any."""
        return self._builder.load(self._flag)


class GivenTangents(Notes):
    """Puts tangents into the shadows of what was noted of the objects of a call, in the same order.

    Args:
        context: Numba's target context.
        builder: of llvmlite.
        noted: where the notes are.
        references: of the call, which ends when a tangent does not fit.
        put: what is done with each number.
    """

    def __init__(
        self,
        context: BaseContext,
        builder: IRBuilder,
        noted: NotedWords | KeptNotes,
        references: References,
        put: Put,
    ) -> None:
        Notes.__init__(self, context, builder, noted, None, references.fail)
        self._references, self._put = references, put

    def put(self, content: tree.Content, given: Any, given_type: Any, place: Any = None) -> None:
        """Puts a tangent there.

        Args:
            content: of the object, or a part of one.
            given: the tangent.
            given_type: its Numba type, which fits (`gradients.may_be_tangent`).
            place: of a part the shadow.
        """
        if not tree.has_derivative(content):
            return
        if given_type == types.none:
            self.clear(content, place)  # nothing is cleared here: the notes are read
            return
        known = cast("tree.AnyContent", content)
        match known:
            case tree.NumberContent():
                self._number_given(known, given, given_type, place)
            case tree.ArrayContent():
                self._array_given(known, given, given_type)
            case tree.TupleContent() | tree.InstanceContent():
                start = self._shadow() if isinstance(known, tree.InstanceContent) else place
                for i, part in enumerate(known.parts):
                    item = self._builder.extract_value(given, i)
                    self.put(part, item, given_type.types[i], self._builder.gep(start, [INTP(part.offset)]))
            case tree.ListContent():
                self._list_given(known, given, given_type)
            case tree.DictionaryContent():
                self._dictionary_given(known, given, given_type)
            case tree.ConstantContent() | tree.OptionalContent() | tree.RecordContent() | tree.UnknownContent():
                pass
            case _:
                assert_never(known)

    def _fill(self, place: Value, size: Value) -> None:
        """Shadows are zero before."""

    def _number_given(self, content: tree.NumberContent, given: Any, given_type: Any, place: Value) -> None:
        value = self._context.cast(self._builder, given, given_type, content.type)
        self._floats_given(content.type, cgutils.alloca_once_value(self._builder, value), place)

    def _floats_given(self, element: Any, source: Any, place: Any) -> None:
        build = self._builder
        given, shadow = (build.bitcast(pointer, VOID_POINTER) for pointer in (source, place))
        for offset, kind in floats_of_element(element):
            pointer = build.bitcast(build.gep(given, [INTP(offset)]), kind.as_pointer())
            target = build.bitcast(build.gep(shadow, [INTP(offset)]), kind.as_pointer())
            self._put(build, build.load(pointer, align=1), target)

    def _array_given(self, content: tree.ArrayContent, given: Any, given_type: Any) -> None:
        context, build = self._context, self._builder
        data, _, _, shape, strides = self._noted_array(content)
        array = context.make_array(given_type)(context, build, given)
        given_shape = cgutils.unpack_tuple(build, array.shape)
        self._references.refuse(
            differ(build, given_shape, shape),
            "the tangent of an array in an object has a different shape from the array",
            "pass a tangent with an array of the same shape: np.zeros_like(…) of the array",
            _STRUCTURE,
            (given_shape, shape),
        )
        element = context.get_data_type(content.type.dtype).as_pointer()
        start = build.bitcast(data, element)
        with cgutils.loop_nest(build, shape, INTP) as indices:
            place = cgutils.get_item_pointer2(context, build, start, shape, strides, content.type.layout, indices)
            item = cgutils.get_item_pointer(context, build, given_type, array, indices)
            self._floats_given(content.type.dtype, item, place)

    def _list_given(self, content: tree.ListContent, given: Any, given_type: Any) -> None:
        build = self._builder
        count, items = self._word(), self._shadow()
        refuse_length(self._references, build, length_of(self._context, build, given_type, given), count)
        each = self._each(content)
        with cgutils.for_range(build, count, intp=INTP) as loop, each(loop.index):
            item = self._borrowed(given_type, given_type.dtype, given, types.intp, loop.index)
            self.put(content.item, item, given_type.dtype, self._item(content, items, loop.index))

    def _dictionary_given(self, content: tree.DictionaryContent, given: Any, given_type: Any) -> None:
        context, build = self._context, self._builder
        key_type, count = content.key.type, self._word()
        refuse_length(self._references, build, length_of(context, build, given_type, given), count)
        with self._each_entry(content, count) as (key, cell):
            is_there = context.compile_internal(build, _has, types.boolean(given_type, key_type), [given, key])
            self._references.refuse(
                build.not_(cgutils.as_bool_bit(build, is_there)),
                "the tangent of a dictionary lacks one of its keys",
                "pass a dictionary with the same keys",
                _STRUCTURE,
            )
            value = self._borrowed(given_type, given_type.value_type, given, key_type, key)
            self.put(content.value, value, given_type.value_type, cell)

    def _borrowed(self, container_type: Any, item_type: Any, container: Any, key_type: Any, key: Any) -> Any:
        """An item, which its container keeps alive."""
        found = item_of(self._context, self._builder, (container_type, item_type, key_type), container, key)
        self._context.nrt.decref(self._builder, item_type, found)
        return found


def length_of(context: BaseContext, builder: IRBuilder, container_type: Any, container: Any) -> Any:
    """How many items or entries there are."""
    if isinstance(container_type, types.List):
        return ListInstance(context, builder, container_type, container).size
    return context.compile_internal(builder, _length, types.intp(container_type), [container])


def item_of(context: BaseContext, builder: IRBuilder, kinds: tuple[Any, Any, Any], container: Any, key: Any) -> Any:
    """An item, a new reference; ``kinds`` are the types of the container, the item and the key."""
    container_type, item_type, key_type = kinds
    return context.compile_internal(builder, _item, item_type(container_type, key_type), [container, key])


def refuse_length(references: References, builder: IRBuilder, given: Any, wanted: Any) -> None:
    """Ends the call where the tangent of a container has another length."""
    references.refuse(
        builder.icmp_signed("!=", given, wanted),
        "the tangent of a list or dictionary has a different length",
        "pass a tangent with as many entries as the argument has",
        _STRUCTURE,
        ([given], [wanted]),
    )


def _length(values: Any) -> int:
    """Compiled by Numba."""
    return len(values)


def _has(values: Any, key: Any) -> bool:
    """Compiled by Numba."""
    return key in values


def _item(values: Any, key: Any) -> Any:
    """Compiled by Numba."""
    return values[key]
