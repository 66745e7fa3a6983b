"""Content of the tape, value by value, and its size."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from irad.ir.instructions import CallSite, Instruction
from irad.ir.module import Function
from irad.ir.values import Value
from irad.passes.generated import Generated, GeneratedPair
from irad.passes.instrument.marks import TapeMark, TapePart
from irad.passes.instrument.meter import BY_POINTER
from irad.passes.instrument.watched import TapePlaces, TapeSlot
from irad.passes.variant import Variant
from irad.report.model import FunctionReport, Report, Storage, TapeEntry
from irad.report.words import in_loops

# Sums.


@dataclass(frozen=True, slots=True)
class Term:
    """Entries that are filled equally often.

    Attributes:
        function: index in the report.
        storage: FRAME outside loops, SLAB and RECORD in them, KEPT.
        loops: the lines of the loops around, outermost first.
        bytes: in each iteration, or call; None for as much as the program asks for.
        values: number of values.
        total: bytes in the call that was measured; None where none was.
    """

    function: int
    storage: Storage
    loops: tuple[int, ...]
    bytes: int | None
    values: int
    total: int | None


def terms(report: Report) -> list[Term]:
    """All entries of a report, those together that are filled equally often; the largest first."""
    found: dict[tuple[int, Storage, tuple[int, ...]], list[TapeEntry]] = {}
    for number, entry in report.tape:
        found.setdefault((number, entry.storage, entry.loops), []).append(entry)
    made = [_term(*key, entries) for key, entries in found.items()]
    return sorted(made, key=lambda term: (-(term.total or 0), -len(term.loops), -(term.bytes or 0)))


def _term(function: int, storage: Storage, loops: tuple[int, ...], entries: list[TapeEntry]) -> Term:
    once = {entry.value or entry.name: entry.bytes or 0 for entry in entries}  # a frame is the same in each call
    sizes = once.values() if storage is Storage.FRAME else [entry.bytes or 0 for entry in entries]
    size = None if storage is Storage.KEPT else sum(sizes)
    return Term(function, storage, loops, size, sum(bool(entry.value) for entry in entries), total(entries))


def total(entries: Iterable[TapeEntry]) -> int | None:
    """Bytes of some entries in the call that was measured; None where none was."""
    counts = [entry.total for entry in entries]
    return None if None in counts else sum(count for count in counts if count is not None)


def tape_total(report: Report) -> int | None:
    """Bytes of the whole tape in the call that was measured; None where none was."""
    return total(entry for _, entry in report.tape)


def formula(report: Report) -> list[str]:
    """The size of the tape as a sum: bytes per call and per iteration of each loop; what arrays take is not known."""
    return [_in_words(term, report.functions) for term in sorted(terms(report), key=_order)]


def _order(term: Term) -> tuple[int, int, int]:
    return len(term.loops), term.function, list(Storage).index(term.storage)


def _in_words(term: Term, functions: tuple[FunctionReport, ...]) -> str:
    size = "what arrays and rules need" if term.bytes is None else f"{term.bytes} B"
    return f"{size} per {_often(term, functions[term.function])}"


def _often(term: Term, function: FunctionReport) -> str:
    if term.loops:
        return f"iteration of {in_loops(term.loops)}"
    if function.is_lane:
        return f"{'thread' if term.storage is Storage.FRAME else 'chunk'} of the {function.name}"
    return f"call of {function.name}" if term.function else "call"


def counted(function: FunctionReport, units: Sequence[int]) -> FunctionReport:
    """A function with what one call has taken.

    Args:
        function: without that.
        units: number of units of each place in the call.
    """
    return replace(function, tape=tuple(sorted((_counted(entry, units) for entry in function.tape), key=weight)))


def _counted(entry: TapeEntry, units: Sequence[int]) -> TapeEntry:
    count = sum(units[site] for site in entry.sites)
    if entry.bytes is None:
        return replace(entry, slots=sum(units[site] > 0 for site in entry.sites), total=count)
    return replace(entry, slots=count, total=count * entry.bytes)


def weight(entry: TapeEntry) -> tuple[int, int, bool, int]:
    """A key by which large entries come first."""
    return -(entry.total or 0), -len(entry.loops), entry.bytes is not None, -(entry.bytes or 0)


# From what was noted of a tape to what a report says about it.
#
# Input   a generated program; where its instructions come from.
# Output  `TapeEntry`s, by variant of a function.

Spell = Callable[[Variant, Value], tuple[str, str, str]]
"""Name in the program, meaning in the source, and reason for saving, of a value of a variant's forward sweep."""


@dataclass(eq=False)
class TapeReader:
    """Reads all that one program puts on the tape.

    Attributes:
        spell: names values.
    """

    generated: Generated
    places: TapePlaces
    spell: Spell

    def entries(self) -> Mapping[Variant, tuple[TapeEntry, ...]]:
        """The entries of each function, those first that loops repeat most."""
        found: dict[Variant, dict[object, TapeEntry]] = {}
        owners = {mark: made for made in self.generated.pairs for mark in made.tape}
        for number, mark in enumerate(self.generated.program.tape_marks):
            if number == BY_POINTER and not self.generated.program.tables:
                continue
            for part, slot in self.places.slots(mark):
                owner, entry = self._entry(number, mark, part, slot, owners.get(mark))
                table = found.setdefault(owner, {})
                key = part.storage, part.value or (part.bytes, mark.inst), slot.location
                if part.bytes:
                    before = table[key].sites if key in table else ()  # in the frame of a callee, by each call of it
                    table[key] = replace(entry, sites=(*before, number))
        return {variant: tuple(sorted(table.values(), key=weight)) for variant, table in found.items()}

    def _entry(
        self, number: int, mark: TapeMark, part: TapePart, slot: TapeSlot, made: GeneratedPair | None
    ) -> tuple[Variant, TapeEntry]:
        """An entry without counts, and the function that it belongs to."""
        owner = self._owner(mark, part, made)
        loops = self._lines(mark) if made is not None else ()
        if number == BY_POINTER:
            why = "functions that are called through pointers have tapes of their own"
            return owner, TapeEntry(
                "", "", None, Storage.KEPT, loops, slot.location, why, "functions called through pointers"
            )
        storage = Storage(part.storage)
        value = ""
        if part.value is None:
            name, why = _REST[storage]
            if mark.frame_of is not None and part in mark.parts:
                name, why = "the arguments of a thread", "its arguments and its share of the iterations, in both sweeps"
        elif storage is Storage.KEPT:
            name, why = _kept(mark)
        else:
            value, name, why = self.spell(owner, part.value)
            loop = self.places.loop_of(part.value)
            place = self.places.loops.of(loop) if loop is not None else None
            if place is not None:
                name = f"tape of the loop of line {place.line}"
        type_ = str(part.value.type) if part.value is not None else ""
        size = None if storage is Storage.KEPT else part.bytes
        return owner, TapeEntry(value, type_, size, storage, loops, slot.location, why, name)

    def _owner(self, mark: TapeMark, part: TapePart, made: GeneratedPair | None) -> Variant:
        """The function that an entry belongs to: of a frame that of the callee, of its own loops itself."""
        known = {pair.pair.variant for pair in self.generated.pairs}
        of_frame = mark.frame_of if part not in mark.parts else None
        for variant in (of_frame, made.pair.variant if made is not None else None, mark.frame_of):
            if variant is not None:
                lane = replace(variant, is_lane=True)
                owner = variant if variant in known else lane  # the frame of a parallel loop counts for its lanes
                if owner in known:
                    return owner
        return self.generated.pairs[0].pair.variant

    def _lines(self, mark: TapeMark) -> tuple[int, ...]:
        """The loops around, by their lines; of the frame of a callee those around the call."""
        return tuple(place.line if place is not None else 0 for place in self.places.loops.around(mark.loop))


_REST = {
    Storage.FRAME: ("rest of the frame", "shadows of local variables, alignment"),
    Storage.RECORD: ("link", "each iteration finds the one before by it; alignment"),
    Storage.SLAB: ("alignment", "each array begins at a multiple of its size"),
    Storage.KEPT: ("what rules keep", "a rule needs it in the reverse sweep"),
}


def _kept(mark: TapeMark) -> tuple[str, str]:
    """The purpose of memory whose size only the program knows."""
    call = _primal_call(mark.inst)
    callee = call.callee if call is not None else None
    if isinstance(callee, Function) and str(callee.name).startswith("NRT_"):
        return "shadow of the array made here", "it holds the cotangents of an array that the function makes"
    return "what a rule keeps", "a rule needs it in the reverse sweep"


def _primal_call(inst: Instruction | None) -> CallSite | None:
    while inst is not None and inst.origin is not None:
        inst = inst.origin
    return inst if isinstance(inst, CallSite) else None
