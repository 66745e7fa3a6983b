"""A report as the data of its page: short JSON, and one compressed block per stage.

The page holds all stages, so size decides how fast it opens. What is seen at once (lines, functions, tape) is plain
JSON; stages and values are compressed each for itself, and the page unpacks one when it is first shown or searched.
Texts that occur often, such as reasons, are written once and referred to by number.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from irad.errors import SourceLocation
from irad.report.model import FunctionReport, LineFacts, Report, Stage, StageText, TapeEntry, ValueFacts
from irad.report.shown.overview import reason

JSON = Any
"""What `json.dumps` takes."""

LineOf = Callable[[Iterable[SourceLocation | None]], int | None]


class Strings:
    """Texts by number, each once."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def __call__(self, text: str) -> int:
        """The number of a text."""
        return self._numbers.setdefault(text, len(self._numbers))

    def texts(self) -> list[str]:
        """All texts, in the order of their numbers."""
        return list(self._numbers)


def head(report: Report) -> dict[str, JSON]:
    """What the page needs to be drawn for the first time."""
    strings = Strings()
    line_of = report.line_finder()
    tape = [[index, *_tape_entry(entry, line_of, strings)] for index, entry in report.tape]
    return {
        "file": report.place.file,
        "lines": [_line(facts) for facts in report.lines],
        "functions": [_function(function, line_of) for function in report.functions],
        "tape": tape,
        "additions": [[each.memory, each.how, each.why, list(each.lines)] for each in report.additions],
        "hasPython": _has_python(report),
        "noPython": _why_no_python(report),
        "refusals": [[refusal.line, refusal.problem, refusal.text] for refusal in report.refusals],
        "seconds": None if report.times is None else report.times.seconds,
        "stages": [[text.stage.value, text.language, len(text.lines)] for text in report.stages.values()],
        "strings": strings.texts(),
    }


def blocks(report: Report) -> dict[str, str]:
    """What the page unpacks when it is needed: by name, as base64 of zlib's format."""
    packed = {stage.value: _pack(_stage(text)) for stage, text in report.stages.items()}
    return {**packed, "values": _pack(_values(report))}


def script_json(data: JSON) -> str:
    """JSON that may stand in a script element: no text in it can end the element."""
    return _dump(data).replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def short_place(place: SourceLocation) -> str:
    """A place with the end of its path: what tells files apart is there."""
    return f"{'/'.join(Path(place.file).parts[-2:])}:{place.line}"


def _has_python(report: Report) -> bool:
    """Whether the adjoint has a Python form: else the stage says in comments why not."""
    text = report.stages.get(Stage.ADJOINT_PYTHON)
    return text is not None and any(line.text.strip() and not line.text.startswith("#") for line in text.lines)


def _why_no_python(report: Report) -> str:
    """Why the adjoint has no Python form, as the stage says in comments; empty where it has one."""
    text = report.stages.get(Stage.ADJOINT_PYTHON)
    if text is None or _has_python(report):
        return ""
    return " ".join(line.text.lstrip("# ") for line in text.lines)


def _line(facts: LineFacts) -> list[JSON]:
    share = None if facts.share_of_time is None else round(facts.share_of_time, 5)
    saved = [facts.saved_per_call, facts.saved_per_iteration]
    known = [facts.line, facts.text, list(facts.active), list(facts.constant), *saved, list(facts.rules), share]
    reverse = None if facts.reverse_share is None else round(facts.reverse_share, 5)
    return [*known, facts.saved, facts.keeps, reverse]


def _function(function: FunctionReport, line_of: LineOf) -> dict[str, JSON]:
    place = function.place
    return {
        "name": function.name,
        "variant": function.variant,
        "symbol": function.symbol,
        "pair": [function.augmented, function.reverse],
        "place": None if place is None else short_place(place),
        "line": line_of([place]),
        "values": len(function.values),
        "active": sum(value.is_active for value in function.values),
        "saved": len(function.tape),
        "calls": list(function.calls),
    }


def _tape_entry(entry: TapeEntry, line_of: LineOf, strings: Strings) -> list[JSON]:
    line = line_of([entry.place])
    where = "" if entry.place is None or line is not None else short_place(entry.place)
    storage = [strings(entry.storage.value), list(entry.loops)]
    return [
        entry.value,
        strings(entry.name),
        entry.bytes,
        *storage,
        line,
        strings(where),
        strings(reason(entry.why)),
        entry.slots,
        entry.total,
    ]


def _stage(text: StageText) -> dict[str, JSON]:
    """Numbers of source lines as differences; noise as the numbers of lines at which it begins and ends."""
    lines = [line.line or 0 for line in text.lines]
    values: dict[str, int] = {}
    return {
        "text": "\n".join(line.text for line in text.lines),
        "line": [line - before for before, line in zip([0, *lines], lines, strict=False)],
        "value": [0 if x.value is None else values.setdefault(x.value, len(values) + 1) for x in text.lines],
        "values": list(values),
        "noise": _changes([line.is_noise for line in text.lines]),
    }


def _changes(flags: Sequence[bool]) -> list[int]:
    return [i for i, (before, flag) in enumerate(zip([False, *flags], flags, strict=False)) if before != flag]


def _values(report: Report) -> Mapping[str, JSON]:
    strings = Strings()
    line_of = report.line_finder()
    rows = [
        [index, *_value(value, line_of, strings)]
        for index, function in enumerate(report.functions)
        for value in function.values
    ]
    return {"values": rows, "strings": strings.texts()}


def _value(value: ValueFacts, line_of: LineOf, strings: Strings) -> list[JSON]:
    origin = "" if value.rule_origin is None else short_place(value.rule_origin)
    reasons = value.activity, value.plan, "; ".join(value.memory)
    texts = (value.source, value.operation, *reasons, value.rule or "", origin)
    flags = int(value.is_active) + 2 * int(value.is_saved)
    return [value.name, strings(value.type), line_of(value.places), flags, *map(strings, texts)]


def _pack(data: JSON) -> str:
    return base64.b64encode(zlib.compress(_dump(data).encode(), 9)).decode("ascii")


def _dump(data: JSON) -> str:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))
