"""What branches have found out about integers, where control comes from one block to another.

Input   a branch on whether an integer of 64 bits is a constant, the edge that is taken.
Output  the constant.

    br (i == 0), label %join, label %loop       on the edge to %join, i is 0
"""

from __future__ import annotations

from collections.abc import Iterator

from irad.ir.cfg import ControlFlow
from irad.ir.dominance import DominatorTree
from irad.ir.folding import signed
from irad.ir.instructions import CondBr, ICmp
from irad.ir.module import Block
from irad.ir.types import I64
from irad.ir.values import ConstantInt, Value

_MOST_BRANCHES = 8


def constants_on_edge(
    cfg: ControlFlow, dominators: DominatorTree, start: Block, end: Block
) -> Iterator[tuple[Value, int]]:
    """Integers that are constants whenever control goes from one block to another, with those."""
    for _ in range(_MOST_BRANCHES):
        found = _constant(start, end)
        if found is not None:
            yield found
        end, above = start, dominators.immediate[start]
        if above is None or cfg.predecessors[end] != (above,):
            return
        start = above


def _constant(start: Block, end: Block) -> tuple[Value, int] | None:
    match start.terminator:
        case CondBr(operands=[ICmp(operands=[number, ConstantInt() as bound]) as test], targets=[if_true, if_false]):
            is_equal = number.type is I64 and test.predicate == ("eq" if if_true is end else "ne")
            return (number, signed(bound)) if is_equal and if_true is not if_false else None
        case _:
            return None
