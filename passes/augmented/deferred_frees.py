"""Allocations of the primal that may be kept until the reverse sweep has ended, so that it can load from them again.

Input   a `Unit`'s analyses.
Output  `keepable`: a mask. `deferred_frees` rewrites the augmented primal for those that are read again.
Method  a host that counts references frees by dropping the last one. A dropped reference is passed to the arena
        instead, which drops it when the derivative ends. Nothing in the primal can tell the difference.
Limit   allocations that move (growing lists), that end with an arena of the program, or that leave a callee, or the
        entry when its caller may write to them, are not kept.
"""

from __future__ import annotations

from irad.ir.builder import Builder
from irad.ir.instructions import CallSite, Ret
from irad.ir.module import Function
from irad.ir.values import Value
from irad.passes.augmented.primal import AugmentedPrimal
from irad.passes.callees import effects_of, is_from_outside, resolve
from irad.passes.convention import HostConvention
from irad.passes.memory.mod_ref import ModRef
from irad.passes.memory.objects import SEPARATE, ObjectKind, PointsTo, union
from irad.passes.runtime import ARENA_DEFER, runtime_function
from irad.ruleset.interface import Inactive


def keepable(function: Function, mod_ref: ModRef, host: HostConvention, *, results_change: bool) -> int:
    """The allocations that may be kept, as a mask.

    Args:
        function: in normal form.
        mod_ref: of the same function.
        host: tells how references are dropped.
        results_change: whether what leaves the function may be written or freed before the reverse sweep.
    """
    points_to, mask = mod_ref.points_to, 0
    for item in points_to.objects:
        if item.kind in (ObjectKind.ALLOCATION, ObjectKind.HEADER) and isinstance(item.value, CallSite):
            effects = effects_of(mod_ref.callee(item.value))
            # Memory that is lent ends with an arena of the program, which nothing here can put off.
            mask |= (effects is not None and not effects.is_lent) << item.index
    for inst in function.instructions():
        if isinstance(inst, CallSite):
            mask &= ~_moved_or_handed_on(inst, mod_ref, host)
        # What is returned belongs to the caller, which may write to it before the reverse sweep.
        elif isinstance(inst, Ret) and inst.operands and results_change:
            mask &= ~points_to.reachable(points_to.mask(inst.operands[0]))
    if results_change:
        for item in points_to.objects:
            # What the caller reaches by pointers it may write to, or free, before the reverse sweep.
            if item.kind not in SEPARATE:
                mask &= ~points_to.reachable(points_to.contents[item.index])
    return mask


def _moved_or_handed_on(call: CallSite, mod_ref: ModRef, host: HostConvention) -> int:
    """The objects that a call frees in another way than by dropping a reference, or gives to code with a body."""
    points_to, access = mod_ref.points_to, mod_ref.of(call)
    if isinstance(call.callee, Function) and is_from_outside(call.callee, mod_ref.registry):
        return 0  # what calls the rule holds references of its own
    if access.is_opaque:
        return points_to.reachable(union(points_to.mask(argument) for argument in call.arguments))
    return 0 if host.drops_reference(call) else points_to.reachable(access.frees)


# Hands the references to allocations that the reverse sweep reads again to the arena, which drops them at its end.


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
            # It is not known on which of the objects that a callee made the reference hangs.
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
    """Objects that each call allocates, as a mask: of a callee's memory it is not known which reference it hangs on."""
    made: dict[Value | None, int] = {}
    for item in points_to.objects:
        if isinstance(item.value, CallSite):
            made[item.value] = made.get(item.value, 0) | 1 << item.index
    return made
