"""Callees: a function with a body, one that has a rule, the target of a pointer, or something unknown."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from functools import cache
from typing import TypeAlias

from irad.ir.instructions import CallSite
from irad.ir.module import Function
from irad.ir.types import FunctionType
from irad.ir.values import InlineAsm, Value
from irad.records import dataclass
from irad.ruleset.interface import CallRule, ConstantParameters, Effects, Elementwise, Inactive, Origin, PairRule
from irad.ruleset.registry import Registry


@dataclass(frozen=True, slots=True)
class Unknown:
    """A callee without body and without rule; ``name`` is its symbol or a description."""

    name: str


@dataclass(frozen=True, slots=True)
class Pointer:
    """Code of this type that is known only when the call runs; its pair is looked up then."""

    function_type: FunctionType


Callee: TypeAlias = Function | Elementwise | Inactive | CallRule | Unknown | Pointer

PARALLEL = '"irad.parallel"'  # attribute of the body of a parallel loop
TWO_VIEWS = '"irad.two_views"'  # attribute of a function that returns one piece of memory as numbers of two types
REMOTE = '"irad.remote"'  # attribute of a function that calls what has `Effects.remote`, itself or by way of others
ELSEWHERE = '"irad.elsewhere"'  # attribute of a call that may write to memory that is not passed to it
# Attributes of a function whose effects are known, with parameter numbers. The last two: whose addresses may be stored
# in the memory for the result, and whether those of new memory may be.
READS, WRITES, CAPTURES, FILLS = "irad.reads", "irad.writes", "irad.captures", "irad.fills"
_NO_EFFECTS = Effects(result=Origin.UNKNOWN, other=False)


def resolve(call: CallSite, registry: Registry) -> Callee:
    """The meaning of a call. A rule takes precedence over a body; one whose pair comes from outside has a body."""
    callee = call.callee
    if isinstance(callee, InlineAsm):
        return Unknown("inline assembly")
    if not isinstance(callee, Function) or callee.name is None:
        return Pointer(call.function_type)
    rule = registry.lookup(callee.name)
    if isinstance(rule, Inactive) and rule.effects is None:
        return _with_summary(rule, callee.attributes)
    if rule is not None and not isinstance(rule, PairRule | ConstantParameters):
        return rule
    return callee if rule is not None or not callee.is_declaration else Unknown(callee.name)


def is_from_outside(function: Function, registry: Registry) -> bool:
    """True if the pair of a function is not generated but comes from a rule that a user wrote."""
    return function.name is not None and isinstance(registry.lookup(function.name), PairRule)


def constant_parameters(function: Function, registry: Registry) -> frozenset[int]:
    """The parameters of a function through which no derivative flows, because a user said so."""
    rule = registry.lookup(function.name) if function.name is not None else None
    return rule.parameters if isinstance(rule, ConstantParameters | PairRule) else frozenset()


def returns_new(function: Function, registry: Registry) -> bool:
    """True if a user promised that the memory that a function returns is new."""
    rule = registry.lookup(function.name) if function.name is not None else None
    return isinstance(rule, ConstantParameters | PairRule) and rule.returns_new


def callees_first(functions: Collection[Function]) -> list[Function]:
    """Functions, each after the functions that it calls, directly or indirectly, unless they are recursive."""
    ordered: list[Function] = []
    seen: set[Function] = set()

    def visit(function: Function) -> None:
        if function not in seen:
            seen.add(function)
            for inst in function.instructions():
                if isinstance(inst, CallSite) and isinstance(inst.callee, Function):
                    visit(inst.callee)
            ordered.append(function)

    for each in functions:
        visit(each)
    return [each for each in ordered if each in functions]


def effects_of(callee: Callee) -> Effects | None:
    """Effects of a callee that has a rule or a summary; None for all others."""
    match callee:
        case Elementwise():
            return _NO_EFFECTS
        case Inactive(effects=effects) | CallRule(effects=effects):
            return effects
        case Function(attributes=attributes):
            return _summary(attributes)
        case Pointer() | Unknown():
            return None


@cache
def _with_summary(rule: Inactive, attributes: tuple[str, ...]) -> Inactive:
    """A declaration with the effects that the function's body shows.

    A function that passes on addresses of its arguments stays unknown code: its results have no shadow.
    """
    effects = _summary(attributes)
    return rule if effects is None or effects.captures else replace(rule, effects=effects)


@cache
def _summary(attributes: tuple[str, ...]) -> Effects | None:
    """The effects that a function's attributes state."""
    declared = dict(word.replace('"', "").split("=") for word in attributes if "=" in word)
    if READS not in declared or WRITES not in declared:
        return None
    reads, writes, captures, fills = (
        frozenset(map(int, filter(None, declared.get(key, "").split(",")))) for key in (READS, WRITES, CAPTURES, FILLS)
    )
    return Effects(
        reads, writes, captures=captures, captures_into=frozenset({0}) if captures else frozenset(), fills=fills
    )


def is_remote(callee: Callee) -> bool:
    """True if numbers leave the program in a call of this callee, or come into it."""
    if isinstance(callee, Function):
        return REMOTE in callee.attributes
    return isinstance(callee, CallRule) and callee.effects.remote


def mark_remote(functions: Collection[Function], registry: Registry) -> None:
    """Marks the functions of a module that call functions by which numbers leave or enter the program."""
    rules = (registry.lookup(each.name) for each in functions if each.is_declaration and each.name is not None)
    if not any(isinstance(rule, CallRule) and rule.effects.remote for rule in rules):
        return

    def calls_remote(function: Function) -> bool:
        found = (resolve(inst, registry) for inst in function.instructions() if isinstance(inst, CallSite))
        return any(map(is_remote, found))

    # In rounds, since functions may call each other.
    bodies = [each for each in functions if not each.is_declaration]
    while marked := [each for each in bodies if REMOTE not in each.attributes and calls_remote(each)]:
        for each in marked:
            each.attributes = (*each.attributes, REMOTE)


def is_elementary(callee: Value, registry: Registry) -> bool:
    """True if it is a function of numbers alone, applied to elements, as of the C library."""
    return isinstance(callee, Function) and callee.name is not None and registry.precision(callee.name) is not None
