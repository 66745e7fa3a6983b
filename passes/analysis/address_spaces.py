"""Refuses what a shadow in the address space of its memory cannot follow.

A pointer's shadow is a pointer into the same address space: parameters, globals, addresses computed from them and
casts between spaces have theirs. What irad makes itself, the frame and the arena, is generic memory, so memory that the
function makes elsewhere has no place for its shadow; and a pointer that was stored may be read back as bytes, which
only tell generic addresses.
"""

from __future__ import annotations

from irad.errors import UnsupportedError
from irad.ir.instructions import Alloca, CallSite, Instruction, Load, Store
from irad.ir.types import Type, address_spaces
from irad.passes.analysis.callees import resolve
from irad.passes.unit import Unit
from irad.ruleset.interface import CallRule, PairRule


def space_error(unit: Unit, inst: Instruction) -> UnsupportedError | None:
    """What is wrong with an instruction on pointers into an address space other than the generic one."""
    match inst:
        case Load():
            return _stored(inst.type, "read from")
        case Store(operands=[value, _]):
            return _stored(value.type, "stored in")
        case Alloca() if _named(inst.type) and unit.activity.has_shadow(inst):
            return UnsupportedError(
                f"local memory in {_named(inst.type)} takes active values",
                "keep them in ordinary local memory, or in memory that is passed as an argument",
                "irad makes shadows of local memory in the generic address space, and no cast need lead back",
            )
        case CallSite():
            return _call_error(unit, inst)
        case _:
            return None


def _named(type_: Type) -> str:
    """The address spaces of the pointers in a type, in words; empty if they are all generic."""
    found = sorted(address_spaces(type_) - {0})
    return " and ".join(f"address space {space}" for space in found)


def _stored(type_: Type, what: str) -> UnsupportedError | None:
    if not _named(type_):
        return None
    return UnsupportedError(
        f"a pointer to {_named(type_)} is {what} memory",
        "pass it as an argument of its own, or cast it to a generic pointer before it is stored",
        "irad follows such pointers from argument to use only",
    )


def _call_error(unit: Unit, call: CallSite) -> UnsupportedError | None:
    named = next((name for argument in call.arguments if (name := _named(argument.type))), "")
    if not named or not isinstance(resolve(call, unit.registry), CallRule | PairRule):
        return None
    if not any(unit.activity.has_shadow(argument) for argument in call.arguments):
        return None
    return UnsupportedError(
        f"a function with a rule is given a pointer to {named}",
        "cast the pointer to a generic one where it is passed",
        "rules are written for generic pointers",
    )
