"""Which way control came: the condition itself is saved, not a number for the way."""

from __future__ import annotations

from irad.ir.builder import Builder
from irad.ir.cfg import ControlFlow
from irad.ir.dominance import DominatorTree
from irad.ir.instructions import CondBr, Freeze, ICmp, Instruction, Phi, replace_uses
from irad.ir.module import Function
from irad.ir.types import I1
from irad.ir.values import ConstantInt, Value
from irad.passes.generated import GeneratedPair


def name_origins(captured: GeneratedPair) -> dict[Value, bool]:
    """Lets the forward sweep note a condition where it notes which of two ways it came.

    Returns:
        The placeholders of these notes; whether the way with number 1 is the one on which the condition is true.
    """
    found: dict[Value, bool] = {}
    loops = captured.loops
    for number in [v for v in captured.plan.saved if isinstance(v, Phi) and v.name == "from"]:
        decided = _decision(loops.cfg, loops.dominators, number)
        if decided is None:
            continue
        condition, is_one = decided
        block = number.block
        assert block is not None
        note = condition
        home = condition.block if isinstance(condition, Instruction) else None
        if home is not None and loops.innermost.get(home) is not loops.innermost.get(block):
            note = Freeze(I1, "from", operands=[condition])
            Builder.before(next(i for i in block.instructions if not isinstance(i, Phi))).insert(note)
        for need in captured.sweep.needs:
            if need.value is number:
                found[need.placeholder] = is_one
        replace_saved(captured, number, note)
    return found


def replace_saved(captured: GeneratedPair, old: Value, new: Value) -> None:
    """Lets the plan, and what the reverse sweep wants, name another value that is equal."""
    captured.plan = captured.plan.saving(new if v is old else v for v in captured.plan.saved)
    for need in captured.sweep.needs:
        if need.value is old:
            need.value = new


def _decision(cfg: ControlFlow, tree: DominatorTree, number: Phi) -> tuple[Value, bool] | None:
    """The condition that decides between the two values of a phi of 0 and 1, and whether it is true for 1."""
    block = number.block
    assert block is not None
    values = [v.value for v, _ in number.incoming() if isinstance(v, ConstantInt)]
    if sorted(set(values)) != [0, 1] or len(values) != len(number.operands):
        return None
    decider = tree.immediate[block]
    if decider is None or not isinstance(decider.terminator, CondBr):
        return None
    branch = decider.terminator
    truths: dict[int, set[bool]] = {0: set(), 1: set()}
    for value, (_, source) in zip(values, number.incoming(), strict=True):
        for index, target in enumerate(branch.targets):
            direct = source is decider and target is block
            if direct or (target is not block and source is not decider and tree.dominates(target, source)):
                truths[value].add(index == 0)
        if not truths[value]:
            return None
    if len(truths[0]) != 1 or len(truths[1]) != 1 or truths[0] == truths[1]:
        return None
    single = all(len(cfg.predecessors[t]) == 1 for t in branch.targets if t is not block)
    return (branch.operands[0], truths[1] == {True}) if single else None


def fold_origins(function: Function, notes: dict[Value, bool]) -> None:
    """``note != 0`` is the condition itself, or its negation."""
    for inst in list(function.instructions()):
        if isinstance(inst, ICmp) and inst.predicate == "ne" and inst.operands[0] in notes:
            note = inst.operands[0]
            note.type = I1
            if notes[note]:
                replace_uses(inst, note)
                inst.erase()
            else:
                inst.predicate = "eq"
                inst.set_operand(1, ConstantInt(I1, None, 0))
