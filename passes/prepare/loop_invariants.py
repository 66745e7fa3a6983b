"""Invariant loads: a value that a loop loads in every iteration is loaded once, before it.

Input   a function in normal form, where its pointers point.
Output  none; the function is rewritten.
Method  inner loops first, a load goes to the preheader of a loop if its address comes from outside, the loop writes to
        no object that it may touch, or to other elements of it (`subscripts`), and every way through the loop runs it.
        Addresses made of what was moved follow.
Why     LLVM does not know that arrays do not overlap if it has seen their data pointers loaded from memory. Inside the
        loop the value would be saved once for each iteration, where it is overwritten later, and its cotangent would go
        to memory each time; outside, the cotangent is summed up in a register.
Limit   elements are distinguished where stores write them, and nothing else does.

    loop:                                              before:
      %c = load double, ptr %centred                     %c = load double, ptr %centred
      store double %sum, ptr %scaled                     br label %loop
      br i1 %more, label %loop, label %end             loop: …
"""

from __future__ import annotations

from collections.abc import Iterable

from irad.ir.cfg import control_flow
from irad.ir.dominance import DominatorTree, dominators
from irad.ir.instructions import Cast, GetElementPtr, Instruction, Load, Phi, Select, Store
from irad.ir.loops import Loop, LoopNest, innermost_first, loop_nest
from irad.ir.module import Block, Function
from irad.ir.trip_count import is_invariant
from irad.ir.values import ConstantInt, Poison, Undef, Value
from irad.ir.worklist import Worklist
from irad.passes.memory.mod_ref import ModRef
from irad.passes.subscripts.separation import MOST_WRITES, Separation
from irad.records import dataclass


def hoist_invariant_loads(
    nest: LoopNest, dominators: DominatorTree, mod_ref: ModRef, separation: Separation | None = None
) -> None:
    """Moves them in all loops of a function; none of the arguments is out of date afterwards.

    Args:
        nest: its loops.
        dominators: dominators of the function.
        mod_ref: its effects on memory.
        separation: tells elements of arrays apart; None where others than the function may write to them.
    """
    for loop in innermost_first(nest.loops):
        if loop.preheader is not None and loop.exits:
            _hoist(loop, loop.preheader, dominators, mod_ref, separation)


def _hoist(
    loop: Loop, preheader: Block, dominators: DominatorTree, mod_ref: ModRef, separation: Separation | None
) -> None:
    loads = [i for block in loop.order for i in block.instructions if isinstance(i, Load) and i.is_plain]
    if not any(is_invariant(load.operands[0], loop) for load in loads):
        return
    points_to, written = mod_ref.points_to, mod_ref.changed_by(loop.order)
    ends = [*loop.latches, *(block for block, _ in loop.exits)]
    moved: set[Instruction] = set()
    for block in loop.order:
        always = all(dominators.dominates(block, end) for end in ends)
        for inst in list(block.instructions):
            match inst:
                # Before the loop, a load that iterations may skip could read what is not there.
                case Load() if always and inst.is_plain:
                    touched = points_to.mask(inst.operands[0])
                    stays = not touched & written or _is_elsewhere(inst, loop, mod_ref, separation)
                    # Memory of unknown origin, or that other threads write to, may change without a store in the loop.
                    wanted = bool(touched) and stays and not points_to.is_shared(touched)
                case GetElementPtr() | Cast():
                    wanted = any(operand in moved for operand in inst.operands)
                case _:
                    wanted = False
            if wanted and all(is_invariant(operand, loop) for operand in inst.operands):
                block.instructions.remove(inst)
                preheader.insert(len(preheader.instructions) - 1, inst)
                moved.add(inst)


def _is_elsewhere(load: Load, loop: Loop, mod_ref: ModRef, separation: Separation | None) -> bool:
    """True if all that a loop writes to an array goes to other elements than the one that a load reads."""
    if separation is None or not is_invariant(load.operands[0], loop):
        return False
    touched = mod_ref.points_to.overlapping(mod_ref.points_to.mask(load.operands[0]))
    writes = mod_ref.changing(loop.order, touched)
    return len(writes) <= MOST_WRITES and all(
        isinstance(write, Store) and separation.is_apart_in(loop, load, write) for write in writes
    )


# Invariant choices: where every iteration chooses alike, the loop need not carry the value that is chosen.
#
# Input   a function in normal form.
# Output  none; the function is rewritten: arms of selects that are phis become what these hold where the arm counts.
# Method  an arm matters only where its condition has one known value. A condition from outside of the loops that the
#         arm was carried around has that value in all their iterations, so other selects on it are traced through the
#         arm in question. If the arm's phis then have just one value from outside, that is the arm.
# Why     an array expression with broadcasting keeps the index of an operand that has length 1, and moves the others
#         on: ``index = i if length > 1 else index``. A value that is carried around a loop cannot be recomputed, so the
#         addresses of all operands went on the tape, element by element, and no such loop was vectorised.
# Limit   conditions are equal if they are one value; branches are not looked at.
#
#     %p = phi i64 [ 0, %entry ], [ %s, %latch ]
#     %s = select i1 %long, i64 %i, i64 %p              %s = select i1 %long, i64 %i, i64 0

_TRUE_ARM, _FALSE_ARM = 1, 2  # positions among the operands of a select


def settle_invariant_choices(function: Function) -> None:
    """Rewrites all selects of a function that can be."""
    carried = [s for s in function.instructions() if isinstance(s, Select) and _carried_arms(s)]
    if not carried:
        return
    cfg = control_flow(function)
    dominator_tree = dominators(cfg)
    nest = loop_nest(cfg, dominator_tree)
    # In an irreducible loop nothing says in which iteration a value was computed.
    if nest.irreducible:
        return
    structure = _Structure(nest, dominator_tree)
    for select in carried:
        for arm in _carried_arms(select):
            settled = structure.settled(select, arm)
            if settled is not None:
                select.set_operand(arm, settled)


def _carried_arms(select: Select) -> list[int]:
    return [arm for arm in (_TRUE_ARM, _FALSE_ARM) if isinstance(select.operands[arm], Phi)]


@dataclass(frozen=True, slots=True)
class _Structure:
    """The loops of a function, and which of its blocks dominate which."""

    nest: LoopNest
    dominators: DominatorTree

    def settled(self, select: Select, arm: int) -> Value | None:
        """The single relevant value of an arm; None if there are several."""
        phis, sources = _trace(select, arm)
        if not sources or any(not _is_same(sources[0], other) for other in sources):
            return None
        source = sources[0]
        if isinstance(source, Undef | Poison):
            return None
        if not self._is_at_hand(source, select):
            return None
        return source if all(self._is_one_value(value, phis) for value in (select.operands[0], source)) else None

    def _is_at_hand(self, value: Value, select: Select) -> bool:
        """True if a value may be used by a select: outside of its loops it goes through phis at their exits."""
        if not isinstance(value, Instruction):
            return True
        assert value.block is not None
        assert select.block is not None
        loop = self.nest.loop_of(value.block)
        return self.dominators.value_dominates(value, select) and (loop is None or loop.contains(select.block))

    def _is_one_value(self, value: Value, phis: Iterable[Phi]) -> bool:
        """True if a value stays the same while other values go around through the phis."""
        if not isinstance(value, Instruction):
            return True
        for phi in phis:
            assert phi.block is not None
            assert value.block is not None
            loop = self.nest.loop_of(phi.block)
            if loop is not None and loop.header is phi.block and loop.contains(value.block):
                return False
        return True


def _is_same(a: Value, b: Value) -> bool:
    if isinstance(a, ConstantInt) and isinstance(b, ConstantInt):
        return a.type is b.type and a.value == b.value
    return a is b


def _trace(select: Select, arm: int) -> tuple[list[Phi], list[Value]]:
    """The phis that an arm comes through, and the values that come into them, while the select chooses that arm."""
    condition, pending = select.operands[0], Worklist([select.operands[arm]])
    sources: list[Value] = []
    for value in pending:
        match value:
            case Phi():
                pending.add(*value.operands)
            case Select() if value.operands[0] is condition:
                pending.add(value.operands[arm])
            case _:
                sources.append(value)
    return [value for value in pending.seen if isinstance(value, Phi)], sources
