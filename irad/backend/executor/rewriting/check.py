"""Refuses what the executor does not know, by name and line, before anything is compiled."""

from __future__ import annotations

from collections.abc import Iterator

from irad.backend.cuda.kernel import DYNAMIC_SHARED
from irad.backend.executor.dialect import OPERATIONS, TABLES, WATCHES
from irad.backend.executor.printing import VPRINTF
from irad.backend.executor.rewriting.libdevice import is_known
from irad.errors import UnsupportedError, UnsupportedProgram
from irad.ir import instructions as ir
from irad.ir.debug_info import DebugInfo
from irad.ir.module import Function, Module
from irad.ir.values import ConstantInt, GlobalVariable, InlineAsm

_TARGETS = ("nvvm", "amdgcn", "x86", "aarch64", "arm")


def check_operations(module: Module) -> None:
    """Looks at every call.

    Raises:
        UnsupportedError: names each operation that is not known.
    """
    debug = DebugInfo(module)
    errors = list(_problems(module, debug))
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise UnsupportedProgram(errors)


def _problems(module: Module, debug: DebugInfo) -> Iterator[UnsupportedError]:
    for variable in module.globals.values():
        if _is_undefined(variable):
            yield _refusal(f"the kernel uses the variable {variable.name}, which is not defined", None, debug)
    for function in module.defined_functions():
        for inst in function.instructions():
            if isinstance(inst, ir.CallSite) and (problem := _problem(inst)) is not None:
                yield _refusal(problem, inst, debug)
            elif isinstance(inst, ir.Alloca) and not all(isinstance(n, ConstantInt) for n in inst.operands):
                yield _refusal("the size of a local array is only known when the kernel runs", inst, debug)


def _is_undefined(variable: GlobalVariable) -> bool:
    is_declaration = variable.initializer is None
    is_known = variable.name == DYNAMIC_SHARED or str(variable.name).startswith(TABLES)
    return is_declaration and not is_known and "addrspace(3)" not in variable.prefix


def _problem(call: ir.CallSite) -> str | None:
    """Why the executor cannot carry out a call, or None."""
    callee = call.callee
    if isinstance(callee, InlineAsm):
        return f"the executor does not know inline assembly ({callee.text})"
    if not isinstance(callee, Function):
        return "the executor does not know calls through pointers"
    name = callee.name or ""
    if not callee.is_declaration or name in OPERATIONS | WATCHES | {VPRINTF} or is_known(name):
        return None
    if name.startswith("llvm.") and name.split(".")[1] not in _TARGETS:
        return None
    return f"the executor does not know {name}"


def _refusal(problem: str, inst: ir.Instruction | None, debug: DebugInfo) -> UnsupportedError:
    error = UnsupportedError(
        problem,
        "(a) leave the operation out when the kernel runs on the CPU or (b) run the kernel on a GPU",
        "on the CPU a kernel is rewritten operation by operation",
        location=debug.location(inst) if inst is not None else None,
    )
    if inst is not None:
        # The kernel itself calls the user's function; it has no name but its symbol.
        error.callers = tuple(place for place in debug.inline_chain(inst)[1:] if not place.function.startswith("_Z"))
    return error
