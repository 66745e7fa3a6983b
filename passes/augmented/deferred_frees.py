"""Hands the references to allocations that the reverse sweep reads again to the arena, which drops them at its end."""

from __future__ import annotations

from irad.ir.builder import Builder
from irad.ir.instructions import CallSite
from irad.ir.values import Value
from irad.passes.analysis.callees import resolve
from irad.passes.augmented.primal import AugmentedPrimal
from irad.passes.memory.objects import PointsTo, union
from irad.passes.runtime import ARENA_DEFER, runtime_function
from irad.ruleset.interface import Inactive


def defer_frees(augmented: AugmentedPrimal, kept: int) -> None:
    """Hands the references to kept allocations to the arena instead of dropping them."""
    if not kept:
        return
    unit, host = augmented.unit, augmented.program.request.host
    made = _made_by_call(unit.points_to)
    for block in unit.cfg.order:
        for call in block.instructions:
            if not isinstance(call, CallSite) or not host.drops_reference(call):
                continue
            held = unit.points_to.reachable(unit.points_to.mask(call.arguments[0]))
            held |= union(made[item.value] for item in unit.points_to.members(held) if item.value in made)
            if not held & kept or not isinstance(resolve(call, unit.registry), Inactive):
                continue
            copy = augmented.values[call]
            assert isinstance(copy, CallSite)
            build = Builder.before(copy)
            defer = runtime_function(augmented.program.module, ARENA_DEFER)
            build.call(defer, [augmented.arena, copy.arguments[0]])
            copy.erase()


def _made_by_call(points_to: PointsTo) -> dict[Value | None, int]:
    """What each call allocates, as a mask: of a callee's memory it is not known which reference it hangs on."""
    made: dict[Value | None, int] = {}
    for item in points_to.objects:
        if isinstance(item.value, CallSite):
            made[item.value] = made.get(item.value, 0) | 1 << item.index
    return made
