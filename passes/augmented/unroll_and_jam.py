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

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Final

from irad.ir import instructions as ir, types
from irad.ir.builder import Builder
from irad.ir.cfg import ControlFlow, control_flow
from irad.ir.clone import clone_instruction
from irad.ir.dominance import DominatorTree, dominators
from irad.ir.instructions import Instruction, Load, Phi, Store
from irad.ir.loops import Loop, LoopNest, loop_nest
from irad.ir.module import Block
from irad.ir.trip_count import AffineVariable, TripCount, affine_variables, trip_count
from irad.ir.types import FloatType, PointerType
from irad.ir.values import Value, const_int
from irad.passes.augmented.primal import AugmentedPrimal
from irad.passes.callees import is_elementary
from irad.passes.subscripts.separation import MOST_WRITES, Separation
from irad.records import dataclass

# Loops of the forward sweep whose iterations can run in lockstep, because a sum in order waits in a loop inside.
#
# Input   a forward sweep that is complete, the analyses of its primal.
# Output  `Lockstep`: a loop around innermost loops, which of its instructions differ between iterations.
# Method  All iterations take the same way: their number is known before the loop, and branches, also those that end the
#         loops inside, do not depend on the iteration. What iterations would access in another order than before is
#         told apart by its objects, or by subscripts. A number that one iteration passes on to the next is used in the
#         block in which it is made.
# Limit   loops around innermost loops that are left at their end, after as many iterations in each one of the outer
# loop.
#
#     for i: s = b[i]; for k: s += a[i, k] * x[k]; y[i] = s        rows i, i + 1, … wait for their own sums only

# The second version holds four copies of the loop, so a long one is left alone.
_MOST_INSTRUCTIONS: Final = 160
_REORDERED: Final = frozenset({"fast", "reassoc"})


@dataclass(frozen=True, eq=False, slots=True)
class Lockstep:
    """A loop whose iterations can run in lockstep.

    Attributes:
        loop: left at its end only.
        count: number of times it takes its back edge.
        affine: its variables that are known in advance.
        handed_on: its other variables, each with the block that uses it and makes its next value.
        varying: the instructions that each iteration runs by itself.
    """

    loop: Loop
    count: TripCount
    affine: dict[Phi, AffineVariable]
    handed_on: dict[Phi, Block]
    varying: frozenset[Value]


def lockstep_loops(
    augmented: AugmentedPrimal, primal_of: Mapping[Value, Instruction], separation: Separation
) -> list[Lockstep]:
    """Finds them.

    Args:
        augmented: the forward sweep.
        primal_of: the primal instruction of each of its instructions that has one.
        separation: tells elements of arrays of the primal apart.
    """
    # Only sums in order wait for each other; LLVM makes vectors of those that it may reorder.
    wanted = [loop for loop in augmented.unit.loops.loops if any(map(_sums_in_order, loop.children))]
    if not wanted:
        return []
    finder = _Finder(augmented, primal_of, separation)
    return [found for loop in wanted if (found := finder.look_at(loop)) is not None]


def _sums_in_order(loop: Loop) -> bool:
    """True if an innermost loop carries a float that it computes from the previous one."""
    if loop.children or loop.latch is None:
        return False
    nexts = (phi.value_from(loop.latch) for phi in loop.header.phis() if isinstance(phi.type, FloatType))
    return any(
        isinstance(value, ir.Binary) and value.block in loop.blocks and _REORDERED.isdisjoint(value.flags)
        for value in nexts
    )


def _ends_at_its_end(loop: Loop) -> bool:
    """True if a loop has none inside, and is left at its end only: then what follows it is later in the order."""
    return not loop.children and {block for block, _ in loop.exits} == {loop.latch}


@dataclass(eq=False, slots=True)
class _Finder:
    """Looks at the loops of one forward sweep, whose blocks are other ones since the plan was carried out."""

    augmented: AugmentedPrimal
    primal_of: Mapping[Value, Instruction]
    separation: Separation
    cfg: ControlFlow = field(init=False)
    dominators: DominatorTree = field(init=False)
    nest: LoopNest = field(init=False)

    def __post_init__(self) -> None:
        self.cfg = control_flow(self.augmented.function)
        self.dominators = dominators(self.cfg)
        self.nest = loop_nest(self.cfg, self.dominators)

    def look_at(self, primal: Loop) -> Lockstep | None:
        """Data for running a loop in lockstep; None where that cannot be done, or gains nothing."""
        header = self.augmented.block(primal.header)
        loop = next((each for each in self.nest.loops if each.header is header), None)
        if loop is None or not self._has_shape(loop) or not self._has_known_code(loop):
            return None
        assert loop.latch is not None
        count = trip_count(loop, self.cfg, self.dominators, loop.latch)
        affine = affine_variables(loop)
        handed_on = {phi: self._home(phi, loop) for phi in loop.header.phis() if phi not in affine}
        varying = _varying(loop)
        if count is None or any(block is None for block in handed_on.values()):
            return None
        if any(block.terminator in varying for block in loop.order if block is not loop.latch):
            return None
        if not self._keeps_order(loop, primal):
            return None
        blocks_of_phis = {phi: block for phi, block in handed_on.items() if block is not None}
        return Lockstep(loop, count, affine, blocks_of_phis, varying)

    def _has_shape(self, loop: Loop) -> bool:
        """True if it and the loops inside are left at their end only, it by values that phis take."""
        if loop.preheader is None or len(loop.exits) != 1 or not all(map(_ends_at_its_end, loop.children)):
            return False
        ((last, end),) = loop.exits
        if last is not loop.latch or self.cfg.predecessors[end] != (last,):
            return False
        users = (user for block in loop.order for inst in block.instructions for user in inst.users)
        return all(user.block in loop.blocks or (isinstance(user, Phi) and user.block is end) for user in users)

    def _has_known_code(self, loop: Loop) -> bool:
        """True if a loop accesses the tape, shadows and the primal's memory as the primal does, and is not too long."""
        insts = [inst for block in loop.order for inst in block.instructions]
        return len(insts) <= _MOST_INSTRUCTIONS and all(map(self._is_known, insts))

    def _is_known(self, inst: Instruction) -> bool:
        kind = self.augmented.scopes.kind_of(inst.metadata)
        match inst:
            case Load():
                from_shadow = kind is not None and kind[0] not in ("tape", "primal")
                return inst.is_plain and (inst in self.primal_of or from_shadow)
            case Store():
                to_tape = kind is not None and kind[0] == "tape"
                return inst.is_plain and (inst in self.primal_of or to_tape)
            case ir.CallSite(callee=callee):
                return is_elementary(callee, self.augmented.unit.registry)
            case ir.Binary() | ir.Unary() | ir.Cast() | ir.ICmp() | ir.FCmp() | ir.Select() | ir.Freeze() | Phi():
                return True
            case _:
                return isinstance(inst, ir.GetElementPtr | ir.Br | ir.CondBr)

    def _home(self, phi: Phi, loop: Loop) -> Block | None:
        """The block, outside of loops inside, that makes the next value of a variable and alone uses this one."""
        assert loop.latch is not None
        following = phi.value_from(loop.latch)
        home = following.block if isinstance(following, Instruction) else None
        if home is None or self.nest.loop_of(home) is not loop:
            return None
        inside = [user for user in phi.users if user.block in loop.blocks]
        return home if all(user.block is home and not isinstance(user, Phi) for user in inside) else None

    # -------------------------------------------------------------------------------------------- memory

    def _keeps_order(self, loop: Loop, primal: Loop) -> bool:
        """True if no access comes before one of an earlier iteration that it depends on."""
        accesses = [
            (index, inst, self.primal_of[inst])
            for index, block in enumerate(loop.order)
            for inst in block.instructions
            if isinstance(inst, Load | Store) and inst in self.primal_of
        ]
        if sum(isinstance(inst, Store) for _, inst, _ in accesses) > MOST_WRITES:
            return False
        return all(
            self._are_apart(primal, first, second)
            for at, earlier, first in accesses
            for place, later, second in accesses
            if isinstance(first, Store) or isinstance(second, Store)
            if place < at or self._repeat_together(earlier, later, loop)
        )

    def _repeat_together(self, earlier: Instruction, later: Instruction, loop: Loop) -> bool:
        """True if two instructions are in one of the loops inside."""
        assert earlier.block is not None
        assert later.block is not None
        around = self.nest.loop_of(earlier.block)
        return around is not loop and around is self.nest.loop_of(later.block)

    def _are_apart(self, loop: Loop, earlier: Instruction, later: Instruction) -> bool:
        """True if an access of the primal touches nothing that another touched in an earlier iteration of a loop."""
        unit = self.augmented.unit
        first, second = (access.reads | access.writes for access in map(unit.mod_ref.of, (earlier, later)))
        if first and second and not unit.points_to.overlapping(first) & second:
            return True
        return self.separation.is_apart_across(loop, earlier, later)


def _varying(loop: Loop) -> frozenset[Value]:
    """Values that differ between iterations: their numbers, the values they load and store, and dependent values."""
    found: set[Value] = set(loop.header.phis())
    size = -1
    while size < len(found):
        size = len(found)
        found.update(_depending(loop, found))
    return frozenset(found)


def _depending(loop: Loop, found: set[Value]) -> Iterator[Value]:
    for block in loop.order:
        for inst in block.instructions:
            if isinstance(inst, Load | Store) or not found.isdisjoint(inst.operands):
                yield inst


# An addition waits four cycles for the one before it in its sum: as many rows fill that time.
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
        """Makes the second version of the loop."""
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
        """Makes the phis of a block; returns each with its lane and its copy, without the values from the loop."""
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
        """Copies a block: the code that all lanes share, then lane by lane, to keep its accesses in order."""
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
        """Ends the second version; the original loop runs the remaining iterations."""
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
