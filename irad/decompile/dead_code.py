"""Drops what nothing needs."""

from __future__ import annotations

from collections.abc import Iterable

from irad.ir.instructions import (
    AtomicRMW,
    CallSite,
    CmpXchg,
    Fence,
    Instruction,
    LandingPad,
    Store,
    Terminator,
    VAArg,
)
from irad.ir.module import Function
from irad.ir.values import Value
from irad.ir.worklist import reachable
from irad.passes.callees import effects_of, resolve
from irad.passes.generated import GeneratedPair


def remove_dead(captured: GeneratedPair, function: Function, roots: Iterable[Value]) -> None:
    """Removes instructions without effect that nothing needs."""
    used: list[Value] = list(roots)
    for inst in function.instructions():
        if isinstance(inst, Terminator) or inst.targets or _has_effect(captured, inst):
            used.append(inst)
    needed = set(reachable(used, lambda value: value.operands if isinstance(value, Instruction) else ()))
    doomed = [inst for inst in function.instructions() if inst not in needed]
    for inst in doomed:
        inst.set_operands(())
    for inst in doomed:
        inst.erase()


def _has_effect(captured: GeneratedPair, inst: Instruction) -> bool:
    if isinstance(inst, CallSite):
        effects = effects_of(resolve(inst, captured.augmented.unit.registry))
        return effects is None or effects.other or bool(effects.writes or effects.frees or effects.captures)
    return isinstance(inst, Store | AtomicRMW | CmpXchg | Fence | VAArg | LandingPad)
