"""Barriers: the reverse sweep waits where the primal did.

What threads wrote before a barrier others read after it. In the reverse sweep they add to the shadow after it and the
writer takes it before, so there has to be a barrier between, whatever is active in the thread itself.
"""

from __future__ import annotations

from typing import Final

from irad.ir import types
from irad.ir.instructions import CallSite
from irad.ir.types import VOID, function_type
from irad.ir.values import const_int
from irad.ruleset.interface import Effects, Inactive, ReverseContext, Rule

BLOCK: Final = "llvm.nvvm.barrier.cta.sync.aligned.all"
PREDICATED: Final = tuple(f"irad.cuda.barrier.{word}" for word in ("popc", "and", "or"))
ANYWHERE: Final = "irad.cuda.barrier.anywhere"
"""A barrier that threads may reach in different places; says whether all of them have given a number that is not 0."""
WARP: Final = "llvm.nvvm.bar.warp.sync"
_CONVERGENT: Final = ("convergent", "nounwind")


def _block_waits(context: ReverseContext, call: CallSite) -> None:
    barrier = context.declare(BLOCK, function_type(VOID, [types.I32]), _CONVERGENT)
    context.builder.call(barrier, [const_int(types.I32, 0)])


def _warp_waits(context: ReverseContext, call: CallSite) -> None:
    barrier = context.declare(WARP, function_type(VOID, [types.I32]), _CONVERGENT)
    context.builder.call(barrier, [context.value(call.arguments[0])])


RULES: Final[tuple[Rule, ...]] = (
    Inactive((BLOCK,), "the threads of a block wait for each other", Effects(), adjoint=_block_waits),
    Inactive(
        PREDICATED,
        "the threads of a block wait for each other and count; the result is an integer",
        Effects(),
        adjoint=_block_waits,
    ),
    Inactive((WARP,), "the threads of a warp wait for each other", Effects(), adjoint=_warp_waits),
)
