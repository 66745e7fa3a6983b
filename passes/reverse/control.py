"""Reversed control flow.

Every live block of the primal has an adjoint block. Its end decides where the primal came from:

    entry                     the sweep ends
    loop header               iteration 0: out of the loop, to the preheader; else to the latch of the iteration before
    one predecessor           there
    several                   the forward sweep notes the number of the predecessor in a phi; a switch on it

Edges get blocks of their own: there the cotangents of phis go to their incoming values, and an edge that enters a
reversed loop (an exit of the primal's) sets the loop's iteration number to that of its last iteration. A part of the
graph in which nothing is active is stepped over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import TypeAlias

from irad.errors import InternalError
from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.cfg import ControlFlow, control_flow, edges_from
from irad.ir.dominance import DominatorTree, dominators
from irad.ir.instructions import Br, CondBr, Phi
from irad.ir.loops import Loop, loop_nest
from irad.ir.module import Block
from irad.ir.trip_count import TripCount, is_invariant, trip_count
from irad.ir.values import ConstantInt, Value, const_int
from irad.ir.worklist import reachable
from irad.passes.augmented.primal import AugmentedPrimal
from irad.passes.reverse.sweep import LoopState, ReversePlace, Sweep
from irad.records import dataclass

_Taken: TypeAlias = Sequence[Mapping[Phi, Value]]
"""The cotangents that an edge takes from the phis of a block, lane by lane."""


@dataclass(eq=False, slots=True)
class AugmentedLoops:
    """Facts about the loops of the forward sweep for the reverse sweep; counters are made when asked for.

    Attributes:
        twins: primal loop → the loop of the forward sweep.
        trips: backward-jump counts of loops left through one live exit, as values available at the preheader.
        counters: iteration counters, header phis.
        exit_counts: the number of the last iteration, by loop and exit block.
        innermost: block of the forward sweep → the innermost primal loop around it.
    """

    augmented: AugmentedPrimal
    twins: dict[Loop, Loop] = field(default_factory=dict)
    trips: dict[Loop, Value | None] = field(default_factory=dict)
    counters: dict[Loop, Phi] = field(default_factory=dict)
    exit_counts: dict[tuple[Loop, Block], Value] = field(default_factory=dict)
    innermost: dict[Block, Loop] = field(default_factory=dict)
    cfg: ControlFlow = field(init=False)
    dominators: DominatorTree = field(init=False)

    def __post_init__(self) -> None:
        self.cfg = control_flow(self.augmented.function)
        self.dominators = dominators(self.cfg)
        nest = loop_nest(self.cfg, self.dominators)
        by_header = {loop.header: loop for loop in nest.loops}
        for loop in self.augmented.unit.loops.loops:  # outer loops first
            twin = by_header[self.augmented.block(loop.header)]
            self.twins[loop] = twin
            self.innermost.update(dict.fromkeys(twin.order, loop))

    def live_exits(self, loop: Loop) -> list[tuple[Block, Block]]:
        """The exit edges after which the reverse sweep may run."""
        return [(a, b) for a, b in loop.exits if b in self.augmented.unit.live]

    def trip(self, loop: Loop) -> Value | None:
        """Number of times that the back edge is taken, if known before the loop starts; as a value of the preheader."""
        if loop not in self.trips:
            self.trips[loop] = self._find_trip(loop)
        return self.trips[loop]

    def _find_trip(self, loop: Loop) -> Value | None:
        found, twin = self._counted(loop), self.twins[loop]
        if found is None or twin.preheader is None:
            return None
        return found.emit(Builder.before(twin.preheader.terminator))

    def _counted(self, loop: Loop) -> TripCount | None:
        exits = self.live_exits(loop)
        # With several exits only the run knows which ends the loop, and so the count; the oracle records every loop.
        if self.augmented.unit.everything or len({a for a, _ in exits}) != 1:
            return None
        return trip_count(self.twins[loop], self.cfg, self.dominators, self.augmented.block(exits[0][0]))

    def is_counted(self, loop: Loop) -> bool:
        """True if `trip` is known."""
        return self._counted(loop) is not None and self.twins[loop].preheader is not None

    def runs_alike(self, loop: Loop, outer: Loop) -> bool:
        """True if a loop runs in each iteration of the one around it, or in none, always equally often."""
        found, around = self._counted(loop), self.twins[outer]
        if found is None or around.preheader is None or self._entered_if(loop, outer) is None:
            return False
        return is_invariant(found.start, around) and is_invariant(found.bound, around)

    def trip_before(self, loop: Loop, outer: Loop) -> Value:
        """Trip count of a loop, the same in all outer iterations, as a value before the outer one; -1: never runs."""
        found, entered, preheader = self._counted(loop), self._entered_if(loop, outer), self.twins[outer].preheader
        assert found is not None
        assert entered is not None
        assert preheader is not None
        build = Builder.before(preheader.terminator)
        # Before the outer loop nothing tells yet that the inner one runs, so its bounds may be poison.
        trip = replace(found, speculative=True).emit(build)
        condition, wanted = entered
        if condition is None:
            return trip
        # The condition may be poison where the outer loop never asks for it.
        never, frozen = const_int(types.I64, -1), build.freeze(condition)
        return build.select(frozen, trip, never) if wanted else build.select(frozen, never, trip)

    def _entered_if(self, loop: Loop, outer: Loop) -> tuple[Value | None, bool] | None:
        """The condition under which each iteration enters an inner loop, and its value then.

        The condition is None if all iterations do. The result is None if it is not known before the outer loop.
        """
        around, place = self.twins[outer], self.twins[loop].preheader
        assert place is not None
        ends = [*around.latches, *(block for block, _ in around.exits)]
        condition, wanted = None, True
        while not all(self.dominators.dominates(place, end) for end in ends):
            before = self.cfg.predecessors[place]
            branch = before[0].terminator if len(before) == 1 and before[0] in around.blocks else None
            match branch:
                case Br():
                    pass
                case CondBr(operands=[choice, *_], targets=[yes, no]) if (
                    condition is None and yes is not no and is_invariant(choice, around)
                ):
                    condition, wanted = choice, yes is place
                case _:
                    return None
            place = before[0]
        return condition, wanted

    def counter(self, loop: Loop) -> Phi:
        """The number of the current iteration, from 0."""
        found = self.counters.get(loop)
        if found is not None:
            return found
        twin = self.twins[loop]
        if twin.preheader is None or twin.latch is None:
            raise InternalError(f"a loop of {self.augmented.function.name} is not in simplified form")
        found = Builder.at_start(twin.header).phi(types.I64, name="iteration")
        advanced = Builder.before(twin.latch.terminator).add(
            found, const_int(types.I64, 1), ("nuw",), name="iteration.next"
        )
        found.add_incoming(const_int(types.I64, 0), twin.preheader)
        found.add_incoming(advanced, twin.latch)
        self.counters[loop] = found
        return found

    def last_iteration(self, loop: Loop, exit_block: Block) -> Value:
        """The number of the iteration in which the loop was left for a block outside."""
        trip = self.trip(loop)
        if trip is not None:
            return trip
        key = (loop, exit_block)
        if key not in self.exit_counts:
            self.exit_counts[key] = self.carried_out(loop, exit_block, self.counter(loop), const_int(types.I64, 0))
        return self.exit_counts[key]

    def carried_out(self, loop: Loop, exit_block: Block, value: Value, otherwise: Value) -> Value:
        """A value of the loop's last iteration, as a phi in a block outside."""
        twin, block = self.twins[loop], self.augmented.block(exit_block)
        everyone = edges_from(self.cfg.predecessors[block], block)
        incoming = [(value if p in twin.blocks else otherwise, p) for p in everyone]
        return Builder.at_start(block).phi(value.type, incoming, name="last")


def reversed_order(sweep: Sweep) -> list[Block]:
    """The live blocks, last first."""
    unit = sweep.augmented.unit
    return [block for block in reversed(unit.cfg.order) if block in unit.live]


def enter_loops(sweep: Sweep) -> None:
    """Makes the iteration slots."""
    for loop in sweep.augmented.unit.loops.loops:
        slot = sweep.new_slot(types.I64, const_int(types.I64, 0))
        sweep.loops[loop] = LoopState(loop, slot)


@dataclass(eq=False, slots=True)
class Control:
    """Ends adjoint blocks."""

    sweep: Sweep
    loops: AugmentedLoops
    busy: frozenset[Block]
    origins: dict[Block, Value] = field(default_factory=dict)

    def finish(self, block: Block) -> None:
        """Emits the end of a block's adjoint: phis, and the way back."""
        sweep = self.sweep
        unit = sweep.augmented.unit
        active = [self.taken(block) for _ in sweep.each_lane()]
        predecessors = [p for p in unit.cfg.predecessors[block] if p in unit.live]
        if not predecessors:
            return
        loop = unit.loops.loop_of(block)
        if loop is not None and loop.header is block:
            self.leave_iteration(block, loop, active)
            return
        # Where nothing is active there is no adjoint to run, so the way back goes past it.
        target = block if any(active) else self.skip(block)
        if target is not block:
            sweep.build.br(self.edge(target, block, active))
        elif len(predecessors) == 1:
            sweep.build.br(self.edge(predecessors[0], block, active))
        else:
            self.branch_back(block, predecessors, active)

    def taken(self, block: Block) -> dict[Phi, Value]:
        """The cotangents of phis."""
        cotangents = {phi: self.sweep.take(phi) for phi in block.phis()}
        return {phi: cotangent for phi, cotangent in cotangents.items() if cotangent is not None}

    def branch_back(self, block: Block, predecessors: Sequence[Block], active: _Taken) -> None:
        """Goes to the predecessor that the forward sweep noted."""
        sweep = self.sweep
        origin = sweep.need(self.origin(block, predecessors))
        edges = [self.edge(p, block, active) for p in predecessors]
        if len(edges) == 2:
            is_second = sweep.build.icmp("ne", origin, const_int(origin.type, 0))
            sweep.build.cond_br(is_second, edges[1], edges[0])
            return
        cases = [(_case(origin, i), edge) for i, edge in enumerate(edges) if i > 0]
        sweep.build.switch(origin, edges[0], cases)

    def origin(self, block: Block, predecessors: Sequence[Block]) -> Value:
        """A phi of the forward sweep: which of the live predecessors a block was entered from."""
        found = self.origins.get(block)
        if found is None:
            augmented = self.sweep.augmented
            twin = augmented.block(block)
            # The number may go on the tape at every such join, so it is as narrow as can be.
            type_ = types.I8 if len(predecessors) < 128 else types.I32
            decision = self.decision(block, predecessors)
            if decision is not None:
                condition, second = augmented.value(decision[0]), decision[1]
                numbered = (const_int(type_, int(second)), const_int(type_, int(not second)))
                self.origins[block] = found = Builder.at_start(twin).select(condition, *numbered, name="from")
                return found
            numbers = {augmented.block(p): i for i, p in enumerate(predecessors)}
            everyone = edges_from(self.loops.cfg.predecessors[twin], twin)
            # No reverse sweep follows a dead predecessor, so any number will do for it.
            incoming: list[tuple[Value, Block]] = [(const_int(type_, numbers.get(p, 0)), p) for p in everyone]
            found = Builder.at_start(twin).phi(type_, incoming, name="from")
            self.origins[block] = found
        return found

    def decision(self, block: Block, predecessors: Sequence[Block]) -> tuple[Value, bool] | None:
        """The condition that decides which of two predecessors a block is entered from, and whether it is the second.

        It may be recomputed, which is made use of where all iterations of a loop decide alike, and where a loop
        must not save anything in its iterations.
        """
        unit = self.sweep.augmented.unit
        top = unit.dominators.immediate[block]
        if len(unit.cfg.predecessors[block]) != 2 or len(predecessors) != 2:
            return None
        if top is None or unit.loops.loop_of(top) is not unit.loops.loop_of(block):
            return None
        branch = top.terminator
        if not isinstance(branch, CondBr) or branch.targets[0] is branch.targets[1]:
            return None
        loop = unit.loops.loop_of(block)
        is_same = loop is not None and is_invariant(branch.operands[0], loop) and not unit.everything
        # The tape of a derivative inside a kernel has no room for a byte per iteration.
        if not is_same and not unit.program.request.host.is_inside:
            return None

        def is_behind(target: Block, predecessor: Block) -> bool:
            if target is block:
                return predecessor is top
            return list(unit.cfg.predecessors[target]) == [top] and unit.dominators.dominates(target, predecessor)

        for second in (False, True):
            of_true, of_false = predecessors[second], predecessors[not second]
            if is_behind(branch.targets[0], of_true) and is_behind(branch.targets[1], of_false):
                return branch.operands[0], second
        return None

    def leave_iteration(self, block: Block, loop: Loop, active: _Taken) -> None:
        """At a loop header: the previous iteration, or out of the loop."""
        sweep = self.sweep
        assert loop.preheader is not None
        assert loop.latch is not None
        state = sweep.loops[loop]
        number = sweep.build.load(types.I64, state.iteration)
        is_first = sweep.build.icmp("eq", number, const_int(types.I64, 0))
        back = sweep.function.add_block(f"{loop.header.name}.back")
        sweep.build.cond_br(is_first, self.edge(loop.preheader, block, active), back)
        sweep.build = Builder(back)
        sweep.build.store(sweep.build.sub(number, const_int(types.I64, 1), ("nuw",)), state.iteration)
        state.back = ReversePlace(back, loop.latch)
        sweep.build.br(self.edge(loop.latch, block, active))

    def edge(self, source: Block, block: Block, active: _Taken) -> Block:
        """The block of the reversed edge from ``block`` to ``source``."""
        sweep = self.sweep
        made = sweep.function.add_block(f"{block.name}.to.{source.name}")
        outer = sweep.build
        sweep.build = Builder(made)
        for _, taken in zip(sweep.each_lane(), active, strict=True):
            for phi, cotangent in taken.items():
                sweep.accumulate(phi.value_from(source), cotangent)
        place = ReversePlace(made, source)
        for loop in self.loops_around(source):
            if not loop.contains(block):
                self.enter(loop, block, place)
        sweep.build.br(sweep.places[source].block)
        sweep.build = outer
        return made

    def enter(self, loop: Loop, exit_block: Block, place: ReversePlace) -> None:
        """Sets the iteration number of a loop that the reverse sweep enters."""
        sweep = self.sweep
        state = sweep.loops[loop]
        at_exit = sweep.places[exit_block]
        number = sweep.need_at(self.loops.last_iteration(loop, exit_block), at_exit)
        sweep.build.store(number, state.iteration)
        state.entries.append((place, exit_block))

    def loops_around(self, block: Block) -> list[Loop]:
        """The loops around a block, outermost first."""
        found: list[Loop] = []
        loop = self.sweep.augmented.unit.loops.loop_of(block)
        while loop is not None:
            found.append(loop)
            loop = loop.parent
        return found[::-1]

    # -------------------------------------------------------------------------------------------- stepping over

    def skip(self, block: Block) -> Block:
        """The nearest dominator such that nothing between it and the block is active, or the block itself."""
        unit = self.sweep.augmented.unit
        if unit.everything:
            return block
        here = unit.loops.loop_of(block)
        candidate = unit.dominators.immediate[block]
        while candidate is not None:
            around = self.outermost_without(candidate, here)
            if around is None:
                break
            candidate = around.preheader
        if candidate is None or (len(unit.cfg.predecessors[block]) == 1 and candidate in unit.cfg.predecessors[block]):
            return block
        return candidate if self.is_idle_between(candidate, block) else block

    def outermost_without(self, block: Block, inner: Loop | None) -> Loop | None:
        """The outermost loop around ``block`` that is not around a block whose innermost loop is ``inner``."""
        for loop in self.loops_around(block):
            if inner is None or not loop.contains(inner):
                return loop
        return None

    def is_idle_between(self, start: Block, end: Block) -> bool:
        """True if no block on a way from ``start`` to ``end``, both excluded, has adjoint code."""
        unit = self.sweep.augmented.unit

        def before(block: Block) -> list[Block]:
            return [p for p in unit.cfg.predecessors[block] if p in unit.live and p not in (start, end)]

        return not any(block in self.busy for block in reachable(before(end), before))


def _case(origin: Value, number: int) -> ConstantInt:
    return const_int(origin.type, number)
