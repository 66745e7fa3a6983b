"""Innermost loops of a reverse sweep go upwards where their order does not matter.

Input   a reverse sweep in which the plan has been carried out, loops without a second version.
Output  the same function.
Method  A reversed loop counts down. If its iterations pass on nothing but sums, and what one writes no other accesses
        but to add to it, the number of an iteration is taken from the other end.
Why     Of what is loaded downwards, LLVM turns each vector around.

    loop: %i = load i64, ptr %iteration        guard: %last = load i64, ptr %iteration
          …                                     loop: %left = load i64, ptr %iteration
                                                      %i = sub i64 %last, %left
"""

from __future__ import annotations

from collections.abc import Iterable

from irad.ir.builder import Builder
from irad.ir.instructions import ICmp, Load, replace_uses
from irad.ir.types import I64
from irad.passes.reverse.increments import Candidate, described, enter_by
from irad.passes.reverse.neighbours import commute
from irad.passes.reverse.sweep import LoopState, Sweep


def let_loops_ascend(sweep: Sweep, loops: Iterable[LoopState]) -> None:
    """Turns loops of a reverse sweep around where that changes no result but by the order of sums."""
    for state in loops:
        found = described(sweep, state)
        if found is not None and commute(sweep, found):
            _turn_around(sweep, found)


def _turn_around(sweep: Sweep, found: Candidate) -> None:
    body, counter = found.body, found.state.iteration
    ends = body.terminator.operands[0]
    assert isinstance(ends, ICmp)
    counting = ends.operands[0]  # the other loads are of the iteration whose values are needed
    numbers = [i for i in body.instructions if isinstance(i, Load) and i.operands[0] is counter and i is not counting]
    if not numbers:
        return
    guard = sweep.function.add_block(f"{body.name}.first")
    enter_by(sweep.function, found, guard)
    build = Builder(guard)
    last = build.load(I64, counter)
    build.br(body)
    for number in numbers:
        build = Builder.after(number)
        left = build.load(I64, counter)
        replace_uses(number, build.sub(last, left, ("nuw",)))
        number.erase()
