"""The function of forward mode, compared with closed forms and with the reverse of the same program."""

from __future__ import annotations

import ctypes
import math
from dataclasses import replace
from typing import Any

import pytest

from irad.errors import NoRuleError
from irad.ir.instructions import Call, Load, Store
from irad.ir.module import Function
from irad.passes.mode import FORWARD_MODE, TANGENT, forward_mode
from irad.rules import ALL
from irad.ruleset.interface import CallRule
from irad.ruleset.registry import Registry
from tests.passes import units
from tests.passes.units import DOUBLES, POINTERS, derivative, doubles, gradient, pointer, running

PLANS = pytest.mark.parametrize("plan", ["default", "save_all"])


def directional(text: str, point: list[float], direction: list[float], *integers: int, **options: Any) -> float:
    """The tangent of what `i32 (ptr result, ptr exception, ptr a, i64…)` stores to its result."""
    memory = [DOUBLES, POINTERS, DOUBLES, *(None for _ in integers)]
    made = running(text, "scs" + "c" * len(integers), memory, mode=FORWARD_MODE, **options)
    result, tangent, a, shadow = doubles(0.0), doubles(math.nan), doubles(*point), doubles(*direction)
    numbers = [ctypes.c_int64(i) for i in integers]
    nothing = ctypes.c_void_p(0)
    try:
        symbol = made.derivative.symbols[TANGENT]
        status = made.call(symbol, pointer(result), nothing, pointer(a), *numbers, pointer(tangent), pointer(shadow))
        assert status == 0
    finally:
        made.close()
    return float(tangent[0])


def check(text: str, point: list[float], *integers: int, plan: str = "default") -> None:
    """Forward mode against the gradient, in each direction."""
    expected = gradient(text, point, *integers, plan=plan)
    found = [
        directional(text, point, [float(i == k) for i in range(len(point))], *integers, plan=plan)
        for k in range(len(point))
    ]
    assert found == pytest.approx(expected, rel=1e-14)


STRAIGHT = """
declare double @llvm.sin.f64(double)
define i32 @f(ptr noalias %r, ptr noalias %e, ptr %a) {
  %q = getelementptr double, ptr %a, i64 1
  %x = load double, ptr %a
  %y = load double, ptr %q
  %s = fadd double %x, 3.0
  %d = fsub double %s, %y
  %m = fmul double %d, %y
  %v = fdiv double %m, %x
  %n = fneg double %v
  %w = call double @llvm.sin.f64(double %n)
  %t = frem double %w, %y
  store double %t, ptr %r
  ret i32 0
}
"""


@PLANS
def test_arithmetic_and_elementwise_functions(plan: str):
    check(STRAIGHT, [0.7, 1.9], plan=plan)
    x, y = 0.7, 1.9
    inner = -(x + 3 - y) * y / x
    slope = -(y / x - (x + 3 - y) * y / x**2)
    assert directional(STRAIGHT, [x, y], [1.0, 0.0], plan=plan) == pytest.approx(math.cos(inner) * slope)


LOOP = """
define i32 @f(ptr noalias %r, ptr noalias %e, ptr %a, i64 %n) {
entry:
  %last = getelementptr double, ptr %a, i64 1
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %body ]
  %p = phi double [ 1.0, %entry ], [ %product, %body ]
  %go = icmp slt i64 %i, %n
  br i1 %go, label %body, label %done
body:
  %x = load double, ptr %a
  %product = fmul double %p, %x
  %next = add i64 %i, 1
  %big = fcmp ogt double %product, 1.0e3
  %y = load double, ptr %last
  %kept = select i1 %big, double %y, double %product
  store double %kept, ptr %last
  br label %head
done:
  %z = load double, ptr %last
  %u = fadd double %z, %p
  store double %u, ptr %r
  ret i32 0
}
"""


@PLANS
@pytest.mark.parametrize("trips", [0, 1, 5])
def test_loops_and_memory(plan: str, trips: int):
    check(LOOP, [1.5, 2.0], trips, plan=plan)


def test_a_constant_clears_the_tangent_of_what_it_overwrites():
    text = """
define i32 @f(ptr noalias %r, ptr noalias %e, ptr %a) {
  %x = load double, ptr %a
  store double 2.0, ptr %a
  %y = load double, ptr %a
  %z = fmul double %x, %y
  store double %z, ptr %r
  ret i32 0
}
"""
    assert directional(text, [3.0], [5.0]) == 10.0


ROOT = """
declare double @llvm.sqrt.f64(double)
define i32 @f(ptr noalias %r, ptr noalias %e, ptr %a) {
  %q = getelementptr double, ptr %a, i64 1
  %x = load double, ptr %a
  %y = load double, ptr %q
  %s = call double @llvm.sqrt.f64(double %x)
  %z = OPERATION double %s, %y
  store double %z, ptr %r
  ret i32 0
}
"""


def test_a_zero_tangent_times_an_infinite_partial_is_zero():
    text = ROOT.replace("OPERATION", "fadd")
    assert directional(text, [0.0, 1.0], [0.0, 1.0]) == 1.0
    assert directional(text, [0.0, 1.0], [1.0, 0.0]) == math.inf


@pytest.mark.parametrize(("zero_wins", "expected"), [(False, math.nan), (True, 0.0)])
def test_zero_times_an_infinite_tangent(zero_wins: bool, expected: float):
    text = ROOT.replace("OPERATION", "fmul")
    found = directional(text, [0.0, 0.0], [1.0, 0.0], zero_wins=zero_wins)
    assert found == pytest.approx(expected, nan_ok=True)


CALLS = """
define i32 @f(ptr noalias %r, ptr noalias %e, ptr %a, i64 %n) {
  %x = load double, ptr %a
  %p = call ptr @second(ptr %a)
  %y = load double, ptr %p
  %u = call double @power(double %x, i64 %n)
  %z = fmul double %u, %y
  store double %z, ptr %r
  ret i32 0
}
define internal double @power(double %x, i64 %n) noinline {
entry:
  %done = icmp sle i64 %n, 0
  br i1 %done, label %one, label %more
one:
  ret double 1.0
more:
  %m = sub i64 %n, 1
  %rest = call double @power(double %x, i64 %m)
  %y = fmul double %x, %rest
  ret double %y
}
define internal ptr @second(ptr %a) noinline {
  %p = getelementptr double, ptr %a, i64 1
  ret ptr %p
}
"""


@PLANS
def test_callees_take_and_return_tangents_and_shadows(plan: str):
    found = [directional(CALLS, [2.0, 3.0], direction, 4, plan=plan) for direction in ([1.0, 0.0], [0.0, 1.0])]
    assert found == [4 * 8.0 * 3.0, 16.0]


def test_there_is_no_tape():
    made = derivative(LOOP, "scsc", [DOUBLES, POINTERS, DOUBLES, None], mode=FORWARD_MODE)
    (function,) = made.pairs[0].pair.functions.values()
    called = [str(i.callee.name) for i in function.instructions() if isinstance(i, Call)]
    assert not [name for name in called if name.startswith("irad.")]
    assert sum(isinstance(i, Store) for i in function.instructions()) == 4  # two of the primal, two of tangents


def test_a_callee_without_a_tangent_is_refused_before_any_code_is_generated(monkeypatch: pytest.MonkeyPatch):
    without = [replace(rule, tangent=None) if isinstance(rule, CallRule) else rule for rule in ALL]
    monkeypatch.setattr(units, "registry", lambda: Registry.of(*without))
    text = """
define i32 @f(ptr noalias %r, ptr noalias %e, ptr %a) {
  %s = call i32 @numba_ez_geqrf(i8 100, i64 2, i64 1, ptr %a, i64 2, ptr %r)
  ret i32 0
}
declare i32 @numba_ez_geqrf(i8, i64, i64, ptr, i64, ptr)
"""
    with pytest.raises(NoRuleError, match="no tangent"):
        directional(text, [3.0, 4.0], [1.0, 0.0])


def test_lanes_share_the_primal_and_its_slopes():
    text = """
declare double @llvm.sin.f64(double)
define i32 @f(ptr noalias %r, ptr noalias %e, ptr %a) {
  %x = load double, ptr %a
  %s = call double @llvm.sin.f64(double %x)
  store double %s, ptr %r
  ret i32 0
}
"""
    made = derivative(text, "scs", [DOUBLES, POINTERS, DOUBLES], mode=forward_mode(3))
    built = list(made.pairs[0].pair[TANGENT].instructions())
    slopes = [i.callee.name for i in built if isinstance(i, Call) and isinstance(i.callee, Function)]
    assert [name for name in slopes if name.endswith(("sin.f64", "cos.f64"))] == ["llvm.sin.f64", "llvm.cos.f64"]
    assert sum(isinstance(i, Load) for i in built) == sum(isinstance(i, Store) for i in built) == 4


VARIABLES = """
define i32 @f(ptr noalias %r, ptr noalias %e, ptr %a) {
entry:
  %none = alloca double
  store double 1.0, ptr %none
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %before = phi ptr [ %none, %entry ], [ %own, %loop ]
  %own = alloca double
  %p = getelementptr double, ptr %a, i64 %i
  %x = load double, ptr %p
  store double %x, ptr %own
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, 2
  br i1 %more, label %loop, label %end
end:
  %first = load double, ptr %before
  %second = load double, ptr %own
  %z = fmul double %first, %second
  store double %z, ptr %r
  ret i32 0
}
"""


def test_each_iteration_has_local_variables_of_its_own():
    assert directional(VARIABLES, [3.0, 5.0], [1.0, 10.0]) == 5.0 + 30.0
