"""What a call calls: a function with a body, one that has a rule, or something irad knows nothing about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from irad.ir.instructions import CallSite
from irad.ir.module import Function
from irad.ruleset.interface import CallRule, Effects, Elementwise, Inactive, Origin, Rule
from irad.ruleset.registry import Registry


@dataclass(frozen=True, slots=True)
class Unknown:
    """A callee without body and without rule; ``name`` is its symbol or a description."""

    name: str


Callee: TypeAlias = Function | Rule | Unknown

_NO_EFFECTS = Effects(result=Origin.UNKNOWN, other=False)


def resolve(call: CallSite, registry: Registry) -> Callee:
    """The meaning of a call. A rule wins over a body."""
    callee = call.callee
    if not isinstance(callee, Function) or callee.name is None:
        return Unknown("a function pointer")
    rule = registry.lookup(callee.name)
    if rule is not None:
        return rule
    return callee if not callee.is_declaration else Unknown(callee.name)


def effects_of(callee: Callee) -> Effects | None:
    """What a ruled callee does to memory; None for bodies (analysed) and for unknown callees."""
    match callee:
        case Elementwise():
            return _NO_EFFECTS
        case Inactive(effects=effects) | CallRule(effects=effects):
            return effects
        case Function() | Unknown():
            return None
