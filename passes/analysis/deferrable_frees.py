"""Which allocations of the primal may be kept until the reverse sweep has ended, so that it can load from them again.

Input   a `Unit`'s analyses.
Output  `keepable`: a mask. `deferred_frees` rewrites the augmented primal for those that are read again.
Method  a host that counts references frees by dropping the last one. A dropped reference is passed to the arena
        instead, which drops it when the derivative ends. Nothing in the primal can tell the difference.
Limit   allocations that move (growing lists), or that leave a callee, or the entry when its caller may write to them,
        are not kept.
"""

from __future__ import annotations

from irad.ir.instructions import CallSite, Ret
from irad.ir.module import Function
from irad.passes.analysis.callees import effects_of, is_from_outside, resolve
from irad.passes.convention import HostConvention
from irad.passes.memory.objects import ObjectKind, PointsTo
from irad.ruleset.registry import Registry


def keepable(
    function: Function, points_to: PointsTo, registry: Registry, host: HostConvention, *, results_change: bool
) -> int:
    """The allocations that may be kept, as a mask.

    Args:
        function: in normal form.
        points_to: of the same function.
        registry: the rules.
        host: tells how references are dropped.
        results_change: whether what leaves the function may be written or freed before the reverse sweep.
    """
    mask = 0
    for item in points_to.objects:
        if item.kind not in (ObjectKind.ALLOCATION, ObjectKind.HEADER) or not isinstance(item.value, CallSite):
            continue
        if effects_of(resolve(item.value, registry)) is not None:
            mask |= 1 << item.index
    for inst in function.instructions():
        if isinstance(inst, CallSite):
            mask &= ~_moved_or_handed_on(inst, points_to, registry, host)
        elif isinstance(inst, Ret) and inst.operands and results_change:
            mask &= ~points_to.reachable(points_to.mask(inst.operands[0]))
    if results_change:
        for item in points_to.objects:
            if item.kind not in (ObjectKind.ALLOCATION, ObjectKind.HEADER, ObjectKind.LOCAL):
                mask &= ~points_to.reachable(points_to.contents[item.index])
    return mask


def _moved_or_handed_on(call: CallSite, points_to: PointsTo, registry: Registry, host: HostConvention) -> int:
    """The objects that a call frees in another way than by dropping a reference, or gives to code with a body."""
    callee = resolve(call, registry)
    effects = effects_of(callee)
    mask = 0
    if isinstance(callee, Function) and is_from_outside(callee, registry):
        return mask  # what calls the rule holds references of its own
    if effects is None:
        for argument in call.arguments:
            mask |= points_to.reachable(points_to.mask(argument))
        return mask
    if not host.drops_reference(call):
        for index in effects.frees:
            mask |= points_to.reachable(points_to.mask(call.arguments[index]))
    return mask
