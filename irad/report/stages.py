"""The stages that are written from facts: what the analyses, the plan and the tape say."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from irad.report.model import FunctionReport, Stage, StageText, TapeEntry, TextLine, ValueFacts
from irad.report.shown.amounts import count
from irad.report.shown.overview import often, reason
from irad.report.source import UserSource


def python_stage(source: UserSource) -> StageText:
    """The user's source."""
    lines: list[TextLine] = []
    before: int | None = None
    for number in source.numbers:
        if before is not None and number > before + 1:
            lines.append(TextLine(""))
        lines.append(TextLine(source.text(number), number))
        before = number
    return StageText(Stage.PYTHON, "python", tuple(lines))


def adjoint_python_stage(lines: Iterable[str], source: UserSource) -> StageText:
    """The adjoint as Python source. Its comments say which line of the user's source the following ones come from."""
    heads = {source.text(number).strip(): number for number in source.numbers if _LOOP.match(source.text(number))}
    shown, line, depth = list[TextLine](), None, 0
    for text in lines:
        indent = len(text) - len(text.lstrip())
        comment = _FROM_LINE.match(text)
        if comment is not None:
            line, depth = int(comment[1]), indent
        elif indent < depth or not text.strip():
            line = None
        loop = _REVERSED.sub(r"\1", text.strip())
        own = heads.get(loop, line if comment is None else int(comment[1]))
        shown.append(TextLine(text, own if own in source.numbers else None))
    return StageText(Stage.ADJOINT_PYTHON, "python", tuple(shown))


_FROM_LINE = re.compile(r"\s*# line (\d+): ")
_LOOP = re.compile(r"\s*(?:for|while)\b")
_REVERSED = re.compile(r"reversed\((.*)\)(?=:$)")


def facts_stage(stage: Stage, functions: Iterable[FunctionReport], source: UserSource) -> StageText:
    """One of types, activity, plan, tape: for every function of the program."""
    lines: list[TextLine] = []
    for function in functions:
        lines.append(TextLine(f"{function.name}: {function.variant}"))
        if stage is Stage.TAPE:
            lines += _tape(function, source)
        else:
            for value in function.values:
                lines += _value(stage, value, source)
        lines.append(TextLine(""))
    return StageText(stage, "text", tuple(lines))


def _value(stage: Stage, value: ValueFacts, source: UserSource) -> Iterator[TextLine]:
    line = source.line_of(value.places)
    name = f"{value.name} ({value.source})" if value.source else value.name or "(no value)"

    def told(text: str, *, is_noise: bool = False) -> TextLine:
        return TextLine(text, line, value.name or None, is_noise)

    match stage:
        case Stage.TYPES:
            yield told(f"  {name}: {value.type}, {value.operation}")
            yield from (told(f"      {text}") for text in value.memory)
        case Stage.ACTIVITY:
            yield told(f"  {name}: {value.activity}", is_noise="its type holds no floating-point" in value.activity)
            if value.rule is not None:
                origin = f", {value.rule_origin.file}:{value.rule_origin.line}" if value.rule_origin else ""
                yield told(f"      rule: {value.rule}{origin}")
        case _:
            if value.plan:
                yield told(f"  {name}: {value.plan}", is_noise=value.plan.startswith("not needed"))


def _tape(function: FunctionReport, source: UserSource) -> Iterator[TextLine]:
    groups: dict[str, list[TapeEntry]] = {}
    for entry in function.tape:
        groups.setdefault(often(entry), []).append(entry)
    for frequency, entries in groups.items():
        sizes = [entry.bytes for entry in entries if entry.bytes is not None]
        known = f"{sum(sizes)} bytes {frequency}, for {count(len(sizes), 'entry').replace('entrys', 'entries')}"
        kept = len(entries) - len(sizes)
        more = f"memory of a size that depends on the arguments {frequency}, {kept} of them" if kept else ""
        line = entries[0].loops[-1] if entries[0].loops and entries[0].loops[-1] else None
        yield from (TextLine(f"  {text}", line) for text in ([known] if sizes else []) + ([more] if more else []))
    for entry in function.tape:
        yield _entry(entry, source)


def _entry(entry: TapeEntry, source: UserSource) -> TextLine:
    here = entry.place.line if entry.place is not None and source.is_here(entry.place) else None
    place = f", line {entry.line}" if here is not None and entry.line is not None else ""
    size = f"{entry.bytes:5} bytes" if entry.bytes is not None else " as needed "
    value = f"  {entry.value}" if entry.value else ""
    return TextLine(
        f"    {size}  {entry.storage.value:6}  {entry.name}{place}: {reason(entry.why)}{value}",
        here,
        entry.value or None,
    )
