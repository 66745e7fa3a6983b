"""The stages that are written from facts: what the analyses, the plan and the tape say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from irad.report.model import FunctionReport, Stage, StageText, Storage, TapeEntry, TextLine, ValueFacts
from irad.report.source import UserSource
from irad.report.words import in_loops


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
    name = value.name or "(no value)"

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
    frame = [entry for entry in function.tape if entry.storage is Storage.FRAME]
    yield TextLine(f"  {function.frame_bytes} bytes per call, for {_count(len(frame), 'value')}")
    for loop in function.loop_tapes:
        where = in_loops(loop.loops)
        saved = f"{_count(loop.values, 'value')} in a {loop.storage.value}"
        yield TextLine(f"  {loop.bytes} bytes per iteration of {where}, for {saved}", loop.loops[-1] or None)
    for shadow in function.shadow_memory:
        line = shadow.place.line if shadow.place is not None and source.is_here(shadow.place) else None
        often = f" in each iteration of {in_loops(shadow.loops)}" if shadow.loops else ""
        yield TextLine(f"  {shadow.size} bytes for the shadow of memory of line {line or '?'}{often}", line)
    for entry in function.tape:
        yield _entry(entry, source)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _entry(entry: TapeEntry, source: UserSource) -> TextLine:
    here = entry.place is not None and source.is_here(entry.place)
    place = f", line {entry.place.line}" if entry.place is not None and here else ""
    return TextLine(
        f"    {entry.bytes:4} bytes  {entry.storage.value:6}  {entry.type} {entry.value}{place}: {entry.why}",
        entry.place.line if here and entry.place is not None else None,
        entry.value,
    )
