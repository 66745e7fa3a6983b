"""Memory that the caller gives for derivatives with respect to objects, read before the reverse sweep, written after.

The shadows of objects are made by the call all the same, since the function may change what an object leads to. They
start as copies of the memory that was given, and are copied back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from llvmlite.ir import IRBuilder, PointerType
from numba.core import types
from numba.core.base import BaseContext

from irad.frontend.calls.annotations import Role
from irad.frontend.memory.given_values import SHADOW, GivenValues, Visit, VisitBlock, put, take
from irad.frontend.memory.references import References
from irad.frontend.memory.regions import INTP, Owner, Regions
from irad.frontend.memory.shadows import Extent
from irad.frontend.values.tree import Reference

Follow = Callable[[Visit | None, VisitBlock | None], GivenValues]


@dataclass(frozen=True)
class GivenObject:
    """What is given for an object among the arguments.

    Attributes:
        content: the object.
        name: of it, for messages.
        role: of the argument.
        value: the memory for its derivative, and its Numba type; None where the call makes that.
    """

    content: Reference
    name: str
    role: Role
    value: tuple[Any, Any] | None


class GivenShadows:
    """The memory of one direction of a call.

    Args:
        context: Numba's target context.
        builder: of llvmlite.
        references: of the call.
        objects: all that are differentiated, in the order in which they were walked through.
        follow: makes what follows them.
    """

    def __init__(
        self,
        context: BaseContext,
        builder: IRBuilder,
        references: References,
        objects: Sequence[GivenObject],
        follow: Follow,
    ) -> None:
        self._context, self._builder, self._references = context, builder, references
        self._objects, self._follow = objects, follow
        self._names = " and ".join(each.name for each in objects if each.value is not None)

    def check(self, arguments: Regions, arrays: Sequence[Extent], others: Sequence[GivenShadows]) -> None:
        """Ends the call where the memory shares something with an argument, or does not share what the argument shares.

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
        remedy = "pass a shadow that shares what the argument shares and nothing else, as irad.data.make_zero makes it"
        self._references.refuse(condition, what, remedy, reason)

    def _blocks(self, lanes: Sequence[GivenShadows], arrays: Sequence[Extent], *, by_shadow: bool) -> Regions:
        """A table of all blocks, and in the third word where the shadow of each is, or the other way round."""
        build, table = self._builder, Regions(self._context, self._builder)

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
        """Puts what the memory holds into the shadows."""
        if any(map(_is_added_to, self._objects)):
            self.visit(put, wanted=_is_added_to)

    def take(self) -> None:
        """Puts the derivatives into the memory."""
        if self._objects:
            self.visit(take)

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


def follower(follow: Callable[..., GivenValues], references: References) -> Follow:
    """What follows memory for derivatives, from what follows anything."""
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
    """Compiled by Numba: whether blocks of a sorted table meet, and what the third word leads to does not."""
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
