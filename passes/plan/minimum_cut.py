"""Minimum cut by nodes: the cheapest set of nodes whose removal separates sources from sinks.

Input   a directed graph whose nodes have capacities and supplies (``Flow``), sources, sinks.
Output  the nodes of one minimal cut, in the order in which they were added. The graph is not changed.
Method  every node becomes an edge of its capacity from an entry to an exit, edges of the graph are infinite; Dinic's
        algorithm finds the largest flow; the cut is read off what the residual graph reaches. All loops are iterative:
        functions give chains of tens of thousands of nodes. Cycles are allowed.
Limit   capacities are floats; flows below 1e-12 of the largest finite capacity count as zero.

    a(2) → b(1) → d(5)      sources a, sinks d: the cut is {b}; sources and sinks may be cut too,
    a    → c(1) → d         with c in the graph it is {b, c} or {a}: both cost 2
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import field
from math import inf, isnan
from typing import Generic, Literal, TypeVar

from irad.errors import InternalError, PlanError
from irad.records import dataclass

Key = TypeVar("Key", bound=Hashable)


@dataclass(eq=False, slots=True)
class Flow(Generic[Key]):
    """A directed graph with a capacity per node; ``inf`` where a node cannot be cut."""

    _numbers: dict[Key, int] = field(default_factory=dict)
    _capacities: list[float] = field(default_factory=list)
    _supplies: list[float] = field(default_factory=list)
    _edges: dict[tuple[int, int], None] = field(default_factory=dict)

    def add_node(self, key: Key, capacity: float, supply: float = 0.0) -> None:
        """Add a node; adding it again changes both numbers.

        Args:
            key: its key.
            capacity: cost of cutting it.
            supply: cost of having it on the side of the sinks: an edge from the sources with this capacity.
        """
        for number in (capacity, supply):
            if isnan(number) or number < 0:
                raise InternalError(f"capacity {number} of {key!r} in a minimum cut")
        if key in self._numbers:
            self._capacities[self._numbers[key]] = capacity
            self._supplies[self._numbers[key]] = supply
        else:
            self._numbers[key] = len(self._capacities)
            self._capacities.append(capacity)
            self._supplies.append(supply)

    def add_edge(self, a: Key, b: Key) -> None:
        """Add the edge from ``a`` to ``b``, both added before; adding it again changes nothing."""
        self._edges[self._number(a), self._number(b)] = None

    def _number(self, key: Key) -> int:
        if key not in self._numbers:
            raise InternalError(f"{key!r} is not a node of the minimum cut")
        return self._numbers[key]


def minimum_cut(
    flow: Flow[Key], sources: Iterable[Key], sinks: Iterable[Key], nearest: Literal["sources", "sinks"] = "sinks"
) -> tuple[Key, ...]:
    """Nodes of least total capacity without which no path leads from a source to a sink.

    Args:
        flow: the graph. A node that is both source and sink must be cut; sources and sinks may be cut like others.
        sources: where paths begin.
        sinks: where they end.
        nearest: which of several minimal cuts: the one that leaves most nodes on the side of the sources (``"sinks"``,
            nearest the sinks) or on the side of the sinks.

    Returns:
        The cut, in the order of ``add_node``. O(V²·E) at worst, about linear for the graphs of programs.

    Raises:
        PlanError: every cut has infinite capacity.

    Source:
        Dinic 1970, "Algorithm for solution of a problem of maximum flow in a network with power estimation".
    """
    network = _Network(flow._capacities, flow._edges)
    begin, end = network.begin, network.end
    for key in sources:
        network.connect(begin, 2 * flow._number(key))
    for number, supply in enumerate(flow._supplies):
        if supply:
            network.connect(begin, 2 * number, supply)
    for key in sinks:
        network.connect(2 * flow._number(key) + 1, end)
    network.maximise()
    on_source_side = network.reached_from_begin() if nearest == "sources" else network.not_reaching_end()
    return tuple(key for key, i in flow._numbers.items() if on_source_side[2 * i] and not on_source_side[2 * i + 1])


class _Network:
    """Residual graph. Node ``i`` of the flow is entry ``2i`` and exit ``2i + 1``; arc ``a ^ 1`` reverses ``a``."""

    def __init__(self, capacities: list[float], edges: Iterable[tuple[int, int]]) -> None:
        size = 2 * len(capacities)
        self.begin, self.end = size, size + 1
        self._arcs: list[list[int]] = [[] for _ in range(size + 2)]
        self._head: list[int] = []
        self._room: list[float] = []
        # What rounding leaves of a capacity must not count as room, or flow would be sent in ever smaller amounts.
        self._epsilon = 1e-12 * max((c for c in capacities if c < inf), default=1.0)
        for i, capacity in enumerate(capacities):
            self.connect(2 * i, 2 * i + 1, capacity)
        for a, b in edges:
            self.connect(2 * a + 1, 2 * b)

    def connect(self, tail: int, head: int, room: float = inf) -> None:
        """Add the arc from ``tail`` to ``head`` and its reverse, which has no room yet."""
        self._arcs[tail].append(len(self._head))
        self._arcs[head].append(len(self._head) + 1)
        self._head += (head, tail)
        self._room += (room, 0.0)

    def maximise(self) -> None:
        """Send the largest flow from begin to end."""
        while (levels := self._levels())[self.end] >= 0:
            self._block(levels)

    def reached_from_begin(self) -> list[bool]:
        """True for nodes that still have room on a way from begin."""
        return [level >= 0 for level in self._levels(stop_at_end=False)]

    def not_reaching_end(self) -> list[bool]:
        """True for nodes that have no way to end with room left."""
        reaching = [False] * len(self._arcs)
        reaching[self.end] = True
        pending = [self.end]
        while pending:
            node = pending.pop()
            for arc in self._arcs[node]:
                tail = self._head[arc]
                if not reaching[tail] and self._room[arc ^ 1] > self._epsilon:
                    reaching[tail] = True
                    pending.append(tail)
        return [not reaches for reaches in reaching]

    def _levels(self, stop_at_end: bool = True) -> list[int]:
        """Arcs on the shortest way from begin to each node, -1 where none has room."""
        head, room, epsilon = self._head, self._room, self._epsilon
        levels = [-1] * len(self._arcs)
        levels[self.begin] = 0
        front = [self.begin]
        while front and not (stop_at_end and levels[self.end] >= 0):
            following = []
            for node in front:
                level = levels[node] + 1
                for arc in self._arcs[node]:
                    if levels[head[arc]] < 0 and room[arc] > epsilon:
                        levels[head[arc]] = level
                        following.append(head[arc])
            front = following
        return levels

    def _block(self, levels: list[int]) -> None:
        """Send flow along shortest ways until none is left: depth first, each arc given up once."""
        head, room, epsilon = self._head, self._room, self._epsilon
        untried = [0] * len(self._arcs)
        path: list[int] = []
        node = self.begin
        while True:
            if node == self.end:
                node = self._augment(path)
                continue
            arcs, k = self._arcs[node], untried[node]
            while k < len(arcs) and not (room[arcs[k]] > epsilon and levels[head[arcs[k]]] == levels[node] + 1):
                k += 1
            untried[node] = k
            if k < len(arcs):
                path.append(arcs[k])
                node = head[arcs[k]]
            elif path:
                node = head[path.pop() ^ 1]
                untried[node] += 1
            else:
                return

    def _augment(self, path: list[int]) -> int:
        """Fill the path; cut it back to before its first full arc and return the node there."""
        room = self._room
        amount = min(room[arc] for arc in path)
        if amount == inf:
            raise PlanError(
                "a value that the reverse sweep needs can be neither saved nor recomputed",
                'use irad.Options(plan="save_all"), and report it with the function',
                "the reverse sweep needs this value of the forward sweep and has no way to obtain it",
            )
        first_full = len(path)
        for position in range(len(path) - 1, -1, -1):
            arc = path[position]
            room[arc] -= amount
            room[arc ^ 1] += amount
            if room[arc] <= self._epsilon:
                first_full = position
        node = self._head[path[first_full] ^ 1]
        del path[first_full:]
        return node
