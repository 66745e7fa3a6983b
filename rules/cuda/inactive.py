"""Operations of kernels that carry no derivative."""

from __future__ import annotations

from typing import Final

from irad.ruleset.define import inactive
from irad.ruleset.interface import PURE, Effects, Rule

RULES: Final[tuple[Rule, ...]] = (
    inactive("irad.cuda.dynamic_shared_size irad.cuda.lanemask.*", "an integer that the launch decides", PURE),
    inactive("irad.cuda.vote.* irad.cuda.activemask irad.cuda.match.*", "which threads of a warp say so", Effects()),
    inactive("llvm.nvvm.membar.cta", "an order of accesses within the block; barriers are what the reverse needs"),
    inactive("llvm.nvvm.nanosleep llvm.nvvm.read.ptx.sreg.clock* llvm.nvvm.read.ptx.sreg.globaltimer*", "time"),
)
