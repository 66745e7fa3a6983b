"""The lines of the user's source with everything that is known about them, or that is refused there."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from irad.errors import IradError, UnsupportedProgram
from irad.report.model import FunctionReport, LineFacts, Refusal, Storage
from irad.report.rule_origin import INACTIVE
from irad.report.source import UserSource

_SUPPORT: Final = ("NRT_", "nrt_", "numba_", "irad.", "llvm.mem")

Variables = Mapping[int, tuple[frozenset[str], frozenset[str]]]


def line_facts(
    source: UserSource, functions: Collection[FunctionReport], variables: Iterable[Variables]
) -> tuple[LineFacts, ...]:
    """Facts for every line of the source, in order."""
    per_call, per_iteration, totals = (Counter[int]() for _ in range(3))
    rules: dict[int, dict[str, None]] = defaultdict(dict)
    active: dict[int, set[str]] = defaultdict(set)
    constant: dict[int, set[str]] = defaultdict(set)
    keeps: set[int] = set()
    entries = [entry for function in functions for entry in function.tape]
    for entry in entries:
        if entry.place is None or not source.is_here(entry.place):
            continue
        line = entry.place.line
        totals[line] += entry.total or 0
        if entry.bytes is None:
            keeps.add(line)
        else:
            (per_call if entry.storage is Storage.FRAME else per_iteration)[line] += entry.bytes
    for value in (value for function in functions for value in function.values):
        known = source.line_of(value.places)
        if value.rule is not None and known is not None and not _is_support(value.rule):
            rules[known][value.rule] = None
    for found in variables:
        for number, (some, others) in found.items():
            active[number] |= some
            constant[number] |= others
    is_measured = all(entry.total is not None for entry in entries)
    return tuple(
        LineFacts(
            line=number,
            text=source.text(number),
            active=tuple(sorted(active[number])),
            constant=tuple(sorted(constant[number] - active[number])),
            saved_per_call=per_call[number],
            saved_per_iteration=per_iteration[number],
            rules=tuple(rules[number]),
            saved=totals[number] if is_measured else None,
            keeps=number in keeps,
        )
        for number in source.numbers
    )


def refusals(source: UserSource, error: IradError) -> tuple[Refusal, ...]:
    """Everything that is refused, each with its line of the source."""
    found = dict[str, Refusal]()
    for each in error.errors if isinstance(error, UnsupportedProgram) else (error,):
        places = [place for place in (each.location, *each.callers) if place is not None]
        found.setdefault(str(each), Refusal(each.problem, str(each), source.line_of(places)))
    return tuple(found.values())


def _is_support(rule: str) -> bool:
    """Whether a rule is for run-time support that no line of the source names: memory, reference counts, containers."""
    return rule.endswith(INACTIVE) or rule.startswith(_SUPPORT)
