"""Marks calls that may write to memory that is not passed to them: through global variables, or in code elsewhere.

Input   a module in normal form, the rules.
Output  none; such calls get the attribute `irad.elsewhere`, and then count as writing to all memory that others know
        of.
Method  code without a body and without a rule may write anywhere, unless the attributes of its function say less. A
        function with a body may, if it stores where a global variable or a pointer out of one leads, or if it makes
        such a call. The engine knows what is passed to a call.

    static double k[2];
    void step(void) { k[0] *= 2; }        a call of step() may change what a parameter leads to: that may be k
"""

from __future__ import annotations

from typing import Final

from irad.ir.instructions import (
    CallSite,
    Instruction,
    Load,
    accessed,
)
from irad.ir.module import Function, Module
from irad.ir.values import GlobalAlias, GlobalVariable, InlineAsm, Value, parts_of
from irad.ir.worklist import Worklist
from irad.passes.analysis.callees import ELSEWHERE, Unknown, effects_of, resolve
from irad.raw.attributes import expanded
from irad.ruleset.interface import Origin
from irad.ruleset.registry import Registry

_MEMORY: Final = "memory("
_CLOBBER: Final = "~{memory}"


def mark_external_clobbers(module: Module, registry: Registry) -> None:
    """Marks the calls of every function."""
    functions = module.defined_functions()
    writing = {f for f in functions if any(_writes_elsewhere(inst, registry) for inst in f.instructions())}
    calls = [inst for f in functions for inst in f.instructions() if isinstance(inst, CallSite)]
    marked = [call for call in calls if _is_external(call, module, registry)]
    writing |= {home for call in marked if (home := _home(call)) is not None}
    size = -1
    while len(writing) != size:
        size = len(writing)
        for call in calls:
            home = _home(call)
            if call.callee in writing and home is not None:
                writing.add(home)
    for call in dict.fromkeys([*marked, *(call for call in calls if call.callee in writing)]):
        call.attributes = (*call.attributes, ELSEWHERE)


def _home(inst: Instruction) -> Function | None:
    return inst.block.function if inst.block is not None else None


def _is_external(call: CallSite, module: Module, registry: Registry) -> bool:
    """Whether a call is of code that is not here and that no rule describes."""
    match call.callee:
        case InlineAsm() as assembly:
            return _CLOBBER in assembly.text
        case Function() as callee:
            if not callee.is_declaration or effects_of(resolve(call, registry)) is not None:
                return False
            return _may_write(expanded(callee, module)) and _may_write(frozenset(call.attributes))
        case _:
            return True


def _may_write(attributes: frozenset[str]) -> bool:
    """Whether a function with these attributes may write to memory that is not passed to it."""
    declared = next((word for word in attributes if word.startswith(_MEMORY)), None)
    if declared is None:
        return not attributes & {"readnone", "readonly", "argmemonly"}
    parts = (part.strip() for part in declared[len(_MEMORY) : -1].split(","))
    return any("write" in part for part in parts if ":" not in part)


def _writes_elsewhere(inst: Instruction, registry: Registry) -> bool:
    if isinstance(inst, CallSite):
        effects = effects_of(resolve(inst, registry))
        return effects is not None and any(_is_elsewhere(inst.arguments[i], registry) for i in effects.writes)
    pointer = accessed(inst)
    return pointer is not None and not isinstance(inst, Load) and _is_elsewhere(pointer, registry)


def _is_elsewhere(pointer: Value, registry: Registry) -> bool:
    """Whether an address is in a global variable, comes out of one, or is made by a function of unknown effect."""
    pending = Worklist([pointer])
    for value in pending:
        match value:
            case GlobalVariable(constant=False) | GlobalAlias():
                return True
            case CallSite():
                callee = resolve(value, registry)
                effects = effects_of(callee)
                if effects is None or isinstance(callee, Unknown):
                    return True
                if effects.result is Origin.ARGUMENT:
                    pending.add(value.arguments[effects.result_argument])
            case Instruction():
                pending.add(*value.operands)
            case _:
                pending.add(*parts_of(value))
    return False
