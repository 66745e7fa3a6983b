"""Reports as plain text."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from pathlib import Path

from irad.report.model import Report, StageText, Storage, TextLine
from irad.report.words import in_loops

_ENTRIES_SHOWN = 12


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


def overview(report: Report) -> str:
    """What a report says at a glance: the source with notes, the functions, the largest entries of the tape."""
    return (
        "\n".join([*_head(report), "", *annotated_source(report), "", *_functions(report), "", *_tape(report)]) + "\n"
    )


def _head(report: Report) -> Iterator[str]:
    yield f"{report.function}{report.signature}"
    yield f"  at  {report.place.file}:{report.place.line}"


def annotated_source(report: Report) -> Iterator[str]:
    """The source with what each line does."""
    width = max((len(line.text) for line in report.lines), default=0)
    before = report.lines[0].line if report.lines else 0
    for line in report.lines:
        if line.line > before + 1:
            yield ""
        before = line.line
        notes = []
        if line.active:
            notes.append("active " + ", ".join(line.active))
        if line.saved_per_iteration:
            notes.append(f"saves {line.saved_per_iteration} B per iteration")
        if line.saved_per_call:
            notes.append(f"saves {line.saved_per_call} B")
        if line.share_of_time:
            notes.append(f"{line.share_of_time:.1%} of the time")
        if line.rules:
            notes.append("rule " + ", ".join(line.rules))
        yield f"{line.line:5}  {line.text:{width if notes else 0}}" + (f"  │ {'; '.join(notes)}" if notes else "")


def _functions(report: Report) -> Iterator[str]:
    yield f"functions ({len(report.functions)})"
    for number, function in enumerate(report.functions):
        calls = f", calls {', '.join(f'[{i}]' for i in dict.fromkeys(function.calls))}" if function.calls else ""
        yield f"  [{number}] {function.name}: {function.variant}{calls}"


def _tape(report: Report) -> Iterator[str]:
    entries = [(function, entry) for function in report.functions for entry in function.tape]
    yield f"tape ({len(entries)} values)"
    for function, entry in entries[:_ENTRIES_SHOWN]:
        place = f", {Path(entry.place.file).name}:{entry.place.line}" if entry.place is not None else ""
        often = "call" if entry.storage is Storage.FRAME else f"iteration of {in_loops(entry.loops)}"
        owner = f"{function.name}: " if len(report.functions) > 1 else ""
        yield f"  {entry.bytes:4} B per {often}: {owner}{entry.value}{place}"
        yield f"         {entry.why}"
    if len(entries) > _ENTRIES_SHOWN:
        yield f"  and {len(entries) - _ENTRIES_SHOWN} more: see the stage tape"
