"""Which shadows are added to without atomic operations: those of arrays whose elements belong to one thread each."""

from __future__ import annotations

import pytest

from tests.kernel.test_text import derived

GLOBAL = """
  %t32 = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %b32 = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %n32 = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %t = sext i32 %t32 to i64
  %b = sext i32 %b32 to i64
  %m = sext i32 %n32 to i64
  %o = mul i64 %b, %m
  %g = add i64 %o, %t
"""
REGISTERS = """
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
"""


def additions(body: str, axes: int = 1, *, apart: bool = True, plan: str = "default") -> int:
    """The atomic additions in the derivative of a kernel that reads x and writes y."""
    text = f"{GLOBAL}{body}\n}}\n{REGISTERS}\ndefine void @unused() {{\n  ret void"
    return derived(text, params="ptr %x, ptr %y", axes=axes, apart=apart).module.text.count("atomicrmw fadd")


def squared(index: str, into: str = "%g") -> str:
    return f"""
  %px = getelementptr double, ptr %x, i64 {index}
  %v = load double, ptr %px
  %q = fmul double %v, %v
  %py = getelementptr double, ptr %y, i64 {into}
  store double %q, ptr %py
  ret void"""


def test_the_thread_s_own_element():
    assert additions(squared("%g")) == 0


def test_elements_at_one_distance():
    assert additions("  %i = add i64 %g, 5\n" + squared("%i")) == 0


def test_several_elements_each():
    body = """
  %a = mul i64 %g, 2
  %c = add i64 %a, 1
  %pa = getelementptr double, ptr %x, i64 %a
  %va = load double, ptr %pa
  %pc = getelementptr double, ptr %x, i64 %c
  %vc = load double, ptr %pc
  %q = fmul double %va, %vc
  %py = getelementptr double, ptr %y, i64 %g
  store double %q, ptr %py
  ret void"""
    assert additions(body) == 0


@pytest.mark.parametrize(
    "index",
    [
        pytest.param("  %i = add i64 %g, 0\n  %j = and i64 %i, 15\n", id="the same in several threads"),
        pytest.param("  %j = add i64 %o, 3\n", id="one for each block"),
        pytest.param("  %j = add i64 %t, 0\n", id="the number in the block"),
        pytest.param("  %w = add i32 %b32, %t32\n  %j = sext i32 %w to i64\n", id="blocks overlap"),
        pytest.param(
            "  %w = mul i32 %b32, %n32\n  %z = add i32 %w, %t32\n  %j = sext i32 %z to i64\n", id="it may wrap around"
        ),
    ],
)
def test_elements_that_threads_may_share(index: str):
    assert additions(index + squared("%j")) == 1


def test_neighbours():
    body = """
  %next = add i64 %g, 1
  %pa = getelementptr double, ptr %x, i64 %g
  %va = load double, ptr %pa
  %pc = getelementptr double, ptr %x, i64 %next
  %vc = load double, ptr %pc
  %q = fmul double %va, %vc
  %py = getelementptr double, ptr %y, i64 %g
  store double %q, ptr %py
  ret void"""
    assert additions(body) == 2


def test_a_launch_along_more_axes():
    assert additions(squared("%g"), axes=2) == 1


def test_arguments_that_may_be_the_same_array():
    assert additions(squared("%g"), apart=False) == 1


STRIDED = """
  %k32 = call i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
  %k = sext i32 %k32 to i64
  %G = mul i64 %k, %m
  br label %loop
loop:
  %i = phi i64 [ %g, %0 ], [ %i.next, %loop ]
  %px = getelementptr double, ptr %x, i64 %i
  %v = load double, ptr %px
  %q = fmul double %v, %v
  %py = getelementptr double, ptr %y, i64 %i
  store double %q, ptr %py
  %i.next = add i64 %i, {step}
  %more = icmp ult i64 %i.next, 1000
  br i1 %more, label %loop, label %end
end:
  ret void"""


def test_a_loop_by_the_size_of_the_grid():
    assert additions(STRIDED.format(step="%G")) == 0


def test_a_loop_by_anything_else():
    assert additions(STRIDED.format(step="%m")) == 1
    assert additions(STRIDED.format(step="1")) == 1


def test_what_all_threads_read_is_summed_up_first():
    text = derived(f"{GLOBAL}{squared('3')}\n}}\n{REGISTERS}\ndefine void @unused() {{\n  ret void", axes=1).module.text
    assert "call void @irad.cuda.add_together.f64(ptr %" in text
    text = derived(
        f"{GLOBAL}{squared('%g')}\n}}\n{REGISTERS}\ndefine void @unused() {{\n  ret void", axes=1
    ).module.text
    assert "add_together" not in text
