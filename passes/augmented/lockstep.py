"""Loops of the forward sweep whose iterations can run in lockstep, because a sum in order waits in a loop inside.

Input   a forward sweep that is complete, the analyses of its primal.
Output  `Lockstep`: a loop around innermost loops, which of its instructions differ between iterations.
Method  All iterations take the same way: their number is known before the loop, and branches, also those that end the
        loops inside, do not depend on the iteration. What iterations would access in another order than before is
        told apart by its objects, or by subscripts. A number that one iteration hands on to the next is used in the
        block in which it is made.
Limit   loops around innermost loops that are left at their end, after as many iterations in each one of the outer loop.

    for i: s = b[i]; for k: s += a[i, k] * x[k]; y[i] = s        rows i, i + 1, … wait for their own sums only
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from irad.ir import instructions as ir
from irad.ir.cfg import ControlFlow, control_flow
from irad.ir.dominance import DominatorTree, dominators
from irad.ir.instructions import Instruction, Load, Phi, Store
from irad.ir.loops import Loop, LoopNest, loop_nest
from irad.ir.module import Block
from irad.ir.trip_count import AffineVariable, TripCount, affine_variables, trip_count
from irad.ir.types import FloatType
from irad.ir.values import Value
from irad.passes.analysis.callees import is_elementary
from irad.passes.augmented.primal import AugmentedPrimal
from irad.passes.subscripts.separation import MOST_WRITES, Separation

_MOST_INSTRUCTIONS: Final = 160
_REORDERED: Final = frozenset({"fast", "reassoc"})


@dataclass(frozen=True, eq=False, slots=True)
class Lockstep:
    """A loop whose iterations can run in lockstep.

    Attributes:
        loop: left at its end only.
        count: how often it takes its back edge.
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
    wanted = [loop for loop in augmented.unit.loops.loops if any(map(_sums_in_order, loop.children))]
    if not wanted:
        return []
    finder = _Finder(augmented, primal_of, separation)
    return [found for loop in wanted if (found := finder.look_at(loop)) is not None]


def _sums_in_order(loop: Loop) -> bool:
    """Whether an innermost loop hands on a float that it computes from the one before."""
    if loop.children or loop.latch is None:
        return False
    nexts = (phi.value_from(loop.latch) for phi in loop.header.phis() if isinstance(phi.type, FloatType))
    return any(
        isinstance(value, ir.Binary) and value.block in loop.blocks and _REORDERED.isdisjoint(value.flags)
        for value in nexts
    )


def _ends_at_its_end(loop: Loop) -> bool:
    """Whether a loop has none inside, and is left at its end only: then what is behind it is later in the order."""
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
        """What is needed to run a loop in lockstep; None where that cannot be done, or gains nothing."""
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
        homes = {phi: block for phi, block in handed_on.items() if block is not None}
        return Lockstep(loop, count, affine, homes, varying)

    def _has_shape(self, loop: Loop) -> bool:
        """Whether it and the loops inside are left at their end only, it by values that phis take."""
        if loop.preheader is None or len(loop.exits) != 1 or not all(map(_ends_at_its_end, loop.children)):
            return False
        ((last, end),) = loop.exits
        if last is not loop.latch or self.cfg.predecessors[end] != (last,):
            return False
        users = (user for block in loop.order for inst in block.instructions for user in inst.users)
        return all(user.block in loop.blocks or (isinstance(user, Phi) and user.block is end) for user in users)

    def _has_known_code(self, loop: Loop) -> bool:
        """Whether a loop accesses the tape, shadows and the primal's memory as the primal does, and is not too long."""
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
        """Whether no access comes before one of an earlier iteration that it depends on."""
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
        """Whether two instructions are in one of the loops inside."""
        assert earlier.block is not None
        assert later.block is not None
        around = self.nest.loop_of(earlier.block)
        return around is not loop and around is self.nest.loop_of(later.block)

    def _are_apart(self, loop: Loop, earlier: Instruction, later: Instruction) -> bool:
        """Whether an access of the primal touches nothing that another touched in an earlier iteration of a loop."""
        unit = self.augmented.unit
        first, second = (access.reads | access.writes for access in map(unit.mod_ref.of, (earlier, later)))
        if first and second and not unit.points_to.overlapping(first) & second:
            return True
        return self.separation.is_apart_across(loop, earlier, later)


def _varying(loop: Loop) -> frozenset[Value]:
    """What differs between iterations: their numbers, what they load and store, and what depends on that."""
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
