"""Invariant loads: what a loop loads again in every iteration is loaded once, before it.

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

from irad.ir.dominance import DominatorTree
from irad.ir.instructions import Cast, GetElementPtr, Instruction, Load, Store
from irad.ir.loops import Loop, LoopNest, innermost_first
from irad.ir.module import Block
from irad.ir.trip_count import is_invariant
from irad.passes.memory.mod_ref import ModRef
from irad.passes.subscripts.separation import MOST_WRITES, Separation


def hoist_invariant_loads(
    nest: LoopNest, dominators: DominatorTree, mod_ref: ModRef, separation: Separation | None = None
) -> None:
    """Moves them in all loops of a function; none of the arguments is out of date afterwards.

    Args:
        nest: its loops.
        dominators: of the function.
        mod_ref: what it does to memory.
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
                case Load() if always and inst.is_plain:
                    touched = points_to.mask(inst.operands[0])
                    stays = not touched & written or _is_elsewhere(inst, loop, mod_ref, separation)
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
    """Whether all that a loop writes to an array goes to other elements than the one that a load reads."""
    if separation is None or not is_invariant(load.operands[0], loop):
        return False
    touched = mod_ref.points_to.overlapping(mod_ref.points_to.mask(load.operands[0]))
    writes = mod_ref.changing(loop.order, touched)
    return len(writes) <= MOST_WRITES and all(
        isinstance(write, Store) and separation.is_apart_in(loop, load, write) for write in writes
    )
