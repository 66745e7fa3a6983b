"""Functions that may return or store the address of memory: an integer may be as wide as one.

Input   a function with a body.
Output  yes or no.
Method  the returned values are traced back through arithmetic, choices, parts of structures and calls. What a pointer
        is converted to is an address, and what is loaded as an integer may be one. Integers that the function is given
        are left to the caller, who knows whether they are. What is stored counts as an address by its type, except
        constants, which do not point to memory of a caller. Each function is read once; what is found goes from
        callees to callers, and `KnownAddresses` keeps it for the analyses of the other functions.
Limit   an index that is loaded from a table counts as an address.

    define i64 @depth(ptr %tree)        returns 0, or 1 + @depth(...): a number
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field

from irad.ir.instructions import (
    Alloca,
    Binary,
    CallSite,
    Cast,
    ExtractValue,
    Freeze,
    GetElementPtr,
    InsertValue,
    Load,
    Phi,
    Ret,
    Select,
    stored,
)
from irad.ir.module import Function
from irad.ir.types import IntType, PointerType
from irad.ir.values import (
    Constant,
    ConstantAggregate,
    ConstantInt,
    ConstantZero,
    GlobalVariable,
    Parameter,
    Poison,
    Undef,
    Value,
)
from irad.passes.callees import effects_of, resolve
from irad.passes.memory.objects import may_hold_pointer
from irad.records import dataclass
from irad.ruleset.interface import Effects
from irad.ruleset.registry import Registry


@dataclass(eq=False, slots=True)
class KnownAddresses:
    """Facts about the functions of a module so far: whether they may return, or store, an address."""

    returning: dict[Function, bool] = field(default_factory=dict)
    storing: dict[Function, bool] = field(default_factory=dict)

    def forget(self, function: Function) -> None:
        """To be called when integers that a function copies have become floats or pointers.

        One that stored no address stores none now, either, and what functions return is not copied only.
        """
        if self.storing.get(function):
            self.storing.clear()


def may_return_address(callee: Value, registry: Registry, known: dict[Function, bool]) -> bool:
    """True if a callee with a body, or an indirect one, may return an address other than an integer it was given."""
    if not isinstance(callee, Function):
        return True
    if callee not in known:
        _settle(callee, known, lambda function: _returns_of(function, registry))
    return known[callee]


def _settle(
    function: Function, known: dict[Function, bool], callees_of: Callable[[Function], list[Function] | None]
) -> None:
    """Decides for a function, and for the functions it calls, whether any of them does something directly.

    Args:
        function: not known so far.
        known: decisions so far; grows.
        callees_of: those for which a function answers, too; None if it does it by itself.
    """
    pending, entered, doing = [function], {function}, list[Function]()
    callers: dict[Function, list[Function]] = {}
    for each in pending:
        callees = callees_of(each)
        if callees is None or any(known.get(callee) for callee in callees):
            doing.append(each)
            continue
        for callee in callees:
            if callee in known:
                continue
            callers.setdefault(callee, []).append(each)
            if callee not in entered:
                entered.add(callee)
                pending.append(callee)
    known.update(dict.fromkeys(entered, False))
    while doing:
        each = doing.pop()
        if not known[each]:
            known[each] = True
            doing += callers.get(each, ())


def _returns_of(function: Function, registry: Registry) -> list[Function] | None:
    """The functions whose integers a function may return; None if it may return an address by itself."""
    pending = _returned(function)
    callees: dict[Function, None] = {}
    seen = set[Value]()
    while pending:
        value = pending.pop()
        if value in seen or not may_hold_pointer(value.type):
            continue
        seen.add(value)
        if isinstance(value.type, PointerType):
            return None
        match value:
            case Binary() | Phi() | Select() | Freeze() | InsertValue() | ExtractValue() | Cast():
                pending.extend(value.operands)
            case ConstantAggregate(elements=elements):
                pending.extend(elements)
            case CallSite():
                callee = resolve(value, registry)
                if is_integer_intrinsic(value):
                    pending.extend(value.arguments)
                    continue
                if not isinstance(callee, Function) or effects_of(callee) is not None:
                    return None
                pending.extend(v for v in value.arguments if isinstance(v.type, IntType))
                callees[callee] = None
            case ConstantInt() | ConstantZero() | Undef() | Poison():
                pass
            case Parameter() if isinstance(value.type, IntType):
                pass  # what the caller gave
            case _:
                return None
    return list(callees)


def _returned(function: Function) -> list[Value]:
    return [v for block in function.blocks if isinstance(block.terminator, Ret) for v in block.terminator.operands]


def is_integer_intrinsic(call: CallSite) -> bool:
    """True if a call is of an intrinsic that computes an integer: the larger of two, the bits that are set."""
    name = call.callee.name if isinstance(call.callee, Function) else None
    return name is not None and name.startswith("llvm.") and isinstance(call.type, IntType)


def may_store_address(callee: Value, registry: Registry, known: dict[Function, bool]) -> bool:
    """True if a callee with a body, or an indirect one, may store an address anywhere, by itself or through others."""
    if not isinstance(callee, Function):
        return True
    if callee not in known:
        _settle(callee, known, lambda function: _stores_of(function, registry))
    return known[callee]


def _stores_of(function: Function, registry: Registry) -> list[Function] | None:
    """The functions with a body that a function calls; None if it may store an address by itself."""
    if function.is_declaration:
        return None  # of a rule: what it does is not seen here
    callees: dict[Function, None] = {}
    for inst in function.instructions():
        value = stored(inst)
        if value is not None and may_hold_pointer(value.type) and not _is_constant(value):
            return None
        if not isinstance(inst, CallSite):
            continue
        callee = resolve(inst, registry)
        effects = effects_of(callee)
        if effects is not None:
            if _hands_addresses_on(effects):
                return None
        elif not isinstance(callee, Function) or callee.is_declaration:
            return None
        else:
            callees[callee] = None
    return list(callees)


def _is_constant(value: Value) -> bool:
    """True if a value is one of some constants, or comes from a variable: only constants are stored there, too."""
    pending, seen = [value], {value}
    for each in pending:
        match each:
            case Constant() | GlobalVariable():
                pass
            case Load(operands=[Alloca() | GetElementPtr(operands=[Alloca(), *_])]):
                pass
            case Phi() | Select() | Freeze():
                new = [v for v in each.operands if v not in seen and may_hold_pointer(v.type)]
                seen.update(new)
                pending.extend(new)
            case _:
                return False
    return True


def _hands_addresses_on(effects: Effects) -> bool:
    stored = effects.captures_into or effects.fills or effects.copies or effects.makes or effects.moves or effects.links
    return bool(stored) or effects.keeps is not None
