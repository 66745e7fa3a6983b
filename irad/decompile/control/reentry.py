"""Reversed loops that are entered in the middle get one entry.

A loop that is left at several places is entered at several places by the reverse sweep: the last iteration was not run
to its end. Python has no way into the middle of a loop, so a new head decides, in each iteration, where to begin: at
the latch, or in the first reversed iteration at the exit that was taken.

Input   a reverse sweep before its stack slots become values, while no values but needs live across blocks; changed.
"""

from __future__ import annotations

from irad.ir.builder import Builder
from irad.ir.instructions import Br
from irad.ir.loops import Loop, innermost_first
from irad.ir.module import Block
from irad.ir.types import I64
from irad.ir.values import Value, const_int
from irad.passes.reverse.sweep import Sweep

Ways = dict[Block, tuple[list[Loop], Block]]


def give_single_entries(sweep: Sweep) -> None:
    """Makes heads where they are needed."""
    ways = _ways(sweep)
    for loop in innermost_first(_reversed_loops(sweep)):
        assert loop.latch is not None
        regular = sweep.places[loop.latch].block
        if any(loop in entered and target is not regular for entered, target in ways.values()):
            _make_head(sweep, loop, regular, ways)
    by_target: dict[Block, list[Block]] = {}
    for edge, (_, target) in ways.items():
        by_target.setdefault(target, []).append(edge)
    for target, edges in by_target.items():
        entry = target if len(edges) == 1 else sweep.function.add_block(f"{target.name}.enter")
        if entry is not target:
            Builder(entry).br(target)
        for edge in edges:
            edge.terminator.targets = [entry]


def _reversed_loops(sweep: Sweep) -> list[Loop]:
    """The loops of the primal that have an adjoint; those that put an exception together have none."""
    return [loop for loop in sweep.augmented.unit.loops.loops if loop.latch in sweep.places]


def _ways(sweep: Sweep) -> Ways:
    """The edges that enter reversed loops: the loops, and where each leads."""
    found: Ways = {}
    for loop in _reversed_loops(sweep):
        for place, _ in sweep.loops[loop].entries:
            last = place.block.terminator
            assert isinstance(last, Br)
            entered, _ = found.setdefault(place.block, ([], last.targets[0]))
            entered.append(loop)
    return found


def _make_head(sweep: Sweep, loop: Loop, regular: Block, ways: Ways) -> None:
    """A head for one loop; edges into it note by a number where the iteration begins."""
    state = sweep.loops[loop]
    slot = sweep.new_slot(I64, const_int(I64, 0))
    slot.name = "begin"
    head = sweep.function.add_block(f"{loop.header.name}.begin")
    targets: list[Block] = [regular]
    for edge, (entered, target) in list(ways.items()):
        if loop not in entered:
            continue
        if target not in targets:
            targets.append(target)
        Builder.before(edge.terminator).store(const_int(I64, targets.index(target)), slot)
        ways[edge] = entered, head
    if state.back is not None:
        edge = state.back.block
        while regular not in edge.successors:
            (edge,) = edge.successors
        Builder.before(edge.terminator).store(const_int(I64, 0), slot)
        edge.terminator.targets = [head]
    build = Builder(head)
    number: Value = build.load(I64, slot)
    if len(targets) == 2:
        build.cond_br(build.icmp("ne", number, const_int(I64, 0)), targets[1], regular)
    else:
        build.switch(number, regular, [(const_int(I64, i), t) for i, t in enumerate(targets) if i > 0])
