"""One way through a value and its memory, in generated code: a visitor, and the cursor that it moves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final, assert_never, cast

from llvmlite.ir import Value
from numba.core import cgutils

from irad.frontend.emit import INTP, Emit
from irad.frontend.memory.containers import Reader
from irad.frontend.memory.regions import ShadowAt
from irad.frontend.values import tree
from irad.records import dataclass


@dataclass(frozen=True, slots=True)
class Given:
    """Value that the caller gave for a part of a value.

    Attributes:
        content: contents of its type.
        place: where it lies.
        name: of the part, for messages.
    """

    content: tree.Content
    place: Any
    name: str


@dataclass(frozen=True, slots=True)
class Cursor:
    """Place of a part of a value: an address, or None if a visitor has no use for it.

    Attributes:
        value: in the value itself.
        shadow: in the shadow of that, which is congruent with it.
        given: the corresponding value from the caller.
    """

    value: Any = None
    shadow: Any = None
    given: Given | None = None

    def part(self, emit: Emit, offset: int) -> Cursor:
        """The part at an offset of value and shadow."""
        value = None if self.value is None else emit.at(self.value, offset)
        return Cursor(value, moved(emit, self.shadow, offset), self.given)

    def item(self, emit: Emit, content: tree.ListContent, index: Value) -> Cursor:
        """An item of a list whose first item is here."""
        given = self.given
        if given is not None:
            assert isinstance(given.content, tree.ListContent)
            place = emit.builder.gep(given.place, [emit.builder.mul(index, INTP(given.content.stride))])
            given = Given(given.content.item, place, f"{given.name}[…]")
        offset = emit.builder.mul(index, INTP(content.stride))
        value = None if self.value is None else emit.builder.gep(self.value, [offset])
        return Cursor(value, moved(emit, self.shadow, offset), given)


NOWHERE: Final = Cursor()
"""The cursor of what is not a part of something else: its notes say where it lies."""


def moved(emit: Emit, shadow: Any, offset: Any) -> Any:
    """An address in a shadow, plus an offset in bytes; None stays None."""
    number = INTP(offset) if isinstance(offset, int) else offset
    match shadow:
        case None:
            return None
        case ShadowAt():
            return shadow if offset == 0 else shadow.plus(emit.builder, number)
        case _:
            return emit.builder.gep(shadow, [number])


class Visitor(Reader):
    """Goes through the parts of a value: a method for each kind, of which those of references are to be overridden."""

    def visit(self, content: tree.Content, at: Cursor = NOWHERE) -> Any:
        """Finds the method for a part."""
        known = cast("tree.AnyContent", content)
        match known:
            case _ if not self.enters(known):
                return self.visit_other(known, at)
            case tree.NumberContent():
                return self.visit_number(known, at)
            case tree.ArrayContent():
                return self.visit_array(known, at)
            case tree.TupleContent():
                return self.visit_tuple(known, at)
            case tree.InstanceContent() | tree.ListContent() | tree.DictionaryContent():
                return self.visit_reference(known, at)
            case tree.ConstantContent() | tree.OptionalContent() | tree.RecordContent() | tree.UnknownContent():
                return self.visit_other(known, at)
            case _:
                assert_never(known)

    def visit_reference(self, content: tree.Reference, at: Cursor) -> Any:
        """Finds the method for an object."""
        match content:
            case tree.InstanceContent():
                return self.visit_instance(content, at)
            case tree.ListContent():
                return self.visit_list(content, at)
            case tree.DictionaryContent():
                return self.visit_dictionary(content, at)

    def enters(self, content: tree.Content) -> bool:
        """True if a part is visited by its kind: if it has a derivative."""
        return tree.has_derivative(content)

    def visit_number(self, content: tree.NumberContent, at: Cursor) -> Any:
        """A number."""

    def visit_array(self, content: tree.ArrayContent, at: Cursor) -> Any:
        """An array."""

    def visit_tuple(self, content: tree.TupleContent, at: Cursor) -> Any:
        """A tuple: its parts, one after the other."""
        self.visit_parts(content.parts, at)

    def visit_instance(self, content: tree.InstanceContent, at: Cursor) -> Any:
        """An instance of a jitclass or a `StructRef`."""
        raise NotImplementedError

    def visit_list(self, content: tree.ListContent, at: Cursor) -> Any:
        """A reflected or typed list."""
        raise NotImplementedError

    def visit_dictionary(self, content: tree.DictionaryContent, at: Cursor) -> Any:
        """A typed dictionary."""
        raise NotImplementedError

    def visit_other(self, content: tree.Content, at: Cursor) -> Any:
        """Visits a part that has no derivative, or points to no other memory."""

    def visit_parts(self, parts: tuple[tree.Content, ...], at: Cursor) -> None:
        """Visits the parts of a tuple or instance that begins here."""
        for part in parts:
            self.visit(part, at.part(self._emit, part.offset))

    @contextmanager
    def _each_item(
        self,
        content: tree.ListContent,
        count: Any,
        first: Cursor,
        around: Callable[[Any], AbstractContextManager[None]],
    ) -> Iterator[Cursor]:
        """A loop over the items of a list.

        Args:
            content: the list.
            count: number of items.
            first: where the first one is.
            around: surrounds what is done with an item, from its number.
        """
        with cgutils.for_range(self._builder, count, intp=INTP) as loop, around(loop.index):
            yield first.item(self._emit, content, loop.index)
