"""The blocks that the reverse sweep visits: those from which the function returns without an error.

A block that only returns an error carries no derivative in the entry function: its caller raises instead of
running the reverse sweep. In callees every return is taken to be one after which the caller may go on.
"""

from __future__ import annotations

from collections.abc import Collection

from irad.ir.cfg import ControlFlow
from irad.ir.instructions import Phi, Ret
from irad.ir.module import Block
from irad.ir.values import ConstantInt, Value
from irad.ir.worklist import reachable


def live_blocks(cfg: ControlFlow, returned: Collection[int] | None) -> frozenset[Block]:
    """The blocks from which a return without an error can be reached.

    Args:
        cfg: cfg of a function in normal form.
        returned: the statuses that are not errors; None where every return counts.
    """
    returning: list[Block] = []
    pending: list[Block] = []
    for block in cfg.order:
        last = block.terminator
        if not isinstance(last, Ret):
            continue
        sources = None if returned is None else _returning(block, last, cfg, returned)
        if sources is None or sources:
            returning.append(block)
            pending.extend(cfg.predecessors[block] if sources is None else sources)
    return frozenset((*returning, *reachable(pending, lambda block: cfg.predecessors[block])))


def _returning(block: Block, last: Ret, cfg: ControlFlow, returned: Collection[int]) -> list[Block] | None:
    """The predecessors from which the return has no error; None when all do (or when that is not known)."""
    status = last.operands[0] if last.operands else None
    if isinstance(status, Phi) and status.block is block:
        return [p for v, p in status.incoming() if not _is_error(v, returned) and p in cfg.predecessors]
    if status is not None and _is_error(status, returned):
        return []
    return None


def _is_error(status: Value, returned: Collection[int]) -> bool:
    return isinstance(status, ConstantInt) and status.value not in returned
