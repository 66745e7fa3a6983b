"""What ptxas says of a kernel is read, and its complaints name the line."""

from __future__ import annotations

import pytest

from irad.backend.cuda.kernel import KernelModule
from irad.backend.cuda.ptx import LaunchBounds, compile_ptx
from irad.backend.cuda.toolkit import assemble, find_tool
from irad.errors import BackendError
from tests.cuda.ptx.operations import ALL, kernel_of
from tests.cuda.ptx.tools import needs_ptxas

pytestmark = needs_ptxas

SHARED = """target triple = "nvptx64-nvidia-cuda"
@tile = internal addrspace(3) global [300 x double] undef, align 8
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)
define ptx_kernel void @k(ptr %out, double %d) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %own = getelementptr double, ptr addrspace(3) @tile, i32 %t
  store double %d, ptr addrspace(3) %own
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %other = sub i32 255, %t
  %far = getelementptr double, ptr addrspace(3) @tile, i32 %other
  %x = load double, ptr addrspace(3) %far
  %at = getelementptr double, ptr %out, i32 %t
  store double %x, ptr %at
  ret void
}
"""


def many_values(count: int) -> KernelModule:
    """A kernel that reads as many numbers before it writes any."""
    lines = [f"  %p{n} = getelementptr double, ptr %out, i64 {n}" for n in range(count)]
    lines += [f"  %v{n} = load volatile double, ptr %p{n}" for n in range(count)]
    lines += [f"  store volatile double %v{n}, ptr %p{count - 1 - n}" for n in range(count)]
    head = 'target triple = "nvptx64-nvidia-cuda"\ndefine ptx_kernel void @k(ptr %out) {\n'
    return KernelModule(head + "\n".join(lines) + "\n  ret void\n}\n", "k")


def test_shared_memory_and_barriers_are_counted():
    done = assemble(compile_ptx(KernelModule(SHARED, "k"), "sm_90"), "sm_90")
    assert (done.entry, done.shared, done.barriers) == ("k", 300 * 8, 1)
    assert 4 <= done.registers <= 32
    assert (done.stack, done.spill_stores, done.spill_loads) == (0, 0, 0)


def test_too_few_registers_are_spilled_and_that_is_seen():
    ptx = compile_ptx(many_values(40))
    free = assemble(ptx, "sm_80")
    assert free.registers >= 80
    assert free.spill_stores == 0
    few = assemble(ptx, "sm_80", max_registers=32)
    assert few.registers <= 32
    assert few.spill_stores > 0
    assert few.spill_loads > 0
    assert few.stack > 0


def test_bounds_of_the_launch_limit_registers():
    few = assemble(compile_ptx(many_values(40), bounds=LaunchBounds(registers=40)), "sm_80")
    assert few.registers <= 40
    assert few.spill_stores > 0


def test_a_complaint_names_the_line():
    ptx = compile_ptx(kernel_of(ALL[:1]))
    wrong = ptx.replace("mov.u32", "move.u32", 1)
    line = 1 + next(n for n, text in enumerate(wrong.splitlines()) if "move.u32" in text)
    with pytest.raises(BackendError, match=rf"line {line} of the PTX for sm_80: .*") as caught:
        assemble(wrong, "sm_80")
    assert "move.u32" in str(caught.value.detail)


def test_an_architecture_that_ptxas_does_not_know():
    with pytest.raises(BackendError, match="sm_42"):
        assemble(compile_ptx(kernel_of(ALL[:1])), "sm_42")


def test_one_kernel_at_a_time():
    with pytest.raises(BackendError, match="0 kernels"):
        assemble(".version 8.0\n.target sm_80\n.address_size 64\n", "sm_80")


def test_ptxas_is_a_program():
    assert find_tool("ptxas").name == "ptxas"
