from __future__ import annotations

import math

import pytest

from irad.ir.instructions import Call
from irad.passes.mode import REVERSE
from tests.passes.units import generated, gradient

PLANS = pytest.mark.parametrize("plan", ["default", "save_all"])


@PLANS
def test_a_recursive_callee(plan):
    text = """
    define i32 @f(ptr noalias %r, ptr noalias %e, ptr %a, i64 %n) {
      %x = load double, ptr %a
      %y = call double @power(double %x, i64 %n)
      store double %y, ptr %r
      ret i32 0
    }
    define internal double @power(double %x, i64 %n) {
    entry:
      %stop = icmp sle i64 %n, 0
      br i1 %stop, label %end, label %more
    more:
      %m = sub i64 %n, 1
      %rest = call double @power(double %x, i64 %m)
      %y = fmul double %x, %rest
      br label %end
    end:
      %z = phi double [ 1.0, %entry ], [ %y, %more ]
      ret double %z
    }"""
    assert gradient(text, [1.5], 4, plan=plan) == pytest.approx([4 * 1.5**3], rel=1e-14)
    assert gradient(text, [1.5], 0, plan=plan) == [0.0]


CALL_IN_LOOP = """
declare double @exp(double)
define i32 @f(ptr noalias %r, ptr noalias %e, ptr %a, i64 %n) {
entry:
  %x = load double, ptr %a
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %s = phi double [ %x, %entry ], [ %t, %loop ]
  %t = call double @half(double %s)
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %end
end:
  %out = phi double [ %t, %loop ]
  store double %out, ptr %r
  ret i32 0
}
define internal double @half(double %s) {
  %e = call double @exp(double %s)
  %h = fmul double %e, 0.5
  ret double %h
}
"""


@PLANS
def test_a_callee_in_a_loop_has_a_frame_for_each_call(plan):
    s, factor = -1.0, 1.0
    for _ in range(4):
        s = math.exp(s) * 0.5
        factor *= s
    assert gradient(CALL_IN_LOOP, [-1.0], 4, plan=plan) == pytest.approx([factor], rel=1e-14)


def test_a_callee_that_writes_memory():
    text = """
    define i32 @f(ptr noalias %r, ptr noalias %e, ptr %a) {
      %l = alloca [2 x double]
      %x = load double, ptr %a
      call void @fill(ptr %l, double %x)
      %at = getelementptr double, ptr %l, i64 1
      %y = load double, ptr %at
      %z = fmul double %y, %x
      store double %z, ptr %r
      ret i32 0
    }
    define internal void @fill(ptr %p, double %x) {
      %q = getelementptr double, ptr %p, i64 1
      %xx = fmul double %x, %x
      store double %xx, ptr %q
      ret void
    }"""
    assert gradient(text, [3.0]) == [27.0]


def test_a_callee_that_returns_a_pointer():
    text = """
    define i32 @f(ptr noalias %r, ptr noalias %e, ptr %a) {
      %p = call ptr @second(ptr %a)
      %y = load double, ptr %p
      %z = fmul double %y, %y
      store double %z, ptr %r
      ret i32 0
    }
    define internal ptr @second(ptr %p) {
      %q = getelementptr double, ptr %p, i64 1
      ret ptr %q
    }"""
    assert gradient(text, [3.0, 5.0]) == [0.0, 10.0]


def test_a_copy():
    text = """
    declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
    define i32 @f(ptr noalias %r, ptr noalias %e, ptr %a) {
      %l = alloca [2 x double]
      call void @llvm.memcpy.p0.p0.i64(ptr %l, ptr %a, i64 16, i1 false)
      %at = getelementptr double, ptr %l, i64 1
      %x = load double, ptr %l
      %y = load double, ptr %at
      %z = fmul double %x, %y
      store double %z, ptr %r
      ret i32 0
    }"""
    assert gradient(text, [3.0, 5.0]) == [5.0, 3.0]


def test_inactive_calls_leave_no_trace():
    text = """
    declare double @llvm.floor.f64(double)
    declare void @NRT_incref(ptr)
    define i32 @f(ptr noalias %r, ptr noalias %e, ptr %a) {
      call void @NRT_incref(ptr null)
      %x = load double, ptr %a
      %w = call double @llvm.floor.f64(double %x)
      %z = fmul double %x, %w
      store double %z, ptr %r
      ret i32 0
    }"""
    assert gradient(text, [3.5]) == [3.0]
    (made,) = generated(text, "scs")
    called = {i.callee.name for i in made.pair[REVERSE].instructions() if isinstance(i, Call)}
    assert "NRT_incref" not in called
