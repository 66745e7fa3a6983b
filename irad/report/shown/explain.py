"""Answers to "why?": of a line of the source, of a value of the program, of a Python variable, of the tape.

Input   a `Report`, a question: a line (`13`), a value (`%.190`), a variable (`total`), or `tape`.
Output  lines of text: why active, which rule, what memory, why saved and not recomputed, with the costs that decided.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from irad.errors import SignatureError, SourceLocation
from irad.report.model import FunctionReport, LineFacts, Report, Storage, TapeEntry, ValueFacts
from irad.report.shown.amounts import format_bytes
from irad.report.shown.overview import often
from irad.report.tape.totals import tape_total

_LONGEST_CHAIN = 8


def explain(report: Report, question: str) -> str:
    """What the report knows of something.

    Raises:
        SignatureError: there is no such line, value or variable.
    """
    asked = question.strip()
    if asked == "tape":
        return "\n".join(_tape(report))
    line = re.fullmatch(r"(?:(.*):)?(\d+)", asked)
    if line is not None and (line[1] is None or Path(line[1]).name == Path(report.place.file).name):
        return "\n".join(_line(report, int(line[2])))
    values = [(f, v) for f in report.functions for v in f.values if v.name and v.name.lstrip("%") == asked.lstrip("%")]
    if values:
        return "\n\n".join("\n".join(_value(report, function, value)) for function, value in values)
    named = [(f, v) for f in report.functions for v in f.values if asked in v.variables]
    if named or any(asked in (*line.active, *line.constant) for line in report.lines):
        return "\n".join(_variable(report, asked, named))
    raise SignatureError(
        f"{question!r} is not a line, value or variable of {report.function}",
        "(a) ask for a line of the function, as 13, or (b) for a value of the stage prepared, as %.190, or "
        "(c) for a Python variable or (d) for tape",
        "reasons are kept by line, by value and by variable of this function",
        location=report.place,
    )


def _line(report: Report, number: int) -> Iterator[str]:
    facts = next((line for line in report.lines if line.line == number), None)
    if facts is None:
        lines = [line.line for line in report.lines]
        raise SignatureError(
            f"line {number} is not in {report.function}",
            f"ask for a line from {lines[0]} to {lines[-1]} of {report.place.file}",
            "reasons are kept for the lines of this function",
            location=report.place,
        )
    yield f"{Path(report.place.file).name}:{number}  {facts.text.strip()}"
    yield f"  active: {', '.join(facts.active) or 'nothing'}; constant: {', '.join(facts.constant) or 'nothing'}"
    yield from _saved_by(report, facts)
    line_of = report.line_finder()
    for function in report.functions:
        here = [value for value in function.values if line_of(value.places) == number]
        shown = [value for value in here if value.is_active or value.is_saved or value.rule is not None]
        if shown:
            yield f"  in {function.name}, {function.variant}:"
        for value in shown:
            yield from (f"    {text}" for text in _value(report, function, value, short=True))
        if len(shown) < len(here):
            yield f"    and {len(here) - len(shown)} constant values of which nothing is saved"


def _saved_by(report: Report, facts: LineFacts) -> Iterator[str]:
    whole = tape_total(report)
    if facts.saved is not None and whole is not None:
        yield f"  saves {format_bytes(facts.saved)} of {format_bytes(whole)} in this call"
    elif facts.saved_per_iteration or facts.saved_per_call or facts.keeps:
        parts = [f"{facts.saved_per_iteration} bytes per iteration"] * bool(facts.saved_per_iteration)
        parts += [f"{facts.saved_per_call} bytes per call"] * bool(facts.saved_per_call)
        parts += ["the shadow of an array, or what a rule keeps"] * facts.keeps
        yield f"  saves {', '.join(parts)}"
    else:
        yield "  saves nothing"
    for line in _heaviest(report):
        if facts not in _heaviest(report):
            yield f"  most is saved by line {line.line}: {line.text.strip()}"


def _heaviest(report: Report) -> list[LineFacts]:
    """The lines that make the tape large: as measured, else those that loops repeat most."""

    def weight(line: LineFacts) -> tuple[int, int, bool, int, int]:
        return line.saved or 0, _depth(report, line), line.keeps, line.saved_per_iteration, line.saved_per_call

    lines = [line for line in report.lines if line.saved_per_iteration or line.saved_per_call or line.keeps]
    most = max(map(weight, lines), default=None)
    return [line for line in lines if weight(line) == most]


def _depth(report: Report, line: LineFacts) -> int:
    return max((len(e.loops) for _, e in report.tape if e.place is not None and e.place.line == line.line), default=0)


def _value(report: Report, function: FunctionReport, value: ValueFacts, *, short: bool = False) -> Iterator[str]:
    kind = f" {value.type}" if value.name else ""
    yield f"{value.name or 'store'}:{kind}, {value.operation}{_at(value.places)}"
    yield f"  {value.activity}"
    if value.is_active and not short:
        yield from (f"    {text}" for text in _chain(function, value, _sources, "depends on"))
        yield from (f"    {text}" for text in _chain(function, value, _users, "reaches"))
    if value.rule is not None:
        origin = f", written in {_short(value.rule_origin)}" if value.rule_origin is not None else ""
        yield f"  rule: {value.rule}{origin}"
    yield from (f"  {text}" for text in value.memory)
    if value.plan and not (short and value.plan.startswith("not needed")):
        yield f"  {value.plan}"
    if not short:
        yield from (f"  on the tape: {text}" for text in _entries(function, value))


def _at(places: tuple[SourceLocation, ...]) -> str:
    known = [place for place in places if place.line]
    if not known:
        return ""
    inlined = "".join(f", inlined at {_short(place)}" for place in known[1:])
    return f" at {_short(known[0])}{inlined}"


def _short(place: SourceLocation) -> str:
    return f"{Path(place.file).name}:{place.line}"


def _entries(function: FunctionReport, value: ValueFacts) -> Iterator[str]:
    for entry in function.tape:
        if entry.value == value.name:
            yield _stored(entry)


def _stored(entry: TapeEntry) -> str:
    where = {Storage.FRAME: "in the frame", Storage.KEPT: "kept"}.get(entry.storage, f"in a {entry.storage.value}")
    size = "as many bytes as it has" if entry.bytes is None else f"{entry.bytes} bytes"
    total = f"; {format_bytes(entry.total)} in this call" if entry.total is not None else ""
    return f"{size} {where}, {often(entry)}{total}"


def _chain(
    function: FunctionReport,
    value: ValueFacts,
    neighbours: Callable[[FunctionReport, ValueFacts], list[ValueFacts]],
    verb: str,
) -> Iterator[str]:
    """The shortest way through active values to where none is left in the function: a load, a store, an argument."""
    before: dict[int, ValueFacts] = {}
    pending, seen = [value], {id(value)}
    while pending:
        current = pending.pop(0)
        following = [v for v in neighbours(function, current) if v.is_active]
        if not following and current is not value:
            yield from _told(verb, _path(before, current, value))
            return
        for one in following:
            if id(one) not in seen:
                seen.add(id(one))
                before[id(one)] = current
                pending.append(one)


def _path(before: dict[int, ValueFacts], end: ValueFacts, start: ValueFacts) -> list[ValueFacts]:
    path = [end]
    while path[-1] is not start:
        path.append(before[id(path[-1])])
    return path[-2::-1]


def _told(verb: str, path: list[ValueFacts]) -> Iterator[str]:
    hidden = len(path) - _LONGEST_CHAIN
    shown = path if hidden <= 0 else [*path[: _LONGEST_CHAIN // 2], *path[-_LONGEST_CHAIN // 2 :]]
    for number, step in enumerate(shown):
        if hidden > 0 and number == _LONGEST_CHAIN // 2:
            yield f"… {hidden} more"
        name = f"{step.name}, " if step.name else ""
        yield f"{verb if number == 0 else 'and so ' + verb} {name}{step.operation}{_at(step.places[:1])}"


def _sources(function: FunctionReport, value: ValueFacts) -> list[ValueFacts]:
    if value.operation.startswith("load from"):
        return []
    return [other for other in function.values if other.name in value.operands]


def _users(function: FunctionReport, value: ValueFacts) -> list[ValueFacts]:
    return [other for other in function.values if value.name and value.name in other.operands]


def _variable(report: Report, name: str, values: list[tuple[FunctionReport, ValueFacts]]) -> Iterator[str]:
    active = [line.line for line in report.lines if name in line.active]
    constant = [line.line for line in report.lines if name in line.constant]
    yield f"{name}: a variable of {report.function}"
    if active:
        yield f"  active on line {_numbers(active)}"
    if constant:
        yield f"  constant on line {_numbers(constant)}"
    for function, value in values:
        yield from (f"  {text}" for text in _value(report, function, value))


def _numbers(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers))


def _tape(report: Report) -> Iterator[str]:
    heaviest = _heaviest(report)
    whole = tape_total(report)
    if whole is not None:
        yield f"the tape of this call takes {format_bytes(whole)}"
    for line in heaviest:
        yield f"line {line.line} makes the tape large: {line.text.strip()}"
    if not heaviest:
        yield f"no line of {report.function} saves anything"
    for function in report.functions:
        yield f"  {function.name}, {function.variant}"
        for entry in function.tape:
            place = f" (line {entry.line})" if entry.line is not None else ""
            value = f" {entry.value}" if entry.value else ""
            yield f"    {entry.name}{place}{value}: {_stored(entry)}"
            yield f"        {entry.why}"
