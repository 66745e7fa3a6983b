"""Invariant choices: where every iteration chooses alike, the loop need not carry the value that is chosen.

Input   a function in normal form.
Output  none; the function is rewritten: arms of selects that are phis become what these hold where the arm counts.
Method  an arm matters only where its condition has one known value. A condition from outside of the loops that the arm
        was carried around has that value in all their iterations, so other selects on it are traced through the arm in
        question. If the arm's phis then have just one value from outside, that is the arm.
Why     an array expression with broadcasting keeps the index of an operand that has length 1, and moves the others on:
        ``index = i if length > 1 else index``. A value that is carried around a loop cannot be recomputed, so the
        addresses of all operands went on the tape, element by element, and no such loop was vectorised.
Limit   conditions are equal if they are one value; branches are not looked at.

    %p = phi i64 [ 0, %entry ], [ %s, %latch ]
    %s = select i1 %long, i64 %i, i64 %p              %s = select i1 %long, i64 %i, i64 0
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from irad.ir.cfg import control_flow
from irad.ir.dominance import DominatorTree, dominators
from irad.ir.instructions import Instruction, Phi, Select
from irad.ir.loops import LoopNest, loop_nest
from irad.ir.module import Function
from irad.ir.values import ConstantInt, Poison, Undef, Value
from irad.ir.worklist import Worklist

_TRUE_ARM, _FALSE_ARM = 1, 2  # positions among the operands of a select


def settle_invariant_choices(function: Function) -> None:
    """Rewrites all selects of a function that can be."""
    carried = [s for s in function.instructions() if isinstance(s, Select) and _carried_arms(s)]
    if not carried:
        return
    cfg = control_flow(function)
    dominator_tree = dominators(cfg)
    nest = loop_nest(cfg, dominator_tree)
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
        """The one value that an arm has where it counts; None if there are several."""
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
        """Whether a value may be used by a select: outside of its loops it goes through phis at their exits."""
        if not isinstance(value, Instruction):
            return True
        assert value.block is not None
        assert select.block is not None
        loop = self.nest.loop_of(value.block)
        return self.dominators.value_dominates(value, select) and (loop is None or loop.contains(select.block))

    def _is_one_value(self, value: Value, phis: Iterable[Phi]) -> bool:
        """Whether a value stays the same while other values go around through the phis."""
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
