"""A report as the data of its page: short JSON, and one compressed block per stage; the call graph as a drawing."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from irad.errors import SourceLocation
from irad.report.model import FunctionReport, LineFacts, Report, Stage, StageText, TapeEntry, ValueFacts
from irad.report.shown.text import reason

# The call graph as a drawing: layers from left to right, a caller left of what it calls.
#
# Input   the nodes' labels, and which node calls which.
# Output  `Drawing`: places in pixels; the page's template makes SVG of it.
# Method  Sugiyama, Tagawa and Toda 1981, in its simplest form: edges that close a cycle are set aside (depth first), a
#         node's layer is the longest path to it, the order in a layer is improved by sweeps that sort each layer by the
#         mean place of its neighbours. Edges that skip layers are curves of their own, not chains of dummy nodes: call
#         graphs of numerical code are small and nearly trees.

_CHARACTER = 7.0  # width of the page's small monospaced letters
_PADDING, _GAP_X, _GAP_Y, _HEIGHT = 12.0, 56.0, 18.0, 44.0
_MARGIN, _ARROW, _LONGEST, _SWEEPS = 14.0, 7.0, 44, 6


@dataclass(frozen=True, slots=True)
class Box:
    """A node. ``x`` and ``y`` are of its upper left corner; texts are cut to fit."""

    index: int
    x: float
    y: float
    width: float
    height: float
    title: str
    subtitle: str


@dataclass(frozen=True, slots=True)
class Edge:
    """A caller and a callee, as an SVG path; ``sites`` calls. ``lowest`` is 0 unless it runs below the boxes."""

    caller: int
    callee: int
    path: str
    sites: int
    label_x: float
    label_y: float
    lowest: float


@dataclass(frozen=True, slots=True)
class Drawing:
    """All of it, and the size of the paper."""

    width: float
    height: float
    boxes: tuple[Box, ...]
    edges: tuple[Edge, ...]


def draw(functions: Sequence[FunctionReport]) -> Drawing:
    """A drawing of the functions of a report, one node for each callee and activity."""
    calls = [tuple(dict.fromkeys(function.calls)) for function in functions]
    boxes = _placed(_ordered(_layers(calls), calls), functions)
    edges = [
        _edge(boxes[caller], boxes[callee], functions[caller].calls.count(callee))
        for caller, callees in enumerate(calls)
        for callee in callees
    ]
    width = max((box.x + box.width for box in boxes), default=0.0) + 2 * _MARGIN
    lowest = [box.y + box.height for box in boxes] + [edge.lowest for edge in edges]
    return Drawing(width, max(lowest, default=0.0) + _MARGIN, tuple(boxes), tuple(edges))


def _layers(calls: Sequence[tuple[int, ...]]) -> list[list[int]]:
    """Nodes by the length of the longest path to them, without the edges that close a cycle."""
    finish = _finish_numbers(calls)
    depth = [0] * len(calls)
    for node in sorted(range(len(calls)), key=lambda n: -finish[n]):
        for callee in calls[node]:
            if finish[callee] < finish[node]:
                depth[callee] = max(depth[callee], depth[node] + 1)
    layers: list[list[int]] = [[] for _ in range(max(depth, default=-1) + 1)]
    for node, layer in enumerate(depth):
        layers[layer].append(node)
    return layers


def _finish_numbers(calls: Sequence[tuple[int, ...]]) -> list[int]:
    """In which order a depth-first search leaves the nodes: an edge to a node that it leaves later closes a cycle."""
    finish = [-1] * len(calls)
    seen: set[int] = set()
    count = 0
    for root in range(len(calls)):
        pending = [] if root in seen else [(root, iter(calls[root]))]
        seen.add(root)
        while pending:
            node, rest = pending[-1]
            new = next((callee for callee in rest if callee not in seen), None)
            if new is None:
                finish[node], count = count, count + 1
                pending.pop()
            else:
                seen.add(new)
                pending.append((new, iter(calls[new])))
    return finish


def _ordered(layers: list[list[int]], calls: Sequence[tuple[int, ...]]) -> list[list[int]]:
    """Each layer in an order with few crossings."""
    neighbours: list[list[int]] = [list(callees) for callees in calls]
    for caller, callees in enumerate(calls):
        for callee in callees:
            neighbours[callee].append(caller)
    position = {node: float(i) for layer in layers for i, node in enumerate(layer)}

    def mean(node: int) -> float:
        near = neighbours[node]
        return sum(position[other] for other in near) / len(near) if near else position[node]

    for sweep in range(_SWEEPS):
        for layer in layers if sweep % 2 == 0 else reversed(layers):
            layer.sort(key=mean)
            position.update((node, float(i)) for i, node in enumerate(layer))
    return layers


def _placed(layers: list[list[int]], functions: Sequence[FunctionReport]) -> list[Box]:
    """Boxes by index; layers are centred on the tallest."""
    tallest = max(map(len, layers), default=0)
    boxes: dict[int, Box] = {}
    x = _MARGIN
    for layer in layers:
        texts = {node: (_short(functions[node].name), _short(functions[node].variant)) for node in layer}
        width = max(len(text) for pair in texts.values() for text in pair) * _CHARACTER + 2 * _PADDING
        y = _MARGIN + (tallest - len(layer)) * (_HEIGHT + _GAP_Y) / 2
        for node in layer:
            boxes[node] = Box(node, x, y, width, _HEIGHT, *texts[node])
            y += _HEIGHT + _GAP_Y
        x += width + _GAP_X
    return [boxes[node] for node in range(len(functions))]


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _edge(caller: Box, callee: Box, sites: int) -> Edge:
    out, middle = caller.x + caller.width, caller.y + caller.height / 2
    if callee.x > caller.x:
        into, target = callee.x - _ARROW, callee.y + callee.height / 2
        bend = (into - out) / 2
        start, end = f"{out:.0f},{middle:.0f}", f"{into:.0f},{target:.0f}"
        path = f"M{start} C{out + bend:.0f},{middle:.0f} {into - bend:.0f},{target:.0f} {end}"
        return Edge(caller.index, callee.index, path, sites, (out + into) / 2, (middle + target) / 2, 0.0)
    # Back to a layer on the left, or to itself: below the boxes.
    left, right = callee.x + callee.width * 0.4, caller.x + caller.width * 0.6
    bottom, target = caller.y + caller.height, callee.y + callee.height + _ARROW
    low = max(bottom, target) + 2 * _GAP_Y
    path = f"M{right:.0f},{bottom:.0f} C{right:.0f},{low:.0f} {left:.0f},{low:.0f} {left:.0f},{target:.0f}"
    return Edge(caller.index, callee.index, path, sites, (left + right) / 2, low - _GAP_Y / 2, low)


# The page holds all stages, so size decides how fast it opens. What is seen at once (lines, functions, tape) is plain
# JSON; stages and values are compressed each for itself, and the page unpacks one when it is first shown or searched.
# Texts that occur often, such as reasons, are written once and referred to by number.

JSON = Any
"""Values that `json.dumps` takes."""

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
    """Data for drawing the page for the first time."""
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
    """Data that the page unpacks when it is needed: by name, as base64 of zlib's format."""
    packed = {stage.value: _pack(_stage(text)) for stage, text in report.stages.items()}
    return {**packed, "values": _pack(_values(report))}


def script_json(data: JSON) -> str:
    """JSON that may stand in a script element: no text in it can end the element."""
    return _dump(data).replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def short_place(place: SourceLocation) -> str:
    """A place with the end of its path: what tells files apart is there."""
    return f"{'/'.join(Path(place.file).parts[-2:])}:{place.line}"


def _has_python(report: Report) -> bool:
    """True if the adjoint has a Python form: else the stage says in comments why not."""
    text = report.stages.get(Stage.ADJOINT_PYTHON)
    return text is not None and any(line.text.strip() and not line.text.startswith("#") for line in text.lines)


def _why_no_python(report: Report) -> str:
    """The reason why the adjoint has no Python form, as the stage says in comments; empty where it has one."""
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
