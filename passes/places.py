"""Places: what was watched and metered, as plain data for messages and reports.

Input   the marks of a generated program, and where in the user's source an instruction comes from.
Output  `Place`s and `TapePlace`s, by number as the generated code names them. Nothing of the module is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from irad.errors import SourceLocation
from irad.ir.instructions import Instruction
from irad.passes.marks import Mark, MarkKind, TapeMark, TapePart

Locate: TypeAlias = Callable[[Instruction], SourceLocation | None]


@dataclass(frozen=True, slots=True)
class Place:
    """A place that is watched.

    Attributes:
        kind: what for.
        words: the operation, with ``{0}`` for the first operand.
        primal: of an operation of an adjoint, what that is the adjoint of; else "".
        location: in the user's source.
        loops: of the loops around it, outermost first, the slot of the iteration number and the place.
        ruled: symbol of the function with a rule that is called; else None.
        in_lane: it is in the body of a parallel loop; the outermost of ``loops`` goes through the lane's chunks.
    """

    kind: MarkKind
    words: str
    primal: str
    location: SourceLocation | None
    loops: tuple[tuple[int, SourceLocation | None], ...]
    ruled: str | None = None
    in_lane: bool = False


@dataclass(frozen=True, slots=True)
class TapeSlot:
    """One value in a unit of a place of the tape.

    Attributes:
        value: its name in the program; "" for links, padding and shadows of local variables.
        location: where the user's source computes it.
        bytes: that it takes.
        storage: "frame", "slab" or "record"; "kept" for memory that a rule asked for.
    """

    value: str
    location: SourceLocation | None
    bytes: int
    storage: str


@dataclass(frozen=True, slots=True)
class TapePlace:
    """A place of the tape: what allocates, and what one unit of it holds."""

    location: SourceLocation | None
    slots: tuple[TapeSlot, ...]


def places_of(marks: Iterable[Mark], locate: Locate) -> tuple[Place, ...]:
    """The places that are watched, by number."""
    known: dict[tuple[Instruction, ...], SourceLocation | None] = {}

    def first(instructions: tuple[Instruction, ...]) -> SourceLocation | None:
        if instructions not in known:
            places = (locate(inst) for inst in instructions)
            known[instructions] = next((place for place in places if place is not None and place.line), None)
        return known[instructions]

    return tuple(
        Place(
            mark.kind,
            mark.words,
            mark.primal,
            _nearest(mark.inst, locate),
            tuple((slot, first(instructions)) for slot, instructions in mark.loops),
            mark.ruled,
            mark.in_lane,
        )
        for mark in marks
    )


def tape_places_of(tape: Iterable[tuple[TapeMark, tuple[TapePart, ...]]], locate: Locate) -> tuple[TapePlace, ...]:
    """The places of the tape, by number; the last is the frame that the caller provides."""
    return tuple(_tape_place(mark, parts, locate) for mark, parts in tape)


def _tape_place(mark: TapeMark, parts: tuple[TapePart, ...], locate: Locate) -> TapePlace:
    place = _nearest(mark.inst, locate) if mark.inst is not None else None
    slots = []
    for part in parts:
        value = part.value
        location = _nearest(value, locate) if isinstance(value, Instruction) else None
        name = str(value.name or "") if value is not None else ""
        slots.append(TapeSlot(name, location or place, part.bytes, part.storage))
    return TapePlace(place, tuple(slots))


def _nearest(inst: Instruction, locate: Locate) -> SourceLocation | None:
    """The place of an instruction; where LLVM has merged several lines, that of one beside it."""
    found = locate(inst)
    if found is not None and found.line:
        return found
    primal = inst
    while primal.origin is not None:
        primal = primal.origin
    if primal.block is None:
        return found
    order = primal.block.instructions
    start = order.index(primal)
    beside = (locate(each) for each in (*order[start + 1 :], *reversed(order[:start])))
    return next((place for place in beside if place is not None and place.line), found)
