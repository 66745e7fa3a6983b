"""Atomic sums as calls, while a kernel is differentiated: the calls have a rule (`irad.rules.cuda.atomics`).

    %old = atomicrmw fadd ptr %y, double %v monotonic        call void @irad.cuda.atomic.add.f64(ptr %y, double %v)

An atomic operation whose result is used stays as it is: the engine refuses it where it updates active memory.
"""

from __future__ import annotations

from typing import Final

from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.instructions import AtomicRMW, CallSite
from irad.ir.module import Function, Module
from irad.ir.types import VOID, function_type
from irad.rules.cuda.atomics import ADD, SUBTRACT, is_subtraction

_OPERATIONS: Final = {"fadd": ADD, "fsub": SUBTRACT}
_SUFFIXES: Final = {types.FLOAT: "f32", types.DOUBLE: "f64"}
_ATTRIBUTES: Final = ("nounwind", "memory(argmem: readwrite)")


def call_atomics(module: Module) -> None:
    """Makes calls of atomic sums."""
    for function in module.defined_functions():
        for inst in list(function.instructions()):
            if isinstance(inst, AtomicRMW) and not inst.users:
                _make_call(module, inst)


def _make_call(module: Module, inst: AtomicRMW) -> None:
    pointer, amount = inst.operands
    name, suffix = _OPERATIONS.get(inst.opcode), _SUFFIXES.get(amount.type)
    if name is None or suffix is None:
        return
    build = Builder.before(inst)
    if pointer.type is not types.PTR:  # rules take generic pointers
        pointer = build.cast("addrspacecast", pointer, types.PTR)
    callee = module.declare(f"{name}.{suffix}", function_type(VOID, [types.PTR, amount.type]), _ATTRIBUTES)
    build.call(callee, [pointer, amount])
    inst.erase()


def restore_atomics(module: Module) -> None:
    """Makes atomic sums of calls again."""
    for function in module.defined_functions():
        for inst in list(function.instructions()):
            if isinstance(inst, CallSite) and _is_operation(inst.callee):
                pointer, amount = inst.arguments
                opcode = "fsub" if is_subtraction(str(inst.callee.name)) else "fadd"
                Builder.before(inst).atomic(opcode, amount, pointer)
                inst.erase()
    for name, declared in list(module.functions.items()):
        if _is_operation(declared) and declared.is_declaration:
            del module.functions[name]


def _is_operation(callee: object) -> bool:
    return isinstance(callee, Function) and str(callee.name).startswith((ADD, SUBTRACT))
