"""What a report says at a glance, as text that fits a terminal: the source with notes, the functions, the tape."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from irad.report.model import Addition, KernelCode, LineFacts, Report, Storage, TapeEntry
from irad.report.shown.amounts import format_bytes, short_signature, wrapped_code
from irad.report.tape.totals import formula, tape_total, weight
from irad.report.words import in_loops

WIDTH: Final = 100
"""Columns where nothing says how many there are."""

_ENTRIES_SHOWN: Final = 10
_NARROWEST: Final = 26  # columns for notes beside the source
_BEFORE: Final = 19  # columns in front of the source
_PRICE: Final = re.compile(r"^saved: .*? \(cost [^)]*\): ")


def overview(report: Report, width: int = WIDTH) -> str:
    """The overview in so many columns; only the path of the file may be longer."""
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
    """How a kernel's derivative adds to one shadow."""
    lines = f" (line{'s' * (len(addition.lines) > 1)} {', '.join(map(str, addition.lines))})" if addition.lines else ""
    return f"to the derivative of {addition.memory} {addition.how}, since {addition.why}{lines}"


def code_words(code: KernelCode) -> str:
    """What the code of a kernel's derivative needs of a GPU."""
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
    """What a line saves: in the call that was measured, else in an iteration or a call."""
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
    """Why a value is saved, without its price."""
    return _PRICE.sub("", why).removeprefix("saved: ")


def often(entry: TapeEntry) -> str:
    """How often a slot is filled."""
    if entry.loops:
        return f"per iteration of {in_loops(entry.loops)}"
    return "per call" if entry.storage in (Storage.FRAME, Storage.KEPT) else "per chunk"


def _wrapped(text: str, width: int, first: str, following: str) -> list[str]:
    return textwrap.wrap(
        text, max(width, len(following) + 20), initial_indent=first, subsequent_indent=following,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
