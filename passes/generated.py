"""Generated code: the sweeps of one variant, and the whole derivative; reports read both."""

from __future__ import annotations

from dataclasses import field

from irad.passes.augmented.primal import AugmentedPrimal
from irad.passes.instrument.marks import TapeMark
from irad.passes.plan.materialise import Materialiser
from irad.passes.plan.plan import Plan
from irad.passes.plan.rematerialisation import Rematerialisation
from irad.passes.program import DerivedFunctions, Program
from irad.passes.reverse.control import AugmentedLoops
from irad.passes.reverse.sweep import Sweep
from irad.passes.unit import Unit
from irad.records import dataclass


@dataclass(eq=False, slots=True)
class GeneratedPair:
    """The pair of one variant; each pass sets its results.

    Attributes:
        augmented: the augmented primal, with the maps from primal values to its own.
        sweep: the reverse sweep.
        loops: facts about the loops of the forward sweep.
        recipes: values that can be recomputed.
        plan: the saved values.
        storage: where that lives.
        tape: allocations of the augmented primal.
    """

    program: Program
    unit: Unit
    pair: DerivedFunctions
    augmented: AugmentedPrimal = field(init=False)
    sweep: Sweep = field(init=False)
    loops: AugmentedLoops = field(init=False)
    remat: Rematerialisation = field(init=False)
    plan: Plan = field(init=False)
    storage: Materialiser = field(init=False)
    tape: tuple[TapeMark, ...] = ()


@dataclass(eq=False, slots=True)
class Generated:
    """A derivative.

    Attributes:
        pairs: the pair of the entry first.
        launched: the pairs of parallel loops, each with the pair of one lane.
    """

    program: Program
    pairs: list[GeneratedPair] = field(default_factory=list)
    launched: list[tuple[DerivedFunctions, DerivedFunctions]] = field(default_factory=list)

    def units(self) -> dict[DerivedFunctions, Unit]:
        """The analyses, by pair."""
        return {made.pair: made.unit for made in self.pairs}
