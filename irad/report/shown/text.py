"""A report as text and as JSON."""

from __future__ import annotations

import dataclasses
import difflib
import enum
import json
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from irad.errors import SignatureError, SourceLocation
from irad.report.model import (
    Addition,
    FunctionReport,
    KernelCode,
    LineFacts,
    Report,
    StageText,
    Storage,
    TapeEntry,
    TextLine,
    ValueFacts,
)
from irad.report.shown.amounts import format_bytes, short_signature, wrapped_code
from irad.report.tape_size import formula, tape_total, weight
from irad.report.words import in_loops

# What a report says at a glance, as text that fits a terminal: the source with notes, the functions, the tape.

WIDTH: Final = 100
"""Columns where nothing says how many there are."""

_ENTRIES_SHOWN: Final = 10
_NARROWEST: Final = 26  # columns for notes beside the source
_BEFORE: Final = 19  # columns in front of the source
_PRICE: Final = re.compile(r"^saved: .*? \(cost [^)]*\): ")


def overview(report: Report, width: int = WIDTH) -> str:
    """The overview in ``width`` columns; only the path of the file may be longer."""
    parts = [_head(report, width), annotated_source(report, width), _functions(report, width), _tape(report, width)]
    return "\n\n".join("\n".join(part) for part in parts) + "\n"


def _head(report: Report, width: int) -> Iterator[str]:
    yield from _wrapped(f"{report.function}{short_signature(report.signature)}", width, "", "    ")
    yield f"  at    {report.place.file}:{report.place.line}"
    total = tape_total(report)
    if report.functions:
        size = f"{format_bytes(total)} in this call" if total is not None else " + ".join(formula(report)) or "empty"
        yield from _wrapped(f"  tape  {size}", width, "", "        ")
    for each in report.additions:
        yield from _wrapped(f"  adds  {addition_words(each)}", width, "", "        ")
    for code in report.code:
        yield from _wrapped(f"  {code.arch:8}{code_words(code)}", width, "", "        ")
    if report.note:
        yield from _wrapped(f"  note  {report.note}", width, "", "        ")


def addition_words(addition: Addition) -> str:
    """Words for the way in which a kernel's derivative adds to one shadow."""
    lines = f" (line{'s' * (len(addition.lines) > 1)} {', '.join(map(str, addition.lines))})" if addition.lines else ""
    return f"to the derivative of {addition.memory} {addition.how}, since {addition.why}{lines}"


def code_words(code: KernelCode) -> str:
    """Words for the needs of a kernel's derivative on a GPU."""
    parts = [f"{code.registers} registers (the kernel {code.primal_registers})"]
    if code.stack:
        parts.append(f"{format_bytes(code.stack)} of local memory")
    if code.shared:
        parts.append(f"{format_bytes(code.shared)} of shared memory (the kernel {format_bytes(code.primal_shared)})")
    parts.append(f"{format_bytes(code.spilled)} spilled" if code.spilled else "nothing spilled")
    if code.spilled_beyond != code.spilled:
        parts.append(f"{format_bytes(code.spilled_beyond)} in blocks of more than {code.largest_block} threads")
    return ", ".join(parts)


def annotated_source(report: Report, width: int = WIDTH) -> Iterator[str]:
    """The source with what each line saves, and what it does: beside it where there is room, else below."""
    noted = [(line, "; ".join(_notes(line))) for line in report.lines]
    column = max((len(line.text) for line, note in noted if note), default=0)
    start = _BEFORE + (8 if _has_time(report) else 0)
    room = width - (start + column + 4)
    yield f"{'line':>5}  {'saved':>10}  {'time':>6}" if _has_time(report) else f"{'line':>5}  {'saved':>10}"
    before = report.lines[0].line if report.lines else 0
    for line, note in noted:
        if line.line > before + 1:
            yield ""
        before = line.line
        time = ""
        if _has_time(report):
            time = f"  {f'{line.share_of_time:.1%}' if line.share_of_time else '':>6}"
        text, *more = wrapped_code(line.text, width - start)
        head = f"{line.line:5}  {_saved(line):>10}{time}  {text}"
        if note and room >= _NARROWEST:
            for number, part in enumerate(textwrap.wrap(note, room)):
                yield f"{'' if number else head:{start + column}}  │ {part}"
            continue
        yield head.rstrip()
        yield from (" " * start + part for part in more)
        if note:
            indent = " " * (start + len(line.text) - len(line.text.lstrip()))
            yield from _wrapped(note, width, f"{indent}└ ", f"{indent}  ")


def _has_time(report: Report) -> bool:
    return any(line.share_of_time is not None for line in report.lines)


def _saved(line: LineFacts) -> str:
    """Bytes that a line saves: in the call that was measured, else in an iteration or a call."""
    if line.saved is not None:
        return format_bytes(line.saved) if line.saved else ""
    if line.saved_per_iteration:
        return f"{line.saved_per_iteration} B/iter"
    return f"{line.saved_per_call} B" if line.saved_per_call else "an array" if line.keeps else ""


def _notes(line: LineFacts) -> Iterator[str]:
    if line.active:
        yield "active " + ", ".join(line.active)
    if line.saved is None:
        more = []
        if line.saved_per_iteration and line.saved_per_call:
            more.append(f"{line.saved_per_call} B per call")
        if line.keeps and (line.saved_per_iteration or line.saved_per_call):
            more.append("the shadow of an array")
        if more:
            yield "saves " + ", ".join(more) + " besides" * bool(line.saved_per_iteration or line.saved_per_call)
    if line.rules:
        yield f"rule{'s' * (len(line.rules) > 1)} " + ", ".join(line.rules)


def _functions(report: Report, width: int) -> Iterator[str]:
    yield f"functions ({len(report.functions)})"
    for number, function in enumerate(report.functions):
        calls = f", calls {', '.join(f'[{i}]' for i in dict.fromkeys(function.calls))}" if function.calls else ""
        yield from _wrapped(f"  [{number}] {function.name}: {function.variant}{calls}", width, "", "      ")


def _tape(report: Report, width: int) -> Iterator[str]:
    entries = sorted(report.tape, key=lambda pair: weight(pair[1]))
    total = tape_total(report)
    entries = [pair for pair in entries if pair[1].total != 0]
    size = f", {format_bytes(total)} in this call" if total is not None else ""
    yield f"tape ({len(entries)} entries{size})"
    for number, entry in entries[:_ENTRIES_SHOWN]:
        yield from _entry(report, number, entry, width)
    if len(entries) > _ENTRIES_SHOWN:
        rest = [entry for _, entry in entries[_ENTRIES_SHOWN:]]
        more = f", {format_bytes(sum(entry.total or 0 for entry in rest))}" if total is not None else ""
        yield f"  and {len(rest)} more{more}: --stage tape lists all, --explain tape says why"


def _entry(report: Report, number: int, entry: TapeEntry, width: int) -> Iterator[str]:
    owner = f", in {report.functions[number].name}" if number else ""
    size = format_bytes(entry.total) if entry.total is not None else _one(entry)
    often = f" ({entry.slots} × {entry.bytes} B)" if entry.slots is not None and entry.slots > 1 and entry.bytes else ""
    text = f"{entry.name}{often}{_place(report, entry)}{owner}: {reason(entry.why)}"
    yield from _wrapped(f"{size:>10}  {text}", width, "", " " * 14)


def _place(report: Report, entry: TapeEntry) -> str:
    if entry.place is None or entry.line is None:
        return ""
    own = entry.place.file == report.place.file
    return f", line {entry.line}" if own else f", {Path(entry.place.file).name}:{entry.line}"


def _one(entry: TapeEntry) -> str:
    """One slot."""
    if entry.bytes is None:
        return "an array"
    return f"{entry.bytes} B/iter" if entry.storage is not Storage.FRAME else f"{entry.bytes} B"


def reason(why: str) -> str:
    """Reason why a value is saved, without its price."""
    return _PRICE.sub("", why).removeprefix("saved: ")


def often(entry: TapeEntry) -> str:
    """Words for the number of times that a slot is filled."""
    if entry.loops:
        return f"per iteration of {in_loops(entry.loops)}"
    return "per call" if entry.storage in (Storage.FRAME, Storage.KEPT) else "per chunk"


def _wrapped(text: str, width: int, first: str, following: str) -> list[str]:
    return textwrap.wrap(
        text, max(width, len(following) + 20), initial_indent=first, subsequent_indent=following,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


# Answers to "why?": of a line of the source, of a value of the program, of a Python variable, of the tape.
#
# Input   a `Report`, a question: a line (`13`), a value (`%.190`), a variable (`total`), or `tape`.
# Output  lines of text: why active, which rule, what memory, why saved and not recomputed, with the costs that decided.

_LONGEST_CHAIN = 8


def explain(report: Report, question: str) -> str:
    """Explanation of a line or name from the report.

    Raises:
        SignatureError: there is no such line, value or variable.
    """
    asked = question.strip()
    if asked == "tape":
        return "\n".join(_explained_tape(report))
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


def _explained_tape(report: Report) -> Iterator[str]:
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


# Stages as plain text.


def shown_lines(stage: StageText, *, noise: bool = False) -> list[TextLine]:
    """The lines of a stage to be shown, without empty ones in a row.

    Args:
        stage: the stage.
        noise: show all lines as the compiler has them: metadata, reference counts, mangled names.
    """
    if noise:
        return [line if line.raw is None else TextLine(line.raw, line.line, line.value) for line in stage.lines]
    found: list[TextLine] = []
    for line in stage.lines:
        if not line.is_noise and (line.text.strip() or (found and found[-1].text.strip())):
            found.append(line)
    while found and not found[-1].text.strip():
        found.pop()
    return found


def stage_text(stage: StageText, *, noise: bool = False) -> str:
    """A stage as text."""
    return "\n".join(line.text for line in shown_lines(stage, noise=noise)) + "\n"


def difference(before: StageText, after: StageText, *, noise: bool = False) -> list[str]:
    """A unified diff of two stages."""
    old, new = ([line.text for line in shown_lines(stage, noise=noise)] for stage in (before, after))
    return list(difflib.unified_diff(old, new, before.stage.value, after.stage.value, lineterm=""))


# Reports as JSON. The schema is the model: objects have the fields of its classes, places are objects, too.
#
# `FORMAT` changes when a field is renamed, removed or means something else; a new field does not change it.

FORMAT = 2


def to_json(report: Report, **more: Any) -> str:
    """A report as JSON text.

    Args:
        report: the report.
        more: further members of the outermost object.
    """
    return json.dumps({"format": FORMAT, **_plain(report), **_plain(more)}, indent=1, ensure_ascii=False)


def _plain(value: Any) -> Any:
    if isinstance(value, enum.Enum):
        return value.value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {_plain(key): _plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return value
