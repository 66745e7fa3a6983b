"""Places that are watched and metered, as plain data for messages and reports.

Input   the marks of a generated program, and where in the user's source its instructions come from.
Output  `WatchedPlace`s and `TapePlace`s, by number as the generated code names them. Nothing of the module is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field

from irad.errors import SourceLocation
from irad.ir.instructions import Instruction
from irad.ir.loops import Loop
from irad.ir.values import Value
from irad.passes.instrument.loop_sources import LoopSources
from irad.passes.instrument.marks import FrameParts, Mark, TapeMark, TapePart, WatchedOperation, parts_of
from irad.passes.instrument.source_map import SourceMap
from irad.passes.variant import Variant
from irad.records import dataclass


@dataclass(frozen=True, slots=True)
class WatchedPlace(WatchedOperation):
    """A place that is watched.

    Attributes:
        location: in the user's source.
        loops: of the loops around it, outermost first, the slot of the iteration number and the place.
    """

    location: SourceLocation | None
    loops: tuple[tuple[int, SourceLocation | None], ...]


@dataclass(frozen=True, slots=True)
class TapeSlot:
    """One value in a unit of a place of the tape.

    Attributes:
        value: its name in the program; "" for links, padding and shadows of local variables.
        location: where the user's source computes it.
        bytes: that it takes.
        storage: "frame", "slab" or "record"; "kept" for memory whose size only the program knows.
    """

    value: str
    location: SourceLocation | None
    bytes: int
    storage: str


@dataclass(frozen=True, slots=True)
class TapePlace:
    """A place of the tape, with its allocation and the contents of one unit."""

    location: SourceLocation | None
    slots: tuple[TapeSlot, ...]


def places_of(marks: Iterable[Mark], user: SourceMap) -> tuple[WatchedPlace, ...]:
    """The places that are watched, by number."""
    loops = LoopSources(user)
    return tuple(
        WatchedPlace(
            mark.kind,
            mark.words,
            mark.primal,
            mark.ruled,
            mark.in_lane,
            user.nearest(mark.inst),
            tuple((slot, loops.of(loop)) for slot, loop in mark.loops),
        )
        for mark in marks
    )


@dataclass(eq=False)
class TapePlaces:
    """Locates the contents of the tape of one program.

    Attributes:
        marks: its places, by number; the last is the frame that the caller provides.
        frames: contents of the frames of pairs.
    """

    marks: Sequence[TapeMark]
    frames: Mapping[Variant, FrameParts]
    user: SourceMap
    loops: LoopSources = field(init=False)

    def __post_init__(self) -> None:
        self.loops = LoopSources(self.user)
        self._storage = {mark.inst: mark.loop for mark in self.marks if mark.inst is not None and _is_storage(mark)}

    def all(self) -> tuple[TapePlace, ...]:
        """All places, by number."""
        return tuple(TapePlace(self.location(mark), tuple(slot for _, slot in self.slots(mark))) for mark in self.marks)

    def location(self, mark: TapeMark) -> SourceLocation | None:
        """Line at which a place of the tape allocates; for the caller's frame, that of the definition."""
        if _is_storage(mark) and mark.loop is not None:
            return self.loops.of(mark.loop)
        found = self.user.nearest(mark.inst) if mark.inst is not None else None
        frame = self.frames.get(mark.frame_of) if mark.frame_of is not None else None
        if (found is not None and found.line) or frame is None:
            return found
        return self.user.launch(frame.function) or self.user.definition(frame.function)

    def slots(self, mark: TapeMark) -> Iterator[tuple[TapePart, TapeSlot]]:
        """Slots of a unit of a place, and where they are computed; other parts count where they are allocated."""
        place = self.location(mark)
        for part in parts_of(mark, self.frames):
            found = self._location_of(part.value)
            name = str(part.value.name or "") if part.value is not None else ""
            yield part, TapeSlot(name, found if found is not None and found.line else place, part.bytes, part.storage)

    def loop_of(self, value: Value) -> Loop | None:
        """The loop whose storage a value is; None for all others."""
        return self._storage.get(value) if isinstance(value, Instruction) else None

    def _location_of(self, value: Value | None) -> SourceLocation | None:
        if not isinstance(value, Instruction):
            return None
        loop = self.loop_of(value)
        return self.loops.of(loop) if loop is not None else self.user.nearest(value)


def _is_storage(mark: TapeMark) -> bool:
    return any(part.storage in ("slab", "record") for part in mark.parts)
