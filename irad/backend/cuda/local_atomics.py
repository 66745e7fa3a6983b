"""Atomic operations on addresses that may be those of local memory, which PTX leaves undefined.

Input   an optimised module, in which what is known of address spaces has been found out.
Output  the same, in which an atomic operation whose address was chosen from arrays of several spaces asks for the space
        when it runs: local memory is of one thread, where a plain operation does.

    atomicrmw fadd ptr %p, double %v    →      %l = call i1 @llvm.nvvm.isspacep.local(ptr %p)
                                               br i1 %l, label %local, label %atomic

        local:   atomicrmw fadd ptr addrspace(5) …        which LLVM's back end makes a plain operation
        atomic:  atomicrmw fadd ptr %p, double %v
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from irad.ir import instructions as ir, types
from irad.ir.builder import Builder
from irad.ir.clone import clone_instruction
from irad.ir.module import Block
from irad.ir.text.parser import parse_module
from irad.ir.text.printer import print_module
from irad.ir.types import function_type, pointer_type
from irad.ir.values import Constant, GlobalVariable, Parameter, Undef, Value
from irad.ir.worklist import reachable
from irad.passes.augmented.allocation_failure import split_before

_LOCAL: Final = 5  # LLVM's address space of local memory on NVPTX
_GENERIC_ATOMIC: Final = re.compile(r"\b(?:atomicrmw|cmpxchg)\b[^\n]*?\bptr [%@]")


def separate_local(text: str) -> str:
    """The text of a module with the tests; most have nothing to test."""
    if "alloca" not in text or not _GENERIC_ATOMIC.search(text):
        return text
    module = parse_module(text)
    changed = False
    for function in module.defined_functions():
        is_kernel = function.convention == "ptx_kernel"
        for inst in list(function.instructions()):
            is_generic = isinstance(inst, ir.AtomicRMW | ir.CmpXchg) and inst.operands[0].type is types.PTR
            if is_generic and _may_be_local(inst.operands[0], is_kernel=is_kernel):
                _separate(inst)
                changed = True
    return print_module(module) if changed else text


def _may_be_local(address: Value, *, is_kernel: bool) -> bool:
    """True if nothing shows that an address is in memory that threads share; parameters of kernels are."""
    shared = (Constant, GlobalVariable, Parameter) if is_kernel else (Constant, GlobalVariable)
    return not all(
        isinstance(each, shared) or _is_from_elsewhere(each) for each in sources(address, _is_from_elsewhere)
    )


def _is_from_elsewhere(value: Value) -> bool:
    """True if a pointer was one into memory that is not local."""
    return (
        isinstance(value, ir.Cast)
        and value.opcode == "addrspacecast"
        and value.operands[0].type is not pointer_type(_LOCAL)
    )


def sources(pointer: Value, is_end: Callable[[Value], bool] = lambda value: False) -> list[Value]:
    """Values that a pointer was computed from, as far as instructions show; nothing before a value that is an end."""

    def before(value: Value) -> list[Value]:
        match value:
            case _ if is_end(value):
                return []
            case ir.GetElementPtr(operands=[base, *_]) | ir.Freeze(operands=[base]):
                return [base]
            case ir.Cast(opcode="bitcast" | "addrspacecast", operands=[base]):
                return [base]
            case ir.Phi(operands=several) | ir.Select(operands=[_, *several]):
                return list(several)
            case _:
                return []

    return [each for each in reachable([pointer], before) if not before(each)]


def _separate(inst: ir.Instruction) -> None:
    before = inst.block
    assert before is not None
    assert before.function is not None
    rest = split_before(inst)
    own = before.function.add_block("local", after=before)
    shared = before.function.add_block("atomic", after=own)
    build = _builder(before, inst)
    test = build.module.declare("llvm.nvvm.isspacep.local", function_type(types.I1, [types.PTR]))
    build.cond_br(build.call(test, [inst.operands[0]]), own, shared)
    copy = clone_instruction(inst, {})
    shared.append(copy)
    results = [(_in_local(_builder(own, inst), inst), own), (copy, shared)]
    for block in (own, shared):
        _builder(block, inst).br(rest)
    if inst.users:
        ir.replace_uses(inst, Builder.at_start(rest).phi(inst.type, results))
    inst.erase()


def _builder(block: Block, inst: ir.Instruction) -> Builder:
    build = Builder(block)
    build.metadata = {kind: node for kind, node in inst.metadata.items() if kind == "dbg"}
    return build


def _in_local(build: Builder, inst: ir.Instruction) -> Value:
    """The operation on memory of the thread's own."""
    if isinstance(inst, ir.AtomicRMW):
        copy = clone_instruction(inst, {})
        copy.set_operand(0, build.cast("addrspacecast", inst.operands[0], pointer_type(_LOCAL)))
        build.insert(copy)
        return copy
    address, expected, new = inst.operands
    old = build.load(expected.type, address)
    is_equal = build.icmp("eq", old, expected)
    build.store(build.select(is_equal, new, old), address)
    return build.insert_value(build.insert_value(Undef(inst.type), old, 0), is_equal, 1)
