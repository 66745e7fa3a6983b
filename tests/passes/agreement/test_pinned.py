"""What decides something is not made twice of numbers that LLVM may round as it likes."""

from __future__ import annotations

import pytest

from irad.ir.text.keywords import FAST_MATH
from irad.passes.plan.plan import Plan
from tests.passes.units import DOUBLES, INTEGERS, POINTERS, generated

DECLARE = """
declare double @exp(double)
declare double @llvm.floor.f64(double)
declare double @llvm.copysign.f64(double, double)
declare double @llvm.fabs.f64(double)
declare double @llvm.sqrt.f64(double)
declare double @llvm.fma.f64(double, double, double)
declare double @llvm.fmuladd.f64(double, double, double)
declare double @llvm.maxnum.f64(double, double)
"""

GATHER = """
define i32 @f(ptr noalias %r, ptr noalias %e, ptr %a, ptr noalias %x, double %h, i64 %n) {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %s = phi double [ 0.0, %entry ], [ %t, %loop ]
  %px = getelementptr double, ptr %x, i64 %i
  %v = load double, ptr %px
  {body}
  %p = getelementptr double, ptr %a, i64 %k
  %y = load double, ptr %p
  %w = fmul double %y, {factor}
  %t = fadd double %s, %w
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %end
end:
  %out = phi double [ %t, %loop ]
  store double %out, ptr %r
  ret i32 0
}}
"""
MEMORY = [DOUBLES, POINTERS, DOUBLES, DOUBLES, None, None]


def plan_of(body: str, factor: str = "%y") -> Plan:
    return generated(DECLARE + GATHER.format(body=body, factor=factor), "scsccc", MEMORY)[0].plan


def saved(plan: Plan) -> set[str]:
    """Names of what is saved in every iteration."""
    return {v.name or "?" for v in plan.saved if "per iteration, 1 loop deep" in plan.explain(v)}


def index(quotient: str) -> str:
    return f"{quotient}\n%k = fptosi double %q to i64"


@pytest.mark.parametrize("word", sorted(FAST_MATH))
@pytest.mark.parametrize("operation", ["fdiv", "fmul", "fadd", "fsub"])
def test_an_index_made_by_fast_arithmetic_is_saved(word, operation):
    plan = plan_of(index(f"%q = {operation} {word} double %v, %h"))
    assert len(saved(plan)) == 1
    [reason] = [plan.explain(v) for v in plan.reasons if v.name == "k"]
    assert "recomputed" not in reason
    assert "decides something, and fastmath may round what it is made of differently in the reverse sweep" in reason


@pytest.mark.parametrize(
    "quotient",
    [
        "%q = fdiv double %v, %h",
        "%q = fmul double %v, %h",
        "%q = call double @llvm.sqrt.f64(double %v)",
        "%q = call double @llvm.fma.f64(double %v, double %h, double 1.0)",
        "%q = call double @llvm.floor.f64(double %v)",
    ],
)
def test_an_index_made_by_exact_arithmetic_is_computed_again(quotient):
    assert saved(plan_of(index(quotient))) == set()


@pytest.mark.parametrize(
    "quotient",
    [
        "%q = frem double %v, %h",
        "%q = call double @llvm.fmuladd.f64(double %v, double %h, double 1.0)",
        "%q = call double @llvm.maxnum.f64(double %v, double %h)",
        "%q = call afn double @llvm.sqrt.f64(double %v)",
    ],
)
def test_what_llvm_may_round_anew_without_fastmath_words(quotient):
    assert len(saved(plan_of(index(quotient)))) == 1


def test_everything_between_counts():
    body = """
      %q1 = fdiv arcp double %v, %h
      %q2 = fadd double %q1, 1.0
      %q3 = fneg double %q2
      %q4 = call double @llvm.fabs.f64(double %q3)
      %q = fptrunc double %q4 to float
      %k1 = fptosi float %q to i64
      %k = add i64 %k1, 1
    """
    plan = plan_of(body)
    assert len(saved(plan)) == 1


@pytest.mark.parametrize(
    "body",
    [
        "%q = fmul fast double %v, %h\n%c = fcmp ogt double %q, 1.0\n%k = zext i1 %c to i64",
        "%c = fcmp nnan ogt double %v, 1.0\n%k = zext i1 %c to i64",
        "%q = fmul fast double %v, %h\n%c = fcmp ogt double %q, 1.0\n%k = select i1 %c, i64 3, i64 %i",
        "%q = fmul fast double %v, %h\n%b = bitcast double %q to i64\n%k = lshr i64 %b, 60",
    ],
)
def test_comparisons_and_bits_are_saved(body):
    assert len(saved(plan_of(body))) == 1


@pytest.mark.parametrize(
    "step",
    [
        "%j = call double @llvm.floor.f64(double %q)",
        "%j = call double @llvm.copysign.f64(double 1.0, double %q)",
        "%j = frem double %q, 1.0",
    ],
)
def test_a_factor_that_jumps_is_saved(step):
    """It is a float, but one that differs by one and not by a rounding."""
    body = f"%q = fdiv arcp double %v, %h\n{step}\n%k = add i64 %i, 0"
    assert saved(plan_of(body, factor="%j")) == {"j"}


def test_a_factor_that_does_not_jump_is_computed_again():
    body = "%q = fdiv fast double %v, %h\n%k = add i64 %i, 0"
    assert saved(plan_of(body, factor="%q")) == set()


def test_what_an_adjoint_compares_is_the_number_of_the_forward_sweep():
    body = "%q = fsub {} double %y0, %h\n%j = call double @llvm.fabs.f64(double %q)\n%k = add i64 %i, 0"
    load = "%p0 = getelementptr double, ptr %a, i64 %i\n%y0 = load double, ptr %p0\n"
    assert saved(plan_of(load + body.format("reassoc"), factor="%j")) == {"q"}
    assert saved(plan_of(load + body.format(""), factor="%j")) == set()


def test_one_saved_integer_serves_all_that_follows():
    body = """
      %q = fdiv fast double %v, %h
      %k0 = fptosi double %q to i64
      %p2 = getelementptr double, ptr %x, i64 %k0
      %v2 = load double, ptr %p2
      %k = mul i64 %k0, 2
    """
    assert saved(plan_of(body, factor="%v2")) == {"k0"}


TRIPS = (
    DECLARE
    + """
define i32 @f(ptr noalias %r, ptr noalias %e, ptr %a, ptr noalias %x, double %h, i64 %n) {
entry:
  %v = load double, ptr %x
  %q = fdiv fast double %v, %h
  %m = fptosi double %q to i64
  %some = icmp sgt i64 %m, 0
  br i1 %some, label %before, label %end
before:
  br label %loop
loop:
  %i = phi i64 [ 0, %before ], [ %next, %loop ]
  %s = phi double [ 1.0, %before ], [ %t, %loop ]
  %p = getelementptr double, ptr %a, i64 %i
  %y = load double, ptr %p
  %w = fmul double %y, %s
  %t = call double @exp(double %w)
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %m
  br i1 %more, label %loop, label %done
done:
  %last = phi double [ %t, %loop ]
  br label %end
end:
  %out = phi double [ 0.0, %entry ], [ %last, %done ]
  store double %out, ptr %r
  ret i32 0
}
"""
)


def test_a_trip_count_made_by_fast_arithmetic_is_saved():
    plan = generated(TRIPS, "scsccc", MEMORY)[0].plan
    reasons = {v.name: plan.explain(v) for v in plan.reasons}
    assert reasons["m"].startswith("saved: 8 bytes per call") or "not needed" in reasons["m"]
    exact = generated(TRIPS.replace("fdiv fast", "fdiv"), "scsccc", MEMORY)[0].plan
    reasons = {v.name: exact.explain(v) for v in exact.reasons}
    assert reasons["m"].startswith("recomputed from %q")


def test_inspection_tells_integers_from_memory_apart():
    body = "%pk = getelementptr i64, ptr %x, i64 %i\n%k = load i64, ptr %pk"
    text = DECLARE + GATHER.format(body=body, factor="%y")
    assert saved(generated(text, "scsccc", [DOUBLES, POINTERS, DOUBLES, INTEGERS, None, None])[0].plan) == set()
