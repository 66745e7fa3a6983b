"""Unroll and jam: four iterations of an outer loop run side by side, so that their sums in order do not wait alone.

Input   a forward sweep that is complete.
Output  the same, with a second version of such loops (`lockstep` says which) in front of them, for all but the last
        iterations.
Method  Each instruction that differs between iterations is there four times, in its block; branches, counters of loops
        inside and all else that is the same are there once. No operation changes, nor the order of a sum: the results
        are the same bits.
Why     An addition takes four cycles until the next in its sum can start, in which two could start in each.

    for i: s = 0; for k: s += a[i, k] * x[k]
    →  for i in steps of 4: s0 = s1 = s2 = s3 = 0; for k: s0 += a[i, k] * x[k]; s1 += a[i + 1, k] * x[k]; …
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.clone import clone_instruction
from irad.ir.instructions import Instruction, Phi
from irad.ir.module import Block
from irad.ir.trip_count import AffineVariable
from irad.ir.types import PointerType
from irad.ir.values import Value, const_int
from irad.passes.augmented.lockstep import Lockstep, lockstep_loops
from irad.passes.augmented.primal import AugmentedPrimal
from irad.passes.subscripts.separation import Separation

_LANES: Final = 4


def unroll_and_jam(augmented: AugmentedPrimal, primal_of: Mapping[Value, Instruction], separation: Separation) -> None:
    """Gives the loops of a forward sweep that gain from it a second version.

    Args:
        augmented: the forward sweep.
        primal_of: the primal instruction of each of its instructions that has one.
        separation: tells elements of arrays of the primal apart.
    """
    for found in lockstep_loops(augmented, primal_of, separation):
        _Jam(augmented, found).carry_out()


@dataclass(eq=False, slots=True)
class _Jam:
    """The second version of one loop.

    Attributes:
        lanes: by lane, what stands for values and blocks of the loop.
    """

    augmented: AugmentedPrimal
    found: Lockstep
    lanes: list[dict[Value, Value]] = field(default_factory=lambda: [{} for _ in range(_LANES)])

    def carry_out(self) -> None:
        """Makes it."""
        loop, function = self.found.loop, self.augmented.function
        assert loop.preheader is not None
        for block in loop.order:
            twin = function.add_block(f"{block.name}.lockstep")
            for lane in self.lanes:
                lane[block] = twin
        every = self._enter(loop.preheader)
        phis = [phi for block in loop.order for phi in self._begin(block)]
        for block in loop.order:
            self._copy(block)
        for phi, lane, copy in phis:
            for value, block in phi.incoming():
                if block is not loop.preheader:
                    in_lane = self.lanes[-1] if phi.block is loop.header else lane
                    copy.add_incoming(in_lane.get(value, value), self._block(block))
        self._leave(every)

    def _block(self, block: Block) -> Block:
        found = self.lanes[0][block]
        assert isinstance(found, Block)
        return found

    def _enter(self, preheader: Block) -> Value:
        """Has the loop start with the second version if there are enough iterations; returns their number."""
        build = Builder.before(preheader.terminator)
        every = build.add(self.found.count.emit(build), const_int(types.I64, 1))
        is_enough = build.icmp("uge", every, const_int(types.I64, _LANES))
        preheader.terminator.erase()
        Builder(preheader).cond_br(is_enough, self._block(self.found.loop.header), self.found.loop.header)
        return every

    def _begin(self, block: Block) -> list[tuple[Phi, dict[Value, Value], Phi]]:
        """Makes the phis of a block; returns each with its lane and its copy, which lacks what comes from the loop."""
        loop, build = self.found.loop, Builder(self._block(block))
        made = [(phi, lane, build.phi(phi.type)) for phi in block.phis() for lane in self._lanes_of(phi)]
        for phi, lane, copy in made:
            copy.origin, copy.metadata = phi, dict(phi.metadata)
            self._note(phi, lane, copy)
        if block is loop.header:
            assert loop.preheader is not None
            for phi, _, copy in made:
                copy.add_incoming(phi.value_from(loop.preheader), loop.preheader)
            for phi, variable in self.found.affine.items():
                for number, lane in enumerate(self.lanes[1:], 1):
                    lane[phi] = _further(build, self.lanes[0][phi], variable, number)
        return made

    def _lanes_of(self, phi: Phi) -> list[dict[Value, Value]]:
        """The lanes in which a phi has a copy: all, or the first where they share it, or follow from that."""
        is_first = phi.block is self.found.loop.header or phi not in self.found.varying
        return self.lanes[:1] if is_first else self.lanes

    def _note(self, inst: Instruction, lane: dict[Value, Value], copy: Value) -> None:
        for each in (lane,) if inst in self.found.varying else self.lanes:
            each[inst] = copy

    def _copy(self, block: Block) -> None:
        """Copies a block: what all lanes share, then lane by lane, so that accesses of a block stay in order."""
        build, rest = Builder(self._block(block)), block.instructions[len(block.phis()) : -1]
        for inst in rest:
            if inst not in self.found.varying:
                self._clone(build, inst, self.lanes[0])
        for number, lane in enumerate(self.lanes):
            for phi, home in self.found.handed_on.items():
                if home is block and number:
                    assert self.found.loop.latch is not None
                    lane[phi] = self.lanes[number - 1][phi.value_from(self.found.loop.latch)]
            for inst in rest:
                if inst in self.found.varying:
                    self._clone(build, inst, lane)
        if block is not self.found.loop.latch:
            build.insert(clone_instruction(block.terminator, self.lanes[0]))

    def _clone(self, build: Builder, inst: Instruction, lane: dict[Value, Value]) -> None:
        copy = clone_instruction(inst, lane)
        build.insert(copy)
        self._note(inst, lane, copy)

    def _leave(self, every: Value) -> None:
        """Ends the second version; what it leaves over, the loop does as it was."""
        loop, last = self.found.loop, self.lanes[-1]
        assert loop.preheader is not None
        assert loop.latch is not None
        header, latch, ((_, end),) = self._block(loop.header), self._block(loop.latch), loop.exits
        over = self.augmented.function.add_block(f"{loop.header.name}.rest")
        one = const_int(types.I64, 1)
        done = Builder(header).phi(types.I64, [(const_int(types.I64, 0), loop.preheader)])
        build = Builder(latch)
        more = build.add(done, one, ("nuw", "nsw"))
        done.add_incoming(more, latch)
        groups = Builder.before(loop.preheader.terminator).udiv(every, const_int(types.I64, _LANES))
        build.cond_br(build.icmp("ult", more, groups), header, over)
        build = Builder(over)
        left = build.urem(every, const_int(types.I64, _LANES))
        build.cond_br(build.icmp("eq", left, const_int(types.I64, 0)), end, loop.header)
        for phi in (*loop.header.phis(), *end.phis()):
            value = phi.value_from(loop.latch)
            phi.add_incoming(last.get(value, value), over)


def _further(build: Builder, value: Value, variable: AffineVariable, steps: int) -> Value:
    """An affine variable some iterations later."""
    if isinstance(value.type, PointerType):
        assert isinstance(variable.step, int)
        return build.byte_offset(value, variable.step * steps)
    if isinstance(variable.step, int):
        return build.add(value, const_int(value.type, variable.step * steps))
    return build.add(value, build.mul(variable.step, const_int(value.type, steps)))
