"""Guards of zero cotangents in code that stays scalar, in a form that takes one branch in place of two.

Input   a reverse sweep.
Output  the same function.
Method  Where the cotangent is zero or NaN, a guard may choose the cotangent itself: zero stays zero, NaN stays NaN. Of
        a comparison that holds for NaN as well, x86 asks one flag, else two; and no zero has to be made.
        Blocks that add to many places have much to do at once: there, a select is better than a branch.
Limit   not in innermost loops of one block, of which LLVM may make vectors, unless they store a lot: a mask that
        clears costs nothing.

    %zero = fcmp oeq double %d, 0.0                         %zero = fcmp ueq double %d, 0.0
    %g = select i1 %zero, double 0.0, double %product       %g = select i1 %zero, double %d, double %product
"""

from __future__ import annotations

from typing import Final

from irad.ir.instructions import Alloca, FCmp, Instruction, Store
from irad.ir.module import Block
from irad.passes.reverse.sweep import Sweep
from irad.ruleset.guards import guarded_by

_MOST_STORES: Final = 8


def simplify_guards(sweep: Sweep) -> None:
    """Rewrites the guards of a reverse sweep outside of loops of one block."""
    for primal, place in sweep.places.items():
        loop = sweep.augmented.unit.loops.loop_of(primal)
        adds_a_lot = _adds_a_lot(place.block)
        if loop is None or len(loop.blocks) > 1 or adds_a_lot:
            for inst in place.block.instructions:
                _simplify(inst, as_branch=not adds_a_lot)


def _adds_a_lot(block: Block) -> bool:
    """Whether a block adds to so many places that LLVM would have too much to check before it makes vectors."""
    stores = (inst for inst in block.instructions if isinstance(inst, Store))
    return sum(not isinstance(store.operands[1], Alloca) for store in stores) > _MOST_STORES


def _simplify(inst: Instruction, *, as_branch: bool) -> None:
    test = guarded_by(inst)
    if isinstance(test, FCmp) and len(test.users) == 1:
        test.predicate = "ueq"
        inst.set_operand(1, test.operands[0])
        if not as_branch:
            inst.metadata = {kind: node for kind, node in inst.metadata.items() if kind != "prof"}
