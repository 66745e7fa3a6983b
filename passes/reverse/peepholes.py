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

from irad.ir.builder import Builder
from irad.ir.instructions import Alloca, Binary, FCmp, Instruction, Select, Store, Unary, replace_uses
from irad.ir.module import Block
from irad.ir.types import DOUBLE
from irad.ir.values import ConstantFloat, Value, const_float
from irad.ir.worklist import reachable
from irad.passes.reverse.sweep import Sweep
from irad.ruleset.guards import guarded_by

_MOST_STORES: Final = 8


def simplify_guards(sweep: Sweep) -> None:
    """Rewrites the guards of a reverse sweep outside of loops of one block."""
    for primal, place in sweep.places.items():
        loop = sweep.augmented.unit.loops.loop_of(primal)
        adds_a_lot = _adds_a_lot(place.block)
        # of a loop of one block LLVM may make vectors, in which a mask that clears costs nothing
        if loop is None or len(loop.blocks) > 1 or adds_a_lot:
            for inst in place.block.instructions:
                _simplify(inst, as_branch=not adds_a_lot)


def _adds_a_lot(block: Block) -> bool:
    """True if a block adds to too many places for LLVM to check them before it makes vectors."""
    stores = (inst for inst in block.instructions if isinstance(inst, Store))
    return sum(not isinstance(store.operands[1], Alloca) for store in stores) > _MOST_STORES


def _simplify(inst: Instruction, *, as_branch: bool) -> None:
    test = guarded_by(inst)
    if isinstance(test, FCmp) and len(test.users) == 1:
        # x86 tests one flag for a comparison that holds for NaN as well, and two for one that does not
        test.predicate = "ueq"
        inst.set_operand(1, test.operands[0])
        # Branch weights are what makes LLVM turn the select into a branch; among many stores the select is better.
        if not as_branch:
            inst.metadata = {kind: node for kind, node in inst.metadata.items() if kind != "prof"}


# Shared reciprocals: a quotient that the reverse sweep recomputes is a product with a reciprocal that it has.
#
# Input   a reverse sweep whose needs have been met.
# Output  the same function.
# Method  the adjoint of a division multiplies by the reciprocal of the divisor, and by the quotient. A quotient that is
#         neither saved nor in memory is divided once more; as a product it may differ in the last place, as cotangents
#         may that it is a factor of.
# Limit   in one block; quotients of doubles of which nothing but products and sums is made, so that no decision depends
#         on them.
#
#     %r = fdiv double 1.0, %b                                %r = fdiv double 1.0, %b
#     %q = fdiv double %a, %b                                 %q = fmul double %a, %r
#     %c = fmul double %d, %q                                 %c = fmul double %d, %q


def share_reciprocals(sweep: Sweep) -> None:
    """Rewrites the blocks of a reverse sweep."""
    for block in sweep.function.blocks:
        divisions = [inst for inst in block.instructions if isinstance(inst, Binary) and inst.opcode == "fdiv"]
        known = {inst.operands[1] for inst in divisions if _is_one(inst.operands[0])}
        for inst in divisions:
            dividend, divisor = inst.operands
            # A product may differ from the quotient in the last place, so nothing may decide by it: it must end in
            # cotangents.
            if divisor in known and inst.type is DOUBLE and not _is_one(dividend) and _is_only_a_factor(inst, block):
                build = Builder.before(inst)
                reciprocal = build.fdiv(const_float(DOUBLE, 1.0), divisor)  # LLVM sees that it is there already
                replace_uses(inst, build.fmul(dividend, reciprocal, name=inst.name))
                inst.erase()


def _is_one(value: Value) -> bool:
    return isinstance(value, ConstantFloat) and value.value == 1.0


def _is_only_a_factor(quotient: Instruction, block: Block) -> bool:
    """True if a number ends in sums and products that are added to cotangents."""

    def following(inst: Instruction) -> list[Instruction]:
        return [] if isinstance(inst, Store) else list(inst.users)

    return all(
        inst.block is block
        and (
            inst is quotient
            or isinstance(inst, Store | Select)
            or (isinstance(inst, Unary) and inst.opcode == "fneg")
            or (isinstance(inst, Binary) and inst.opcode in ("fadd", "fsub", "fmul"))
        )
        for inst in reachable([quotient], following)
    )
