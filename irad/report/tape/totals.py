"""Sums over the entries of a tape: of a call that was measured, or as a formula in the iterations of loops."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from irad.report.model import FunctionReport, Report, Storage, TapeEntry
from irad.report.words import in_loops


@dataclass(frozen=True, slots=True)
class Term:
    """Entries that are filled equally often.

    Attributes:
        function: index in the report.
        storage: FRAME outside loops, SLAB and RECORD in them, KEPT.
        loops: the lines of the loops around, outermost first.
        bytes: in each iteration, or call; None for as much as the program asks for.
        values: how many values.
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
        units: how many units each place had in the call.
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
