"""The text of derivative kernels: what is in it, and what is refused before there is any."""

from __future__ import annotations

import llvmlite.binding as llvm
import pytest

from irad.backend.cuda.kernel import KernelModule
from irad.errors import SignatureError, UnsupportedError
from irad.kernel.derive import KernelDerivative, derive_kernel
from irad.options import Options
from irad.passes.mode import FORWARD_MODE, reverse_mode
from irad.passes.request import ParameterKind
from irad.ruleset.memory_type import MemoryType

HEAD = """
target triple = "nvptx64-nvidia-cuda"
target datalayout = "e-p6:32:32-i64:64-i128:128-i256:256-v16:16-v32:32-n16:32:64"
@s = internal addrspace(3) global [64 x double] undef, align 8
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)
declare void @llvm.nvvm.membar.gl()
"""
DOUBLES = MemoryType(8, ((0, "double"),))
KINDS = {"s": ParameterKind.SHADOW, "c": ParameterKind.CONST, "a": ParameterKind.ACTIVE}


def derived(body: str, kinds: str = "ss", params: str = "ptr %x, ptr %y", **options: object) -> KernelDerivative:
    text = f"{HEAD}\ndefine ptx_kernel void @k({params}) {{\n{body}\n}}\n"
    memory = [DOUBLES if "ptr" in param else None for param in params.split(",")]
    return derive_kernel(KernelModule(text, "k"), [KINDS[k] for k in kinds], memory, Options(), **options)


NEIGHBOUR = """
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %i = zext i32 %t to i64
  %px = getelementptr double, ptr %x, i64 %i
  %v = load double, ptr %px
  %ps = getelementptr [64 x double], ptr addrspacecast (ptr addrspace(3) @s to ptr), i64 0, i64 %i
  store double %v, ptr %ps
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %next = xor i64 %i, 1
  %pn = getelementptr [64 x double], ptr addrspacecast (ptr addrspace(3) @s to ptr), i64 0, i64 %next
  %w = load double, ptr %pn
  %q = fmul double %w, %w
  %py = getelementptr double, ptr %y, i64 %i
  store double %q, ptr %py
  ret void
"""


def test_barriers_are_repeated_and_shared_memory_has_a_shadow():
    made = derived(NEIGHBOUR)
    text = made.module.text
    assert text.count("call void @llvm.nvvm.barrier.cta.sync.aligned.all") == 3  # clearing, forward, reverse
    assert "@s.shadow = internal addrspace(3) global [64 x double]" in text
    assert text.count("atomicrmw fadd") == 2  # into the shadows of s and of x
    assert not made.uses_tape
    module = llvm.parse_assembly(text)
    module.verify()
    assert [f.name for f in module.functions if "ptx_kernel" in str(f).partition("{")[0]] == [made.module.name]


def test_each_direction_has_a_shadow_of_its_own():
    text = derived(NEIGHBOUR, mode=reverse_mode(2)).module.text
    assert "@s.shadow1" in text
    assert text.count("atomicrmw fadd") == 4


def test_forward_mode_adds_nothing_atomically():
    made = derived(NEIGHBOUR, mode=FORWARD_MODE)
    assert made.module.name == "k.tangent"
    assert "atomicrmw fadd" not in made.module.text


def test_local_memory_is_added_to_without_atomics():
    body = """
  %a = alloca double
  %v = load double, ptr %x
  store double %v, ptr %a
  br label %loop
loop:
  %i = phi i64 [ 0, %0 ], [ %next, %loop ]
  %u = load volatile double, ptr %a
  %w = fmul double %u, %u
  store volatile double %w, ptr %a
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, 5
  br i1 %more, label %loop, label %end
end:
  %last = load volatile double, ptr %a
  store double %last, ptr %y
  ret void
"""
    assert derived(body).module.text.count("atomicrmw fadd") == 1  # into the shadow of x


def test_fences_between_blocks_are_refused():
    with pytest.raises(UnsupportedError, match=r"cuda.threadfence\(\)"):
        derived("  call void @llvm.nvvm.membar.gl()\n  ret void")


def test_a_kind_for_each_parameter():
    with pytest.raises(SignatureError, match="has 2 parameters, and 1 kinds were given"):
        derived("  ret void", kinds="s")
