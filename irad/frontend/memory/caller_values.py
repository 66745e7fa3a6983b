"""Values that the caller gives for lists and objects: tangents, cotangents, and memory for derivatives.

Tangents and cotangents have the structure that a gradient has, and are only read; None stands for zero. Memory for
derivatives has the types of the argument itself: the shadows of objects are nevertheless made by the call, since the
function may change what an object points to; they start as copies of the memory that was given, and are copied back.
Each is followed side by side with what was noted of the object, in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeAlias

from llvmlite import ir
from llvmlite.ir import IRBuilder, PointerType, Value
from numba.core import cgutils, types
from numba.cpython.listobj import ListInstance

from irad.frontend.calls.task import Role
from irad.frontend.emit import INTP, VOID_POINTER, Emit
from irad.frontend.memory.object_gradients import NotesVisitor
from irad.frontend.memory.references import References
from irad.frontend.memory.regions import Owner, Regions, SsaNotes, TableNotes
from irad.frontend.memory.shadows import Extent, all_of, differ, extent_of_array
from irad.frontend.memory.visitor import NOWHERE, Cursor, Given
from irad.frontend.values import tree
from irad.frontend.values.layouts import HEADER_DATA, floats_of_element
from irad.frontend.values.tree import Content, Reference, content_of
from irad.records import dataclass

Visit = Callable[[IRBuilder, Value, Value], None]
"""Emits what is done with the places of a float: in what is given, and in a shadow."""

VisitBlock = Callable[[Extent, Value], None]
"""Emits what is done with a block of what is given, and the place in a shadow where it begins."""

Refuse = Callable[..., None]
"""Emits what is done where something does not fit, as `References.refuse` does; what follows is for where it does."""


def copy_in(builder: IRBuilder, given: Value, shadow: Value) -> None:
    """Stores a given number in the shadow."""
    builder.store(builder.load(given, align=1), shadow, align=1)


def add_in(builder: IRBuilder, given: Value, shadow: Value) -> None:
    """Adds a given number to the shadow."""
    builder.store(builder.fadd(builder.load(shadow, align=1), builder.load(given, align=1)), shadow, align=1)


def copy_out(builder: IRBuilder, given: Value, shadow: Value) -> None:
    """Stores a number of the shadow in the given memory."""
    builder.store(builder.load(shadow, align=1), given, align=1)


class Differing:
    """Looks for floats that are not those in the shadows."""

    def __init__(self, emit: Emit) -> None:
        self._builder = emit.builder
        self._flag = cgutils.alloca_once_value(emit.builder, cgutils.false_bit)

    def compare(self, builder: IRBuilder, given: Any, shadow: Value) -> None:
        """Compares one bit by bit."""
        bits = ir.IntType(64 if isinstance(given.type.pointee, ir.DoubleType) else 32)
        mine, there = (builder.bitcast(builder.load(each, align=1), bits) for each in (given, shadow))
        differs = builder.icmp_unsigned("!=", mine, there)
        builder.store(builder.or_(builder.load(self._flag), differs), self._flag)

    def found(self) -> Any:
        """True if there are values of the caller."""
        return self._builder.load(self._flag)


@dataclass(frozen=True)
class MessageWords:
    """Words of messages for a given value: its name, its purpose, how to make it."""

    what: str = "tangent"
    use: str = "a tangent has an entry for each number of its argument"
    make: str = "pass a tangent"


TANGENT = MessageWords()
SHADOW = MessageWords(
    "shadow", "each number of the argument needs a place for its derivative", "make it with irad.data.make_zero"
)


class CallerValues(NotesVisitor):
    """Follows the caller's values beside the shadows that were noted of the objects of a call.

    Args:
        noted: where the notes are.
        refuse: called if something does not fit.
        words: for messages.
        visit: called with each float.
        visit_block: called with each array, each instance and the items of each list; then there is no ``visit``.
    """

    def __init__(
        self,
        emit: Emit,
        noted: TableNotes | SsaNotes,
        refuse: Refuse,
        words: MessageWords,
        visit: Visit | None,
        visit_block: VisitBlock | None = None,
    ) -> None:
        NotesVisitor.__init__(self, emit, noted)
        self._refuse, self._words, self._visit_float, self._visit_block = refuse, words, visit, visit_block

    def value(self, content: tree.Content, given: Any, given_type: types.Type, name: str) -> None:
        """Follows the value given for an object.

        Args:
            content: the object.
            given: a value.
            given_type: its Numba type, which fits (`gradients.may_be_tangent`, `gradients.may_be_shadow`).
            name: of the object, for messages.
        """
        if given_type == types.none:
            self.skip(content)
            return
        model: Any = self._context.data_model_manager[given_type]
        place = cgutils.alloca_once(self._builder, model.get_data_type())
        self._builder.store(model.as_data(self._builder, given), place)
        at = Given(content_of(given_type), self._builder.bitcast(place, VOID_POINTER), name)
        self.visit(content, Cursor(given=at))

    def visit(self, content: tree.Content, at: Cursor = NOWHERE) -> None:
        """Follows the value given for a part; None stands for zero."""
        if tree.has_derivative(content) and _given(at).content.type == types.none:
            self.skip(content, at)
        else:
            NotesVisitor.visit(self, content, at)

    # --- numbers ------------------------------------------------------------------------------------------------------

    def visit_number(self, content: tree.NumberContent, at: Cursor) -> None:
        """A number, which may be given in another type."""
        given_type, place = _given(at).content.type, _given(at).place
        if given_type != content.type:
            value = self._context.cast(self._builder, self._emit.stored(given_type, place), given_type, content.type)
            place = cgutils.alloca_once(self._builder, value.type)
            self._builder.store(value, place)
        self._floats(content.type, place, at.shadow)

    def _floats(self, element: Any, given: Any, shadow: Any) -> None:
        if self._visit_float is None:
            return
        build = self._builder
        for offset, kind in floats_of_element(element):
            pair = (self._emit.at(build.bitcast(each, VOID_POINTER), offset) for each in (given, shadow))
            self._visit_float(build, *(build.bitcast(each, kind.as_pointer()) for each in pair))

    def _block(self, low: Any, size: Value, shadow: Value) -> None:
        if self._visit_block is not None:
            start = self._builder.ptrtoint(low, INTP)
            self._visit_block(Extent(start, start, self._builder.add(start, size)), shadow)

    # --- what holds them ----------------------------------------------------------------------------------------------

    def visit_array(self, content: tree.ArrayContent, at: Cursor) -> None:
        """An array, which has the same shape."""
        context, build, given = self._context, self._builder, _given(at)
        given_type, place, name = given.content.type, given.place, given.name
        data, low, _, shape, strides = self._noted_array(content)
        array = self._emit.array(given_type, self._emit.stored(given_type, place))
        given_shape = cgutils.unpack_tuple(build, array.shape)
        self._refuse(
            differ(build, given_shape, shape),
            f"the {self._words.what} of {name} has a different shape from the array",
            f"{self._words.make}, with an array of the same shape: np.zeros_like(…) of the array",
            self._words.use,
            (given_shape, shape),
        )
        if self._visit_block is not None:
            self._visit_block(extent_of_array(self._emit, array, given_type), low)
        if self._visit_float is None:
            return
        element = context.get_data_type(content.type.dtype).as_pointer()
        start = build.bitcast(data, element)
        # an array that was returned may have no shadow
        with build.if_then(cgutils.is_not_null(build, low)), cgutils.loop_nest(build, shape, INTP) as indices:
            target = cgutils.get_item_pointer2(context, build, start, shape, strides, content.type.layout, indices)
            item = cgutils.get_item_pointer(context, build, given_type, array, indices)
            self._floats(content.type.dtype, item, target)

    def visit_tuple(self, content: tree.TupleContent, at: Cursor) -> None:
        """A tuple, for which a tuple is given."""
        self._parts(content, [f"[{number}]" for number in range(len(content.parts))], at)

    def _parts(self, content: tree.TupleContent | tree.InstanceContent, ways: Sequence[str], at: Cursor) -> None:
        given = _given(at)
        for part, its, way in zip(content.parts, tree.children(given.content), ways, strict=True):
            place = Given(its, self._emit.at(given.place, its.offset), given.name + way)
            self.visit(part, Cursor(shadow=self._emit.at(at.shadow, part.offset), given=place))

    def visit_instance(self, content: tree.InstanceContent, at: Cursor) -> None:
        """An instance, for which an instance or a tuple is given."""
        given = _given(at)
        shadow, _ = self._noted_fields(content)
        if isinstance(given.content, tree.InstanceContent):
            place = self._emit.load(given.place, tree.pointer_at(given.content))
            if tree.is_headed(given.content):
                place = self._emit.load(place, HEADER_DATA)
            self._block(place, INTP(given.content.size), shadow)
            given = Given(given.content, place, given.name)
        self._parts(content, [f".{field}" for field in content.names], Cursor(shadow=shadow, given=given))

    def visit_list(self, content: tree.ListContent, at: Cursor) -> None:
        """A list, for which a list is given, or a tuple that stands for one."""
        given = _given(at)
        count, shadow = self._noted_list()
        if isinstance(given.content, tree.TupleContent):
            self._packed_list(content, count, shadow, given, given.content)
        else:
            assert isinstance(given.content, tree.ListContent)
            self._list_beside_list(content, count, shadow, given, given.content)

    def _list_beside_list(
        self, content: tree.ListContent, count: Any, shadow: Any, given: Given, its: tree.ListContent
    ) -> None:
        build = self._builder
        its_count, items = self._items_of(its, self._emit.load(given.place, tree.pointer_at(its)))
        self._refuse_length(given.name, its_count, count)
        self._block(items, build.mul(count, INTP(its.stride)), shadow)
        if self._visit_float is copy_out and not its.is_typed:  # Numba's list of Python is changed on return
            ListInstance(self._context, build, its.type, self._emit.stored(its.type, given.place)).set_dirty(True)
        if self._visit_float is None and tree.is_plain(content.item):
            return
        around = self._around_each(content)
        first = Cursor(shadow=shadow, given=Given(its, items, given.name))
        with self._if_there(content, shadow), self._each_item(content, count, first, around) as item:
            self.visit(content.item, item)

    def _packed_list(
        self, content: tree.ListContent, count: Any, shadow: Any, given: Given, its: tree.TupleContent
    ) -> None:
        """A tuple that stands for a list."""
        self._refuse_length(given.name, INTP(len(its.parts)), count)
        around = self._around_each(content)
        for number, part in enumerate(its.parts):
            with self._if_there(content, shadow), around(INTP(number)):
                target = Cursor(shadow=shadow).item(self._emit, content, INTP(number)).shadow
                place = Given(part, self._emit.at(given.place, part.offset), f"{given.name}[{number}]")
                self.visit(content.item, Cursor(shadow=target, given=place))

    def _if_there(self, content: tree.ListContent, shadow: Any) -> AbstractContextManager[Any]:
        """A list of numbers that was returned may have no shadow."""
        return (
            self._builder.if_then(cgutils.is_not_null(self._builder, shadow))
            if tree.is_plain(content.item)
            else nullcontext()
        )

    def visit_dictionary(self, content: tree.DictionaryContent, at: Cursor) -> None:
        """A dictionary, for which one with the same keys is given."""
        context, build, given = self._context, self._builder, _given(at)
        its, count = given.content, self._noted.word()
        assert isinstance(its, tree.DictionaryContent)
        value = self._emit.stored(its.type, given.place)
        its_count = context.compile_internal(build, _length, types.intp(its.type), [value])
        self._refuse_length(given.name, its_count, count)
        with self._each_entry(content, count) as (key, cell):
            found = self._entry_of(its, value, key)
            self._refuse(
                build.icmp_signed("<", found, INTP(0)),
                f"the {self._words.what} of {given.name}, a dictionary, lacks one of its keys",
                f"{self._words.make}, a dictionary with the same keys",
                self._words.use,
            )
            target = self._entry_at(self._emit.load(given.place, tree.pointer_at(its)), found)
            self._block(target, INTP(its.value_size), cell)
            self.visit(content.value, Cursor(shadow=cell, given=Given(its.value, target, f"{given.name}[…]")))

    def _refuse_length(self, name: str, given: Any, wanted: Any) -> None:
        refuse_length(self._refuse, self._builder, given, wanted, self._words, name)


def _given(at: Cursor) -> Given:
    assert at.given is not None
    return at.given


def length_of(emit: Emit, container_type: Any, container: Any) -> Any:
    """Number of items of a list."""
    context, builder = emit.context, emit.builder
    if isinstance(container_type, types.List):
        return ListInstance(context, builder, container_type, container).size
    return context.compile_internal(builder, _length, types.intp(container_type), [container])


def item_of(emit: Emit, kinds: tuple[Any, Any, Any], container: Any, key: Any) -> Value:
    """An item, a new reference; ``kinds`` are the types of the container, the item and the key."""
    container_type, item_type, key_type = kinds
    return emit.context.compile_internal(emit.builder, _item, item_type(container_type, key_type), [container, key])


def refuse_length(refuse: Refuse, builder: IRBuilder, given: Any, wanted: Any, words: MessageWords, name: str) -> None:
    """Refuses a value given for a container that has another length."""
    refuse(
        builder.icmp_signed("!=", given, wanted),
        f"the {words.what} of {name} has a different length",
        f"{words.make}, with as many entries as the argument has",
        words.use,
        ([given], [wanted]),
    )


def _length(values: Any) -> int:
    """Compiled by Numba."""
    return len(values)


def _item(values: Any, key: Any) -> Any:
    """Compiled by Numba."""
    return values[key]


# --- cotangents of what a function returned ---------------------------------------------------------------------------

NotesOf: TypeAlias = Callable[[Content], TableNotes | SsaNotes]
"""Emits what reads the notes of a part of the value; where that may be None, only where it is there."""

_COTANGENT = MessageWords(
    "cotangent", "it holds a weight for each number in the value", "make it with irad.data.make_zero"
)


def cotangent_misfit(
    emit: Emit,
    content: Content,
    given: tuple[Any, Any],
    notes_of: NotesOf,
    conditions: Sequence[Value],
) -> Value:
    """A bit: whether lengths, keys or shapes are not those of the value, which is there if all conditions hold.

    Args:
        content: content of the part of the value.
        given: the cotangent and its Numba type, which fits.
        notes_of: reads what was noted.
        conditions: bits.
    """
    builder = emit.builder
    flag = cgutils.alloca_once_value(builder, cgutils.false_bit)
    end = builder.append_basic_block("followed")

    def note_it(condition: Value, *texts: Any) -> None:
        with builder.if_then(condition, likely=False):
            builder.store(cgutils.true_bit, flag)
            builder.branch(end)

    with builder.if_then(all_of(builder, conditions)):
        _follow_cotangent(emit, content, given, notes_of, note_it, None)
    builder.branch(end)
    builder.position_at_end(end)
    return builder.load(flag)


def add_cotangent(emit: Emit, content: Content, given: tuple[Any, Any], notes_of: NotesOf) -> None:
    """Adds a cotangent, which fits."""
    _follow_cotangent(emit, content, given, notes_of, _it_fits, add_in)


def _it_fits(*texts: Any) -> None:
    """Lengths, keys and shapes were compared."""


def _follow_cotangent(
    emit: Emit,
    content: Content,
    given: tuple[Any, Any],
    notes_of: NotesOf,
    refuse: Refuse,
    visit: Visit | None,
) -> None:
    value, kind = given
    CallerValues(emit, notes_of(content), refuse, _COTANGENT, visit).value(content, value, kind, "it")


# --- memory for derivatives with respect to objects -------------------------------------------------------------------

Follow = Callable[[Visit | None, VisitBlock | None], CallerValues]


@dataclass(frozen=True)
class GivenObject:
    """Value given for an object among the arguments.

    Attributes:
        content: the object.
        name: of it, for messages.
        role: role of the argument.
        value: the memory for its derivative, and its Numba type; None where the call makes that.
    """

    content: Reference
    name: str
    role: Role
    value: tuple[Any, Any] | None


class CallerShadows:
    """The memory of one direction of a call.

    Args:
        references: references of the call.
        objects: all that are differentiated, in the order in which they were walked through.
        follow: makes what follows them.
    """

    def __init__(
        self,
        emit: Emit,
        references: References,
        objects: Sequence[GivenObject],
        follow: Follow,
    ) -> None:
        self._emit, self._context, self._builder = emit, emit.context, emit.builder
        self._references = references
        self._objects, self._follow = objects, follow
        self._names = " and ".join(each.name for each in objects if each.value is not None)

    def check(self, arguments: Regions, arrays: Sequence[Extent], others: Sequence[CallerShadows]) -> None:
        """Ends the call if the memory overlaps an argument, or itself otherwise than the argument overlaps itself.

        Args:
            arguments: the memory of all arguments, placed.
            arrays: memory that was given for arrays.
            others: the memory of directions before.
        """
        given, shadows = (self._blocks((self, *others), arrays, by_shadow=flag) for flag in (False, True))
        self._refuse(
            given.compared(arguments, _meet),
            "shares memory with an argument",
            "writing the derivative there would overwrite values that the function uses",
        )
        self._refuse(
            given.compared(given, _shares_otherwise),
            "shares memory, within itself or with another shadow, that the argument does not share",
            "one derivative would overwrite the other",
        )
        self._refuse(
            shadows.compared(shadows, _shares_otherwise),
            "does not share the memory that the argument shares",
            "an element that is reached in two ways has one derivative",
        )

    def _refuse(self, condition: Any, how: str, reason: str) -> None:
        what = f"the shadow of {self._names} {how}"
        remedy = (
            "pass a shadow that shares objects where the argument does and nowhere else, such as irad.data.make_zero "
            "returns"
        )
        self._references.refuse(condition, what, remedy, reason)

    def _blocks(self, lanes: Sequence[CallerShadows], arrays: Sequence[Extent], *, by_shadow: bool) -> Regions:
        """A table of all blocks, with the address of each shadow in the third word, or the other way round."""
        build, table = self._builder, Regions(self._emit)

        def add(extent: Extent, shadow: Any) -> None:
            start = build.ptrtoint(shadow, INTP) if isinstance(shadow.type, PointerType) else shadow
            if by_shadow:
                table.region(start, build.add(start, extent.size(build)), extent.low, Owner.CALLER)
            else:
                table.region(extent.low, extent.high, start, Owner.CALLER)

        def add_all() -> None:
            for lane in lanes:
                lane.visit(None, add)
            for extent in arrays:
                add(extent, extent.low)

        add_all()
        table.open(self._references.scratch)
        add_all()
        table.close()
        table.place(joined=True)
        return table

    def put(self) -> None:
        """Copies the content of the memory into the shadows."""
        if any(map(_is_added_to, self._objects)):
            self.visit(copy_in, wanted=_is_added_to)

    def take(self) -> None:
        """Puts the derivatives into the memory."""
        if self._objects:
            self.visit(copy_out)

    def visit(
        self,
        visit: Visit | None,
        visit_block: VisitBlock | None = None,
        wanted: Callable[[GivenObject], bool] = lambda each: True,
    ) -> None:
        """Goes through the objects that are wanted, of which memory was given, beside their shadows."""
        found = self._follow(visit, visit_block)
        for each in self._objects:
            value, kind = each.value if each.value is not None and wanted(each) else (None, types.none)
            found.value(each.content, value, kind, each.name)


def _is_added_to(given: GivenObject) -> bool:
    return given.role in (Role.SHADOW, Role.MIXED)


def follower(follow: Callable[..., CallerValues], references: References) -> Follow:
    """Follower of memory for derivatives, from one of anything."""
    return lambda visit, visit_block: follow(references, SHADOW, visit, visit_block)


def _meet(given: Any, order: Any, count: int, others: Any, others_order: Any, others_count: int) -> bool:
    """Compiled by Numba: whether a region of one sorted table meets one of another."""
    reached = following = 0
    for i in range(count):
        low, end = given[order[i]], given[order[i] + 1]
        while low < end and following < others_count and others[others_order[following]] < end:
            j = others_order[following]
            if others[j] < others[j + 1]:
                reached = max(reached, others[j + 1])
            following += 1
        if low < end and low < reached:
            return True
    return False


def _shares_otherwise(blocks: Any, order: Any, count: int, _: Any, _order: Any, _count: int) -> bool:
    """Compiled by Numba: true if blocks of a sorted table meet, but not the blocks that their third words point to."""
    high = shift = 0
    for i in range(count):
        k = order[i]
        low, end = blocks[k], blocks[k + 1]
        if low < end and low < high and blocks[k + 2] - low != shift:
            return True
        if low < end and end > high:
            high = end
            shift = blocks[k + 2] - low
    return False
