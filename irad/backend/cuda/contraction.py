"""Products and sums that may become fused multiply-adds, as nvcc and Numba have it.

A fused operation rounds once where two round twice. Whoever differentiates has to know: what the forward sweep and the
reverse sweep both compute may then be rounded differently in each, and decisions made from it are saved
(`irad.passes.agreement`). So the words are put on the primal, *before* it is differentiated (the front end does that);
its derivative has them too, and `compile_ptx` puts them on the instructions that the derivative adds.

    %p = fmul double %a, %b              %p = fmul contract double %a, %b
    %s = fadd double %p, %c              %s = fadd contract double %p, %c          fma.rn.f64
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from irad.backend.cuda.kernel import KernelModule
from irad.ir.instructions import Binary
from irad.ir.module import Module
from irad.ir.text.parser import parse_module
from irad.ir.text.printer import print_module

_OPCODES: Final = frozenset({"fadd", "fsub", "fmul"})
_ENOUGH: Final = frozenset({"contract", "fast"})


def contracted(kernel: KernelModule) -> KernelModule:
    """The kernel for a GPU: LLVM may fuse its products and sums, and those of its derivative."""
    if kernel.contract:
        return kernel
    module = parse_module(kernel.text)
    allow_contraction(module)
    return replace(kernel, text=print_module(module), contract=True)


def allow_contraction(module: Module) -> None:
    """Puts the word on every product and sum."""
    for function in module.defined_functions():
        for inst in function.instructions():
            if isinstance(inst, Binary) and inst.opcode in _OPCODES and _ENOUGH.isdisjoint(inst.flags):
                inst.flags = (*inst.flags, "contract")
