"""What a call calls: a function with a body, one that has a rule, code behind a pointer, or something unknown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from irad.ir.instructions import CallSite
from irad.ir.module import Function
from irad.ir.types import FunctionType
from irad.ir.values import InlineAsm
from irad.ruleset.interface import CallRule, Effects, Elementwise, Inactive, Origin, Rule
from irad.ruleset.registry import Registry


@dataclass(frozen=True, slots=True)
class Unknown:
    """A callee without body and without rule; ``name`` is its symbol or a description."""

    name: str


@dataclass(frozen=True, slots=True)
class Pointer:
    """Code of this type that is known only when the call runs; its pair is looked up then."""

    function_type: FunctionType


Callee: TypeAlias = Function | Rule | Unknown | Pointer

_NO_EFFECTS = Effects(result=Origin.UNKNOWN, other=False)


def resolve(call: CallSite, registry: Registry) -> Callee:
    """The meaning of a call. A rule wins over a body."""
    callee = call.callee
    if isinstance(callee, InlineAsm):
        return Unknown("inline assembly")
    if not isinstance(callee, Function) or callee.name is None:
        return Pointer(call.function_type)
    rule = registry.lookup(callee.name)
    if rule is not None:
        return rule
    return callee if not callee.is_declaration else Unknown(callee.name)


def effects_of(callee: Callee) -> Effects | None:
    """What a ruled callee does to memory; None for bodies (analysed), pointers to some, and unknown callees."""
    match callee:
        case Elementwise():
            return _NO_EFFECTS
        case Inactive(effects=effects) | CallRule(effects=effects):
            return effects
        case Function() | Pointer() | Unknown():
            return None
