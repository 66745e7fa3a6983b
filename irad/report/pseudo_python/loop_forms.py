"""How each loop of the primal is written: as a `for` over a range, or as a `while`.

Input   a captured pair.
Output  `LoopForm`s, by primal loop. In both sweeps the loop variable is the same, and saved values are named by it.
Method  a loop whose latch compares a variable with constant step with an invariant bound is a `for` over a range; the
        exits that leave it before are breaks. Rotated loops run at least once: where no condition in front of the loop
        says that the range is not empty, it is written as `max(bound, start + 1)`.
"""

from __future__ import annotations

from dataclasses import dataclass

from irad.ir.instructions import CondBr, Phi
from irad.ir.loops import Loop
from irad.ir.module import Block
from irad.ir.trip_count import TripCount, affine_variables, trip_count
from irad.ir.types import I64
from irad.ir.values import ConstantInt, Parameter, Value
from irad.report.pseudo_python.capture import CapturedPair


@dataclass(eq=False, slots=True)
class LoopVariable(Value):
    """The variable of a `for` loop: the index itself, or the number of the iteration."""


@dataclass(eq=False, slots=True)
class LoopForm:
    """A loop.

    Attributes:
        loop: of the primal.
        twin: of the forward sweep.
        variable: what counts: `count.variable` where ``is_index``, else the number of the iteration.
        count: of the exit at the latch; None for a `while`.
        is_index: the variable is the user's index, which begins at a number, a parameter or an outer index.
    """

    loop: Loop
    twin: Loop
    variable: LoopVariable
    count: TripCount | None
    is_index: bool

    @property
    def is_for(self) -> bool:
        """Whether the forward sweep has a `for`."""
        return self.count is not None


def find_loop_forms(captured: CapturedPair) -> dict[Loop, LoopForm]:
    """The form of each loop."""
    loops = captured.loops
    forms: dict[Loop, LoopForm] = {}
    for loop, twin in loops.twins.items():  # outer loops first
        count = _count(captured, twin)
        outer = {f.count.variable for f in forms.values() if f.count is not None and f.is_index}
        is_index = count is not None and _is_simple(count.start, outer)
        forms[loop] = LoopForm(loop, twin, LoopVariable(I64, "i"), count, is_index)
    return forms


def _count(captured: CapturedPair, twin: Loop) -> TripCount | None:
    latch, cfg = twin.latch, captured.loops.cfg
    if latch is None or twin.preheader is None or not isinstance(latch.terminator, CondBr):
        return None
    found = trip_count(twin, cfg, captured.loops.dominators, latch)
    if found is None or found.predicate == "eq" or found.predicate.startswith("u"):
        return None
    step = found.step
    return found if found.predicate == "ne" or (found.predicate[1] == "l") == (step > 0) else None


def _is_simple(start: Value, outer: set[Phi]) -> bool:
    """Whether both sweeps can name the first index."""
    return isinstance(start, ConstantInt | Parameter) or start in outer


def affine_in(form: LoopForm) -> dict[Phi, object]:
    """The affine variables of the forward sweep's loop."""
    return dict(affine_variables(form.twin))


def exit_of(form: LoopForm) -> Block:
    """Where the loop goes when its range is exhausted."""
    latch = form.twin.latch
    assert latch is not None
    return next(target for target in latch.terminator.targets if target not in form.twin.blocks)
