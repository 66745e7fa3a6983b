"""The lines of the user's source with all that is known of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from irad.report.model import FunctionReport, LineFacts, Storage
from irad.report.rule_origin import INACTIVE
from irad.report.source import UserSource

Variables = Mapping[int, tuple[frozenset[str], frozenset[str]]]


def line_facts(
    source: UserSource, functions: Iterable[FunctionReport], variables: Iterable[Variables]
) -> tuple[LineFacts, ...]:
    """Facts for every line of the source, in order."""
    per_call: dict[int, int] = {}
    per_iteration: dict[int, int] = {}
    rules: dict[int, dict[str, None]] = {}
    for function in functions:
        for entry in function.tape:
            if entry.place is not None and source.is_here(entry.place):
                table = per_call if entry.storage is Storage.FRAME else per_iteration
                table[entry.place.line] = table.get(entry.place.line, 0) + entry.bytes
        for value in function.values:
            line = source.line_of(value.places)
            if value.rule is not None and line is not None and not value.rule.endswith(INACTIVE):
                rules.setdefault(line, {})[value.rule] = None
    active: dict[int, set[str]] = {}
    constant: dict[int, set[str]] = {}
    for found in variables:
        for line, (some, others) in found.items():
            active.setdefault(line, set()).update(some)
            constant.setdefault(line, set()).update(others)
    return tuple(
        LineFacts(
            line=number,
            text=source.text(number),
            active=tuple(sorted(active.get(number, ()))),
            constant=tuple(sorted(constant.get(number, set()) - active.get(number, set()))),
            saved_per_call=per_call.get(number, 0),
            saved_per_iteration=per_iteration.get(number, 0),
            rules=tuple(rules.get(number, ())),
        )
        for number in source.numbers
    )
