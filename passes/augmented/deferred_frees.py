"""Hands the references to allocations that the reverse sweep reads again to the arena, which drops them at its end."""

from __future__ import annotations

from irad.ir.builder import Builder
from irad.ir.instructions import CallSite
from irad.passes.analysis.callees import resolve
from irad.passes.augmented.primal import AugmentedPrimal
from irad.passes.runtime import ARENA_DEFER, runtime_function
from irad.ruleset.interface import Inactive


def defer_frees(augmented: AugmentedPrimal, kept: int) -> None:
    """Hands the references to kept allocations to the arena instead of dropping them."""
    if not kept:
        return
    unit, host = augmented.unit, augmented.program.request.host
    for block in unit.cfg.order:
        for call in block.instructions:
            if not isinstance(call, CallSite) or not host.drops_reference(call):
                continue
            if not unit.points_to.reachable(unit.points_to.mask(call.arguments[0])) & kept or not isinstance(
                resolve(call, unit.registry), Inactive
            ):
                continue
            copy = augmented.values[call]
            assert isinstance(copy, CallSite)
            build = Builder.before(copy)
            defer = runtime_function(augmented.program.module, ARENA_DEFER)
            build.call(defer, [augmented.arena, copy.arguments[0]])
            copy.erase()
