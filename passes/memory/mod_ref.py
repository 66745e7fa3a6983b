"""Mod/ref: the effects of each instruction of a function on memory, as sets of objects.

Input   where its pointers point, the rules.
Output  `ModRef`, a table of `Access` by instruction, filled as it is asked.
Method  the one place where the `Effects` of a callee become sets of objects; a call of anything else, with a body or
        unknown, may do whatever it likes with what it reaches (`Access.is_opaque`).

    call void @memcpy(ptr %to, ptr %from, …)     reads {from}, writes {to}
    call i32 @callee(ptr %list)                  opaque: reads and writes {list, its items}
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from typing import Final, TypeAlias

from irad.ir.instructions import CallSite, Instruction, Load, Store, accessed
from irad.ir.module import Block
from irad.ir.values import Value
from irad.passes.callees import ELSEWHERE, Callee, effects_of, is_remote, resolve
from irad.passes.memory.objects import PointsTo, reached_by, union
from irad.records import dataclass
from irad.ruleset.interface import Effects
from irad.ruleset.registry import Registry

Masks: TypeAlias = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Access:
    """Effect of one instruction on memory. Sets of objects are masks.

    Attributes:
        reads, writes: objects that it may read and write, in any way.
        is_opaque: a call of which no more is known than what it reaches; it reads and writes all of that.
        frees: objects that a call may free or move.
        captures: where it may store the addresses that it was passed.
        copies: pairs (to, from) of pointers: bytes are copied with the addresses among them.
        moves: pairs (to, from) of sets: the same of items of containers.
        sources: the arguments from whose memory it computes numbers, by position.
        targets: those in whose memory it puts computed numbers.
        numbers_from, numbers_to: the same as sets of objects; of an opaque call all that it reaches.
        made: new objects that its result or its arguments point to.
        unseen: memory of which it is not known what numbers it holds after the call.
        looks_inside: it knows the parts of containers.
    """

    reads: int = 0
    writes: int = 0
    is_opaque: bool = False
    frees: int = 0
    captures: int = 0
    copies: tuple[tuple[Value, Value], ...] = ()
    moves: Masks = ()
    sources: tuple[int, ...] = ()
    targets: tuple[int, ...] = ()
    numbers_from: int = 0
    numbers_to: int = 0
    made: int = 0
    unseen: int = 0
    looks_inside: bool = False


_NOTHING: Final = Access()


@dataclass(frozen=True, slots=True)
class ModRef:
    """The table of one function."""

    points_to: PointsTo
    registry: Registry
    _known: dict[Instruction, Access] = field(default_factory=dict, repr=False)

    def of(self, inst: Instruction) -> Access:
        """Access of an instruction to memory."""
        found = self._known.get(inst)
        if found is None:
            found = self._known[inst] = self._access(inst)
        return found

    def _access(self, inst: Instruction) -> Access:
        if isinstance(inst, CallSite):
            effects = effects_of(self.callee(inst))
            return self._opaque(inst) if effects is None else self._call(inst, effects)
        pointer = accessed(inst)
        if pointer is None:
            return _NOTHING
        mask = self.points_to.mask(pointer)
        return Access(0 if isinstance(inst, Store) else mask, 0 if isinstance(inst, Load) else mask)

    def changed_by(self, blocks: Iterable[Block]) -> int:
        """The objects whose memory may change while blocks run, or be given back, or move."""
        written = freed = 0
        for block in blocks:
            for inst in block.instructions:
                access = self.of(inst)
                written |= access.writes
                freed |= access.frees
        # What is freed takes along what it points to, as a list does its items.
        return self.points_to.overlapping(written | self.points_to.reachable(freed))

    def changing(self, blocks: Iterable[Block], objects: int) -> list[Instruction]:
        """The instructions of blocks that may write to one of some objects, give it back or move it."""
        return [inst for block in blocks for inst in block.instructions if self._may_change(inst, objects)]

    def _may_change(self, inst: Instruction, objects: int) -> bool:
        access = self.of(inst)
        return bool((access.writes | self.points_to.reachable(access.frees)) & objects)

    def callee(self, call: CallSite) -> Callee:
        """The callee of a call."""
        return resolve(call, self.registry)

    def _opaque(self, call: CallSite) -> Access:
        reached = reached_by(call, self.points_to)
        # External code may also have the address of what left this function earlier.
        elsewhere = self.points_to.exposed if ELSEWHERE in call.attributes else 0
        if is_remote(self.callee(call)):
            elsewhere |= self.points_to.lent
        return Access(
            reached, reached | elsewhere, is_opaque=True, numbers_from=reached, numbers_to=reached, unseen=reached
        )

    def _call(self, call: CallSite, effects: Effects) -> Access:
        points_to, arguments = self.points_to, call.arguments

        def pointees(numbers: Iterable[int]) -> int:
            return union(points_to.mask(arguments[number]) for number in numbers)

        moves = tuple((points_to.place(call, to), points_to.place(call, origin)) for to, origin in effects.moves)
        copies = tuple((arguments[to], arguments[source]) for to, source in effects.copies)
        read, written = pointees(effects.reads), pointees(effects.writes)
        lent = points_to.lent if effects.takes_lent else 0
        filled = self._filled(call, effects)
        altered = union(points_to.place(call, place) for place in effects.alters)
        linked = pointees(number for number, _ in (*effects.links, *effects.makes))
        undescribed = union(1 << item.index for item in points_to.members(filled) if item.holds is None)
        computes = not effects.writes_no_floats
        return Access(
            reads=read | lent | union(origin for _, origin in moves),
            writes=written | lent | filled | altered | linked | union(to for to, _ in moves),
            frees=pointees(effects.frees),
            captures=pointees(effects.captures_into) if effects.captures else 0,
            copies=copies if effects.keeps is None else (*copies, (call, arguments[effects.keeps])),
            moves=moves,
            sources=tuple(sorted(effects.reads)),
            targets=tuple(sorted(effects.writes)) if computes else (),
            numbers_from=read,
            numbers_to=written if computes else 0,
            made=points_to.mask(call) | filled if computes else 0,
            unseen=read | written | undescribed if computes and not effects.raw else 0,
            looks_inside=bool(effects.makes or effects.moves or effects.alters or effects.links)
            or effects.header is not None,
        )

    def _filled(self, call: CallSite, effects: Effects) -> int:
        """The new memory whose address a callee stores in that of its arguments."""
        made = (item for item in self.points_to.objects if item.value is call) if effects.fills else ()
        return union(1 << item.index for item in made)
