"""Sets of inputs in place of tangents: instruction by instruction, in a loop, and where they cannot be known."""

from __future__ import annotations

import ctypes

import pytest

from irad.errors import NoRuleError
from irad.passes.mode import DEPENDENCE_MODE, TANGENT
from tests.passes.units import DOUBLES, POINTERS, doubles, pointer, running


def sets_of(text: str, point: list[float], results: int) -> list[set[int]]:
    """Which numbers each result of `i32 (ptr results, ptr exception, ptr a)` depends on."""
    made = running(text, "scs", [DOUBLES, POINTERS, DOUBLES], mode=DEPENDENCE_MODE)
    given = (ctypes.c_uint64 * len(point))(*(1 << i for i in range(len(point))))
    found, result, a = (ctypes.c_uint64 * results)(), doubles(*[0.0] * results), doubles(*point)
    arguments = pointer(result), ctypes.c_void_p(0), pointer(a), pointer(found), pointer(given)
    try:
        assert made.call(made.derivative.symbols[TANGENT], *arguments) == 0
    finally:
        made.close()
    return [{i for i in range(64) if bits >> i & 1} for bits in found]


INSTRUCTIONS = """
declare double @llvm.sin.f64(double)
declare double @llvm.copysign.f64(double, double)
declare double @llvm.floor.f64(double)
define i32 @f(ptr noalias %r, ptr noalias %e, ptr %a) {
  %p1 = getelementptr double, ptr %a, i64 1
  %p2 = getelementptr double, ptr %a, i64 2
  %p3 = getelementptr double, ptr %a, i64 3
  %x0 = load double, ptr %a
  %x1 = load double, ptr %p1
  %x2 = load double, ptr %p2
  %x3 = load double, ptr %p3
  %zero = fmul double %x0, 0.0
  %low = fcmp nnan olt double %x1, %x2
  %least = select nnan i1 %low, double %x1, double %x2
  %negative = fneg fast double %least
  %single = fptrunc double %negative to float
  %double = fpext float %single to double
  %s = call double @llvm.sin.f64(double %x3)
  %floor = call double @llvm.floor.f64(double %x0)
  %sum = fadd fast double %s, %floor
  %signed = call double @llvm.copysign.f64(double %x3, double %x0)
  %r1 = getelementptr double, ptr %r, i64 1
  %r2 = getelementptr double, ptr %r, i64 2
  %r3 = getelementptr double, ptr %r, i64 3
  store double %zero, ptr %r
  store double %double, ptr %r1
  store double %sum, ptr %r2
  store double %signed, ptr %r3
  ret i32 0
}
"""

LOOP = """
define i32 @f(ptr noalias %r, ptr noalias %e, ptr %a) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %sum = phi double [ 0.0, %entry ], [ %added, %loop ]
  %p = getelementptr double, ptr %a, i64 %i
  %x = load double, ptr %p
  %added = fdiv double %x, %sum
  %next = add i64 %i, 1
  %first = load double, ptr %a
  %n = fptosi double %first to i64
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %end
end:
  store double %added, ptr %r
  ret i32 0
}
"""


def test_each_operand_counts_whatever_its_slope_is():
    assert sets_of(INSTRUCTIONS, [1.0, 2.0, 3.0, 4.0], 4) == [{0}, {1, 2}, {3}, {3}]


def test_branches_that_are_taken():
    assert sets_of(LOOP, [1.0, 5.0, 6.0], 1) == [{0}]
    assert sets_of(LOOP, [2.0, 5.0, 6.0], 1) == [{0, 1}]


def test_a_rule_that_computes_with_memory_is_refused():
    text = """
declare void @dscal_(ptr, ptr, ptr, ptr)
define i32 @f(ptr noalias %r, ptr noalias %e, ptr %a) {
  %n = alloca i32
  store i32 1, ptr %n
  call void @dscal_(ptr %n, ptr %a, ptr %a, ptr %n)
  %x = load double, ptr %a
  store double %x, ptr %r
  ret i32 0
}
"""
    with pytest.raises(NoRuleError, match=r"on which numbers the results of .* depend"):
        sets_of(text, [1.0], 1)
