"""Every kernel of the catalogue in the kernel dialect."""

from __future__ import annotations

import llvmlite.binding as llvm
import pytest
from numba import cuda

from irad.frontend.cuda.program import load_kernel
from irad.ir.instructions import Call
from irad.ir.text.parser import parse_module
from irad.ir.values import InlineAsm
from tests.cuda.case import Case
from tests.cuda.kernels import CASES, KERNELS

OPERATIONS = {
    "stencil": "llvm.nvvm.barrier.cta.sync.aligned.all",
    "scan": "irad.cuda.dynamic_shared_size",
    "warp_reduction": "irad.cuda.shfl.down.f64",
    "jacobi": "llvm.nvvm.read.ptx.sreg.tid.z",
}


def is_mark(call: Call) -> bool:
    """Whether LLVM makes no code of a call, which is of no line."""
    return str(call.callee.name).startswith(("llvm.lifetime.", "llvm.experimental.noalias.scope.decl"))


@pytest.mark.parametrize("case", CASES, ids=list(KERNELS))
def test_the_text_is_in_the_dialect(case: Case):
    program = load_kernel(cuda.jit(case.kernel), case.types())
    text = program.module.text
    llvm.parse_assembly(text).verify()
    module = parse_module(text)
    kernels = [each for each in module.functions.values() if each.convention == "ptx_kernel"]
    assert [each.name for each in kernels] == [program.module.name]
    flattened = [name for parameter in program.signature.parameters for name in parameter.flattened]
    assert [parameter.name for parameter in kernels[0].params] == flattened
    calls = [inst for f in module.defined_functions() for inst in f.instructions() if isinstance(inst, Call)]
    assert not any(isinstance(call.callee, InlineAsm) for call in calls)
    names = {str(call.callee.name) for call in calls}
    assert not any("atomic" in name for name in names)
    assert OPERATIONS.get(case.name) in {None, *names}
    called = [call for call in calls if call.block and call.block.function in kernels and not is_mark(call)]
    assert all(call.metadata.get("dbg") for call in called)


def test_a_kernel_is_compiled_once():
    case = KERNELS["elementwise"]
    kernel = cuda.jit(case.kernel)
    first = load_kernel(kernel, case.types())
    assert load_kernel(kernel, case.types()) is first
    assert load_kernel(kernel, case.types(), fastmath=True).module.fastmath
    assert not first.module.fastmath


def test_shared_memory():
    module = parse_module(load_kernel(cuda.jit(KERNELS["scan"].kernel), KERNELS["scan"].types()).module.text)
    assert [(name, str(each.value_type), each.prefix) for name, each in module.globals.items()] == [
        ("irad.dynamic_shared", "[0 x i8]", ("external", "addrspace(3)"))
    ]
    module = parse_module(load_kernel(cuda.jit(KERNELS["stencil"].kernel), KERNELS["stencil"].types()).module.text)
    [shared] = module.globals.values()
    assert str(shared.value_type) == "[34 x double]"
    assert shared.prefix == ("internal", "addrspace(3)")
