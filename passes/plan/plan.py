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
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from irad.ir.loops import Loop
from irad.ir.values import Value
from irad.ir.worklist import Worklist
from irad.passes.augmented.primal import AugmentedPrimal
from irad.passes.plan.minimum_cut import Flow, minimum_cut
from irad.passes.plan.reasons import PlanChoice, Reasons
from irad.passes.plan.rematerialisation import Rematerialisation, is_free


class LoopMode(enum.Enum):
    """How the reverse sweep goes through a loop."""

    COUNTED = "counted"  # the trip count is known before the loop: saved values in a slab
    RECORDED = "recorded"  # it is counted while it runs: a record per iteration


@dataclass(frozen=True, slots=True)
class Plan:
    """What is saved, how loops are reversed; the reason for each value is in ``reasons``."""

    saved: tuple[Value, ...]
    modes: Mapping[Loop, LoopMode]
    reasons: Mapping[Value, str]

    def saving(self, values: Iterable[Value]) -> Plan:
        """The same plan with other values saved: reports ask for more than the reverse sweep needs."""
        return replace(self, saved=tuple(dict.fromkeys(values)))

    def explain(self, value: Value) -> str:
        """In words: saved, recomputed or not needed, and why, with the costs that decided."""
        return self.reasons.get(value, "not needed by the reverse sweep")


def make_plan(augmented: AugmentedPrimal, remat: Rematerialisation, needs: Iterable[Value]) -> Plan:
    """Chooses what to save for the given needs."""
    wanted = tuple(v for v in dict.fromkeys(needs) if not is_free(v))
    if augmented.unit.everything:
        return Plan(wanted, _modes(remat), dict.fromkeys(wanted, "saved: the plan is save_all"))
    choices: dict[Value, PlanChoice] = {}
    own = {augmented.frame_pointer, augmented.arena}
    pending = Worklist(wanted)
    for value in pending:
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
    sources = [value for value, choice in choices.items() if choice.operands is None]
    return minimum_cut(flow, sources, wanted) if sources else ()


def _modes(remat: Rematerialisation) -> dict[Loop, LoopMode]:
    loops = remat.loops
    return {loop: LoopMode.RECORDED if loops.trip(loop) is None else LoopMode.COUNTED for loop in loops.twins}
