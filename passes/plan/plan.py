"""The plan: which needed values are saved on the tape and which are recomputed in the reverse sweep.

Input   a forward sweep, the needs of its reverse sweep.
Output  `Plan`: the values to save. All others that are needed can be recomputed from those.
Method  minimum cut. A value that cannot be recomputed is joined to the source, every needed value to the sink; edges go
        from the operands of a value that can be recomputed to it. A cut through a value costs the bytes of its slot
        times how often it is written; a value that is recomputed costs its operations as often. So short chains of
        cheap operations are recomputed from few saved values, and linear code saves nothing.
Limit   `save_all` saves every need as it is.

    %i  induction variable of a counted loop        start + step · iteration
    %p  getelementptr, integer arithmetic, casts    recomputed
    %v  load from memory that stays as it is        loaded again
    %e  call of exp, phi of a branch                loaded from where the program keeps it, else saved
"""

from __future__ import annotations

import enum
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import field, replace
from math import inf

from irad.errors import PlanError
from irad.ir.instructions import Load
from irad.ir.loops import Loop
from irad.ir.text.printer import spelling
from irad.ir.values import Value
from irad.ir.worklist import Worklist, reachable
from irad.passes.augmented.primal import AugmentedPrimal
from irad.passes.augmented.tape import size_in_memory
from irad.passes.plan.minimum_cut import Flow, minimum_cut
from irad.passes.plan.rematerialisation import Rematerialisation, is_free
from irad.records import dataclass

# Why the plan saves one value and recomputes another, in words, with the costs that decided.
#
# Input   the choices that the plan had, what it chose.
# Output  `Reasons`, a text per value. Computed when it is asked for: only reports do.
# Method  of a saved value that could be recomputed, the alternative is the minimum cut in which it may not be saved.
#
#     %e = call double @exp(double %x)     saved: 8 bytes per iteration, 1 loop deep (cost 128): exp, which costs more …
#     %p = getelementptr double, ptr %a    recomputed from %a and %i; saving it: 8 bytes per iteration (cost 128)


@dataclass(frozen=True, slots=True)
class PlanChoice:
    """The plan's choice for a value that is needed.

    Attributes:
        cost: of saving it.
        depth: number of loops around it.
        operands: operands for recomputation; None if it cannot be recomputed.
        effort: of recomputing it from these.
    """

    cost: float
    depth: int
    operands: list[Value] | None
    effort: float


@dataclass(frozen=True, slots=True)
class Reasons(Mapping[Value, str]):
    """The reason for each value that is needed, or that needed ones could be recomputed from."""

    remat: Rematerialisation
    choices: Mapping[Value, PlanChoice]
    wanted: tuple[Value, ...]
    saved: frozenset[Value]
    _told: dict[Value, str] = field(default_factory=dict)

    def __getitem__(self, value: Value) -> str:
        if value not in self._told:
            self._told[value] = self._tell(value, self.choices[value])
        return self._told[value]

    def __iter__(self) -> Iterator[Value]:
        return iter(self.choices)

    def __len__(self) -> int:
        return len(self.choices)

    def _tell(self, value: Value, choice: PlanChoice) -> str:
        if value in self.saved:
            why = self.remat.obstacle(value) if choice.operands is None else self._alternative(value, choice)
            return f"saved: {_price(value, choice)}: {why}"
        if choice.operands is None:
            return "not needed once others are saved"
        if value in self.remat.affine:
            return f"recomputed as start + step · iteration; saving it: {_price(value, choice)}"
        if value in self.remat.neighbours:
            neighbour = self.remat.neighbours[value]
            later = f"{_count(neighbour.ahead, 'iteration')} later"
            return f"found where {spelling(neighbour.load)} is saved {later}; saving it: {_price(value, choice)}"
        if isinstance(value, Load) or value in self.remat.stored:
            return f"loaded again, its memory stays as it is; saving it: {_price(value, choice)}"
        parts = [v for v in dict.fromkeys(choice.operands) if not is_free(v)]
        origin = f" from {_listed(parts)}" if parts else ""
        return f"recomputed{origin}; saving it: {_price(value, choice)}"

    def _alternative(self, value: Value, choice: PlanChoice) -> str:
        """Cost that recomputing a value would have had, in words."""
        flow: Flow[Value] = Flow()
        for other, known in self.choices.items():
            flow.add_node(other, inf if other is value else known.cost, known.effort)
        for other, known in self.choices.items():
            for operand in known.operands or ():
                if operand in self.choices:
                    flow.add_edge(operand, other)
        sources = [other for other, known in self.choices.items() if known.operands is None]
        try:
            cut = minimum_cut(flow, sources, [v for v in self.wanted if v is not value] + [value])
        except PlanError:
            return "nothing that it is computed from can be saved"
        instead = [v for v in cut if v not in self.saved]
        spared = [v for v in self.saved if v is not value and v not in cut]
        cost = sum(self.choices[v].cost for v in instead) - sum(self.choices[v].cost for v in spared)
        if not instead:
            if self._effort(value, cut):
                return "recomputing it takes longer than loading it"
            return "what it is recomputed from is saved as well"  # a tie of nothing: it costs next to nothing
        return f"to recompute it, {_listed(instead)} would be saved in its place (cost {cost:g})"

    def _effort(self, value: Value, cut: Container[Value]) -> float:
        """Of computing a value from others that are saved."""

        def parts(each: Value) -> list[Value]:
            return [v for v in self.choices[each].operands or () if v in self.choices and v not in cut]

        return sum(self.choices[each].effort for each in reachable([value], parts))


def _price(value: Value, choice: PlanChoice) -> str:
    size = _count(size_in_memory(value.type), "byte")
    if not choice.depth:
        return f"{size} per call (cost {choice.cost:g})"
    return f"{size} per iteration, {_count(choice.depth, 'loop')} deep (cost {choice.cost:g})"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _listed(values: Iterable[Value]) -> str:
    names = [spelling(value) for value in values]
    shown = names[:4]
    rest = len(names) - len(shown)
    return ", ".join(shown) + (f" and {rest} more" if rest else "")


class LoopMode(enum.Enum):
    """Way in which the reverse sweep goes through a loop."""

    COUNTED = "counted"  # the trip count is known before the loop: saved values in a slab
    RECORDED = "recorded"  # it is counted while it runs: a record per iteration


@dataclass(frozen=True, slots=True)
class Plan:
    """Saved values, and the way loops are reversed; the reason for each value is in ``reasons``."""

    saved: tuple[Value, ...]
    modes: Mapping[Loop, LoopMode]
    reasons: Mapping[Value, str]

    def saving(self, values: Iterable[Value]) -> Plan:
        """This plan with other values saved: reports ask for more than the reverse sweep needs."""
        return replace(self, saved=tuple(dict.fromkeys(values)))

    def explain(self, value: Value) -> str:
        """In words: saved, recomputed or not needed, and why, with the costs that decided."""
        return self.reasons.get(value, "not needed by the reverse sweep")


def make_plan(augmented: AugmentedPrimal, remat: Rematerialisation, needs: Iterable[Value]) -> Plan:
    """Chooses the values to save for the given needs."""
    wanted = tuple(v for v in dict.fromkeys(needs) if not is_free(v))
    if augmented.unit.everything:
        return Plan(wanted, _modes(remat), dict.fromkeys(wanted, "saved: the plan is save_all"))
    choices: dict[Value, PlanChoice] = {}
    own = {augmented.frame_pointer, augmented.arena}
    pending = Worklist(wanted)
    for value in pending:
        # Both sweeps get these from their caller.
        if value in own:
            continue
        operands = remat.operands(value)
        choices[value] = PlanChoice(remat.cost(value), remat.depth_of(value), operands, remat.effort(value))
        pending.add(*(v for v in operands or () if not is_free(v)))
    saved = _cut(choices, wanted)
    return Plan(saved, _modes(remat), Reasons(remat, choices, wanted, frozenset(saved)))


def _cut(choices: Mapping[Value, PlanChoice], wanted: tuple[Value, ...]) -> tuple[Value, ...]:
    flow: Flow[Value] = Flow()
    for value, choice in choices.items():
        flow.add_node(value, choice.cost, choice.effort)
    for value, choice in choices.items():
        for operand in choice.operands or ():
            if operand in choices:
                flow.add_edge(operand, value)
    # What cannot be recomputed has to be cut from its uses, so it is a source; the needs are the sinks.
    sources = [value for value, choice in choices.items() if choice.operands is None]
    return minimum_cut(flow, sources, wanted) if sources else ()


def _modes(remat: Rematerialisation) -> dict[Loop, LoopMode]:
    loops = remat.loops
    # A slab needs the number of iterations before the loop starts; without it, each iteration links a record to the
    # last.
    return {loop: LoopMode.RECORDED if loops.trip(loop) is None else LoopMode.COUNTED for loop in loops.twins}
