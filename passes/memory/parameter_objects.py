"""The objects that a function's parameters lead to, by what the request and signatures say of their memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from irad.ir.values import Parameter, Value
from irad.passes.memory.addresses import ANYWHERE, START, Position
from irad.passes.memory.objects import ObjectKind, Targets, place_of
from irad.passes.memory.points_to_graph import PointsToGraph, declared_place, is_header
from irad.passes.request import MemoryType, ParameterKind


@dataclass(eq=False, slots=True)
class ParameterObjects:
    """Adds them to a graph.

    Attributes:
        kinds: how parameters take part in the derivative; what lies behind those of different kinds is told apart.
        declared: what the request says of the memory that an argument leads to, by object.
    """

    graph: PointsToGraph
    kinds: Mapping[Parameter, ParameterKind]
    declared: dict[int, MemoryType] = field(default_factory=dict)
    _behind: dict[tuple[MemoryType | None, Value | ParameterKind | None], int] = field(default_factory=dict)

    def add(self, param: Parameter, holds: MemoryType | None) -> None:
        """What a parameter points to, with all that lies behind."""
        mask = self.graph.new_object(ObjectKind.ARGUMENT, param, holds)
        self.graph.grow(param, Targets(mask, START))
        self._add_contents(param, mask, holds)

    def _add_contents(self, param: Parameter, mask: int, holds: MemoryType | None) -> None:
        if holds is not None and holds.declared:
            self._add_declared(mask, holds, param)
            return
        if holds is None or holds.holds_unknown_pointers():
            self._add_unclear(param, mask)
            self._hold(mask, None, self._add_behind(param, None), ANYWHERE)
            return
        if holds.behind:
            self.graph.join_group(holds, mask, anywhere=False)
        for offset, inner in holds.behind:
            self._hold(mask, offset, self._add_behind(param, inner), declared_place(holds, inner))

    def _add_behind(self, param: Parameter, holds: MemoryType | None) -> int:
        """Memory behind a parameter. Containers that may lie behind several they share: one may store, another load."""
        key = (holds, self.kinds.get(param) if holds is not None and holds.behind else param)
        if key not in self._behind:
            mask = self._behind[key] = self.graph.new_object(ObjectKind.REACHABLE, param, holds)
            if holds is None:
                self._add_unclear(param, mask)
                self._hold(mask, None, mask, ANYWHERE)
            else:
                self._add_contents(param, mask, holds)
        return self._behind[key]

    def _add_unclear(self, param: Parameter, mask: int) -> None:
        """Callers may pass one structure for two parameters, unless these take part in different ways."""
        self.graph.join_group(self.kinds.get(param), mask, anywhere=True)

    def _add_declared(self, mask: int, holds: MemoryType, param: Parameter) -> None:
        """Objects for what the request says a parameter's memory leads to."""
        self.declared[mask.bit_length() - 1] = holds
        if holds.declared:
            self.graph.join_group(holds, mask, anywhere=False)
        self.graph.whole |= mask if is_header(holds) else 0
        for offset, inner in holds.declared:
            found = self.graph.new_object(ObjectKind.REACHABLE, param)
            self._hold(mask, offset if holds.single else None, found, declared_place(holds, inner))
            self._add_declared(found, inner, param)

    def _hold(self, mask: int, offset: int | None, behind: int, place: Position) -> None:
        self.graph.hold(Targets(mask, place_of(offset)), Targets(behind, place))
