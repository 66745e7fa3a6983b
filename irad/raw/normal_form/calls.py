"""Calls in the form that the engine reads: no unwinding, known clobbers, plain variants of library functions."""

from __future__ import annotations

from typing import Final

from irad.errors import IradError, UnsupportedError, UnsupportedProgram
from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.cfg import remove_unreachable_blocks
from irad.ir.instructions import (
    Br,
    Call,
    CallSite,
    Instruction,
    Invoke,
    LandingPad,
    Load,
    Ret,
    accessed,
    replace_uses,
)
from irad.ir.module import Block, Function, Module
from irad.ir.types import VOID, ArrayType, FloatType, VectorType, function_type
from irad.ir.values import ConstantNull, GlobalAlias, GlobalVariable, InlineAsm, Value, const_int, parts_of
from irad.ir.worklist import Worklist, reachable
from irad.passes.callees import ELSEWHERE, Unknown, effects_of, resolve
from irad.raw.normal_form.replacement import branch_before, element_of, instead_of, on_behalf_of, replace
from irad.raw.symbols import expanded
from irad.ruleset.interface import Origin
from irad.ruleset.registry import Registry

# Invokes become calls: in a derivative no exception is caught, and none runs clean-ups.
#
# Input   a module in normal form.
# Output  whether anything was changed; the module is rewritten in place.
# Method  the normal way is kept. An exception that leaves the differentiated function ends the process (the function
#         that takes the place of the call for the derivative sees to that), so what a landing pad cleans up does not
#         matter, unless it branches back to ordinary code: then the program catches what it throws, which is refused.
#
#     invoke void @g() to label %next unwind label %pad        call void @g()
#                                                              br label %next


def lower_unwinding(module: Module) -> bool:
    """Rewrites every function.

    Raises:
        IradError: an exception is caught.
    """
    functions = [f for f in module.defined_functions() if any(isinstance(b.terminator, Invoke) for b in f.blocks)]
    errors = [error for function in functions for error in _caught(function)]
    if errors:
        raise errors[0] if len(errors) == 1 else UnsupportedProgram(errors)
    for function in functions:
        for block in list(function.blocks):
            if isinstance(block.terminator, Invoke):
                _lower(block, block.terminator)
        remove_unreachable_blocks(function)
        function.operands = tuple(pair for pair in function.operands if pair[0] != "personality")
    return bool(functions)


def _caught(function: Function) -> list[IradError]:
    """An error for each landing pad that the function comes back from."""
    errors: list[IradError] = []
    for block in function.blocks:
        pads = [inst for inst in block.instructions if isinstance(inst, LandingPad)]
        if pads and _returns(block):
            error = UnsupportedError(
                "an exception is caught in a function that is differentiated",
                "(a) use a condition instead, or (b) catch it outside of the function",
                "the reverse sweep retraces the path of the program, and an exception leaves no trace",
            )
            error.instruction = pads[0]
            errors.append(error)
    return errors


def _returns(start: Block) -> bool:
    return any(isinstance(block.terminator, Ret) for block in reachable([start], lambda block: block.successors))


def _lower(block: Block, invoke: Invoke) -> None:
    normal, unwind = invoke.targets
    call = Call(
        invoke.type,
        invoke.name,
        metadata=dict(invoke.metadata),
        operands=list(invoke.operands),
        function_type=invoke.function_type,
        convention=invoke.convention,
        result_attributes=invoke.result_attributes,
        argument_attributes=invoke.argument_attributes,
        attributes=invoke.attributes,
        bundles=invoke.bundles,
        flags=invoke.flags,
        addrspace=invoke.addrspace,
    )
    for phi in unwind.phis():
        pairs = [(value, source) for value, source in phi.incoming() if source is not block]
        phi.set_operands([value for value, _ in pairs])
        phi.blocks = [source for _, source in pairs]
    block.append(call)
    if invoke.type is not VOID:
        replace_uses(invoke, call)
    invoke.targets = []
    invoke.erase()
    block.append(Br(VOID, targets=[normal]))


# Marks calls that may write to memory that is not passed to them: through global variables, or in code elsewhere.
#
# Input   a module in normal form, the rules.
# Output  none; such calls get the attribute `irad.elsewhere`, and then count as writing to all memory that others know
#         of.
# Method  code without a body and without a rule may write anywhere, unless the attributes of its function say less. A
#         function with a body may, if it stores where a global variable or a pointer out of one leads, or if it makes
#         such a call. The engine knows what is passed to a call.
#
#     static double k[2];
#     void step(void) { k[0] *= 2; }        a call of step() may change what a parameter points to: that may be k

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
    """True if a call is of code that is not here and that no rule describes."""
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
    """True if a function with these attributes may write to memory that is not passed to it."""
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
    """True if an address is in a global variable, comes out of one, or is made by a function of unknown effect."""
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


# Calls of the C library that are variants of other calls get the plain form, which has a rule.
#
# Input   a module as its front end made it.
# Output  none; the module is rewritten in place.
# Method  copies and fills that check the size of their target (`-D_FORTIFY_SOURCE`) become a branch and the plain copy;
#         absolute value and angle of a complex number the functions of two numbers that they are, however a complex
#         number is passed; `posix_memalign` checks its arguments, calls `memalign` and stores the address. A request
#         for the address of a thread-local variable becomes the variable.
#
#     %r = call float @cabsf(<2 x float> %z)        %r = call float @hypotf(float %re, float %im)

_CHECKED: Final = {"__memcpy_chk": "memcpy", "__memmove_chk": "memmove", "__memset_chk": "memset"}
_OF_PARTS: Final = {"cabs": "hypot", "cabsf": "hypotf", "carg": "atan2", "cargf": "atan2f"}
_FAILURE: Final = "__chk_fail"
_THREAD_LOCAL: Final = "llvm.threadlocal.address."
_EINVAL, _ENOMEM, _WORD = 22, 12, 8


def plain_library_calls(module: Module) -> None:
    """Rewrites the calls of every function."""
    for function in module.defined_functions():
        for inst in list(function.instructions()):
            callee = inst.callee if isinstance(inst, Call) else None
            if isinstance(inst, Call) and isinstance(callee, Function) and callee.is_declaration:
                if callee.name in _CHECKED and len(inst.arguments) == 4:
                    _check_and_copy(inst, _CHECKED[callee.name])
                elif callee.name in _OF_PARTS and isinstance(inst.type, FloatType):
                    _call_with_parts(inst, _OF_PARTS[callee.name])
                elif (callee.name or "").startswith(_THREAD_LOCAL):
                    replace(inst, inst.arguments[0])
                elif callee.name == "posix_memalign" and len(inst.arguments) == 3:
                    _allocate_aligned(inst)


def _check_and_copy(call: Call, symbol: str) -> None:
    """Ends the process as the library does if more is copied than there is room for."""
    *plain, limit = call.arguments
    function, before, rest = branch_before(call)
    failure = function.add_block("overflow", after=before)
    build = on_behalf_of(call, Builder(before))
    build.cond_br(build.icmp("ugt", plain[2], limit), failure, rest)
    stop = on_behalf_of(call, Builder(failure))
    stop.call(stop.module.declare(_FAILURE, function_type(VOID, []), ("noreturn",)), [])
    stop.unreachable()
    _call_instead(call, instead_of(call), symbol, plain)


def _allocate_aligned(call: Call) -> None:
    """Returns an error where the alignment is not a power of two, or memory has run out, as the library does."""
    place, alignment, size = call.arguments
    function, before, rest = branch_before(call)
    allocate, keep = (function.add_block(name, after=before) for name in ("allocate", "keep"))
    none, word = const_int(types.I64, 0), const_int(types.I64, _WORD)
    build = on_behalf_of(call, Builder(before))
    is_power = build.icmp("eq", build.and_(alignment, build.sub(alignment, const_int(types.I64, 1))), none)
    build.cond_br(build.and_(is_power, build.icmp("uge", alignment, word)), allocate, rest)
    build = on_behalf_of(call, Builder(allocate))
    memalign = build.module.declare("memalign", function_type(types.PTR, [types.I64, types.I64]))
    memory = build.call(memalign, [alignment, size])
    build.cond_br(build.icmp("eq", memory, ConstantNull(types.PTR)), rest, keep)
    build = on_behalf_of(call, Builder(keep))
    build.store(memory, place, align=_WORD)
    build.br(rest)
    codes = [(_EINVAL, before), (_ENOMEM, allocate), (0, keep)]
    status = Builder.at_start(rest).phi(call.type, [(const_int(call.type, code), block) for code, block in codes])
    replace(call, status)


def _call_with_parts(call: Call, symbol: str) -> None:
    build, arguments = instead_of(call), call.arguments
    parts = arguments if len(arguments) == 2 else _parts(build, arguments[0])
    if [part.type for part in parts] == [call.type] * 2:
        _call_instead(call, build, symbol, parts if symbol.startswith("hypot") else parts[::-1])


def _parts(build: Builder, number: Value) -> list[Value]:
    """The real and the imaginary part of a complex number that is one argument."""
    match number.type:
        case VectorType(count=2):
            return [element_of(build, number, index) for index in range(2)]
        case ArrayType(count=2):
            return [build.extract_value(number, index) for index in range(2)]
        case _:
            return []


def _call_instead(call: Call, build: Builder, symbol: str, arguments: list[Value]) -> None:
    type_ = function_type(call.type, [argument.type for argument in arguments])
    replace(call, build.call(build.module.declare(symbol, type_), arguments))
