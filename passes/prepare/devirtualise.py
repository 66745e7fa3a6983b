"""Devirtualise: calls through a pointer become direct calls of the functions that the pointer may hold.

Input   a module in normal form.
Output  none; the module is rewritten. A call through a pointer is left only where the pointer may lead out of it.
Method  the pointer is traced through phis and selects to functions, and through loads from constant tables. Where that
        ends somewhere else, every function of the module whose address is taken and whose type fits is a candidate.
        The call is replaced by a chain of compares; what matches none is called through the pointer as before.
Why     the branches are ordinary calls: with a body or a rule, analysed and taped like any other.
Limit   functions are distinguished by type and not by how they reach the place where they are called.

    %f = select i1 %c, ptr @a, ptr @b         %is = icmp eq ptr %f, @a
    %r = call double %f(double %x)            br i1 %is, label %call, label %call1      (@b needs no compare)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from irad.ir.builder import Builder
from irad.ir.clone import clone_instruction
from irad.ir.instructions import Call, Cast, Freeze, GetElementPtr, Load, Phi, Select, replace_uses
from irad.ir.module import Block, Function, Module
from irad.ir.types import VOID, FunctionType
from irad.ir.values import (
    Constant,
    ConstantAggregate,
    ConstantExpression,
    ConstantNull,
    GlobalVariable,
    InlineAsm,
    Poison,
    Undef,
    Value,
    parts_of,
)
from irad.passes.augmented.allocation_failure import split_after
from irad.records import dataclass


def devirtualise(module: Module) -> bool:
    """Rewrites all calls through pointers; whether any could be.

    The front end does it between two runs of LLVM's scalar pipeline, so that what is called directly is inlined.
    """
    calls = [
        inst
        for function in module.defined_functions()
        for inst in function.instructions()
        if isinstance(inst, Call) and is_through_pointer(inst)
    ]
    if not calls:
        return False
    changed = False
    taken = taken_functions(module)
    for call in calls:
        found = _trace(call.callee)
        targets = found.functions if found.is_complete else {**found.functions, **taken}
        fitting = [f for f in targets if _fits(f, call.function_type)]
        if fitting:
            _replace(call, fitting, is_complete=found.is_complete)
            changed = True
    return changed


def is_through_pointer(call: Call) -> bool:
    """True if the callee is a value, not a function or assembly."""
    return not isinstance(call.callee, Function | InlineAsm)


def _fits(function: Function, type_: FunctionType) -> bool:
    # A call by another convention than the function's own has no meaning.
    return function.function_type is type_ and function.convention is None


# --- which functions --------------------------------------------------------------------------------------------------


def taken_functions(module: Module) -> dict[Function, None]:
    """The functions whose address is used for more than calling them, in order."""
    found: dict[Function, None] = {}
    for variable in module.globals.values():
        if variable.initializer is not None:
            found.update(dict.fromkeys(_functions_in(variable.initializer)))
    for function in module.defined_functions():
        for inst in function.instructions():
            values = inst.operands[:-1] if isinstance(inst, Call) else inst.operands
            for value in values:
                found.update(dict.fromkeys(_functions_in(value)))
    return found


def _functions_in(value: Value) -> Iterator[Function]:
    """The functions in a constant."""
    if isinstance(value, Function):
        yield value
    for part in parts_of(value):
        yield from _functions_in(part)


@dataclass(eq=False, slots=True)
class _Found:
    """Functions that a pointer may hold, and whether these are all."""

    functions: dict[Function, None] = field(default_factory=dict)
    is_complete: bool = True


def _trace(pointer: Value) -> _Found:
    found = _Found()
    pending, seen = [pointer], set[Value]()
    while pending:
        value = pending.pop(0)
        if value in seen:
            continue
        seen.add(value)
        match value:
            case Function():
                found.functions[value] = None
            case Phi() | Freeze():
                pending.extend(value.operands)
            case Select(operands=[_, a, b]):
                pending.extend((a, b))
            case Cast(opcode="bitcast", operands=[source]):
                pending.append(source)
            case Load(operands=[source]):
                table = _constant_table(source)
                if table is None:
                    found.is_complete = False
                else:
                    pending.extend(table)
            case ConstantNull() | Undef() | Poison():
                pass  # a call of these has no meaning
            case _:
                found.is_complete = False
    return found


def _constant_table(pointer: Value) -> list[Value] | None:
    """All pointers that a load from a constant global may give; None if it loads from other memory."""
    while isinstance(pointer, GetElementPtr | ConstantExpression):
        pointer = pointer.operands[0]
    match pointer:
        case GlobalVariable(constant=True, initializer=Constant() as content):
            return list(_leaves(content))
        case _:
            return None


def _leaves(content: Value) -> Iterator[Value]:
    if isinstance(content, ConstantAggregate):
        for element in content.elements:
            yield from _leaves(element)
    else:
        yield content


# --- the chain --------------------------------------------------------------------------------------------------------


def _replace(call: Call, targets: list[Function], *, is_complete: bool) -> None:
    """Replaces a call by direct calls; one through the pointer stays unless the targets are complete."""
    if is_complete and len(targets) == 1:
        call.set_operand(len(call.operands) - 1, targets[0])
        return
    rest = split_after(call)
    block = call.block
    assert block is not None
    results: list[tuple[Value, Block]] = []
    for number, target in enumerate(targets):
        if is_complete and number == len(targets) - 1:
            results.append(_direct(call, target, block, rest))
            break
        following = _new_block(block, "other")
        taken = _new_block(block, "call")
        build = _builder(block, call)
        build.cond_br(build.icmp("eq", call.callee, target), taken, following)
        results.append(_direct(call, target, taken, rest))
        block = following
    if not is_complete:
        copy = clone_instruction(call, {})
        block.append(copy)
        _builder(block, call).br(rest)
        results.append((copy, block))
    if call.type is not VOID:
        replace_uses(call, Builder.at_start(rest).phi(call.type, results, name=call.name))
    call.erase()


def _new_block(block: Block, name: str) -> Block:
    assert block.function is not None
    return block.function.add_block(f"{block.name}.{name}", after=block)


def _builder(block: Block, call: Call) -> Builder:
    build = Builder(block)
    build.origin, build.metadata = call, call.metadata
    return build


def _direct(call: Call, target: Function, block: Block, rest: Block) -> tuple[Value, Block]:
    """Emits a direct call at the end of a block; its result and that block."""
    build = _builder(block, call)
    result = build.call(target, call.arguments, name=call.name)
    build.br(rest)
    return result, block
