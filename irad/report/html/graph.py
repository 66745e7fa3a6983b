"""The call graph as a drawing: layers from left to right, a caller left of what it calls.

Input   the nodes' labels, and which node calls which.
Output  `Drawing`: places in pixels; the page's template makes SVG of it.
Method  Sugiyama, Tagawa and Toda 1981, in its simplest form: edges that close a cycle are set aside (depth first), a
        node's layer is the longest path to it, the order in a layer is improved by sweeps that sort each layer by the
        mean place of its neighbours. Edges that skip layers are curves of their own, not chains of dummy nodes: call
        graphs of numerical code are small and nearly trees.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from irad.report.model import FunctionReport

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
    """Nodes by the longest path that leads to them, without the edges that close a cycle."""
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
