"""Shared reciprocals: a quotient that the reverse sweep computes again is a product with a reciprocal that it has.

Input   a reverse sweep whose needs have been met.
Output  the same function.
Method  the adjoint of a division multiplies by the reciprocal of the divisor, and by the quotient. A quotient that is
        neither saved nor in memory is divided once more; as a product it may differ in the last place, as cotangents
        may that it is a factor of.
Limit   in one block; quotients of doubles of which nothing but products and sums is made, so that no decision depends
        on them.

    %r = fdiv double 1.0, %b                                %r = fdiv double 1.0, %b
    %q = fdiv double %a, %b                                 %q = fmul double %a, %r
    %c = fmul double %d, %q                                 %c = fmul double %d, %q
"""

from __future__ import annotations

from irad.ir.builder import Builder
from irad.ir.instructions import Binary, Instruction, Select, Store, Unary, replace_uses
from irad.ir.module import Block
from irad.ir.types import DOUBLE
from irad.ir.values import ConstantFloat, Value, const_float
from irad.ir.worklist import reachable
from irad.passes.reverse.sweep import Sweep


def share_reciprocals(sweep: Sweep) -> None:
    """Rewrites the blocks of a reverse sweep."""
    for block in sweep.function.blocks:
        divisions = [inst for inst in block.instructions if isinstance(inst, Binary) and inst.opcode == "fdiv"]
        known = {inst.operands[1] for inst in divisions if _is_one(inst.operands[0])}
        for inst in divisions:
            dividend, divisor = inst.operands
            if divisor in known and inst.type is DOUBLE and not _is_one(dividend) and _is_only_a_factor(inst, block):
                build = Builder.before(inst)
                reciprocal = build.fdiv(const_float(DOUBLE, 1.0), divisor)  # LLVM sees that it is there already
                replace_uses(inst, build.fmul(dividend, reciprocal, name=inst.name))
                inst.erase()


def _is_one(value: Value) -> bool:
    return isinstance(value, ConstantFloat) and value.value == 1.0


def _is_only_a_factor(quotient: Instruction, block: Block) -> bool:
    """Whether a number ends in sums and products that are added to cotangents."""

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
