from __future__ import annotations

import pytest

from irad.ir.types import I64
from irad.ir.values import const_int
from irad.passes.augmented.tape import size_in_memory
from irad.passes.plan.plan import LoopMode, Plan
from irad.passes.request import MemoryType
from tests.passes.units import DOUBLES, INTEGERS, POINTERS, generated

DECLARE = """
declare double @exp(double)
declare double @sqrt(double)
declare double @llvm.fabs.f64(double)
"""

LOOP = (
    DECLARE
    + """
define i32 @f(ptr noalias %r, ptr noalias %e, ptr %a, i64 %n, ptr noalias %k) {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %latch ]
  %s = phi double [ 0.0, %entry ], [ %t, %latch ]
  %p = getelementptr double, ptr %a, i64 %i
  %x = load double, ptr %p
  {body}
  br label %latch
latch:
  %y = phi double {y}
  %t = {sum}
  {after}
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %end
end:
  %out = phi double [ %t, %latch ]
  store double %out, ptr %r
  ret i32 0
}}
"""
)

MEMORY: list[MemoryType | None] = [DOUBLES, POINTERS, DOUBLES, None, INTEGERS]


def plan_of(
    body: str, y: str = "%v", total: str = "fadd double %s, %y", after: str = "", declare: str = "", **options
) -> Plan:
    """The plan of a loop; ``y`` is what it adds up (or a whole list of incoming values)."""
    incoming = y if y.startswith("[") else f"[ {y}, %loop ]"
    text = declare + LOOP.format(body=body, y=incoming, sum=total, after=after)
    return generated(text, "scscc", MEMORY, **options)[0].plan


def saved(plan: Plan) -> set[str]:
    """Names of what is saved in every iteration: parameters cost nothing to speak of."""
    return {v.name or "?" for v in plan.saved if "per iteration, 1 loop deep" in plan.explain(v)}


def test_a_sum_of_squares_saves_nothing():
    plan = plan_of("%v = fmul double %x, %x")
    assert saved(plan) == set()
    assert {v.name for v in plan.saved} == {"a", "a.shadow", "n", "r.shadow"}


def test_linear_code_saves_nothing_and_recomputes_no_number():
    plan = plan_of("%v = fmul double %x, 3.0")
    assert saved(plan) == set()
    assert {v.name for v in plan.saved} == {"a.shadow", "n", "r.shadow"}


def test_the_result_of_exp_is_saved():
    plan = plan_of("%v = call double @exp(double %x)")
    assert saved(plan) == {"v"}


def test_of_a_chain_behind_exp_one_value_is_saved():
    body = """
      %e1 = call double @exp(double %x)
      %u = fadd double %e1, 1.0
      %w = fdiv double 1.0, %u
      %v = fmul double %w, %w
    """
    assert len(saved(plan_of(body))) == 1


def test_a_decision_behind_many_operations_is_saved():
    body = """
      %u1 = fmul double %x, %x
      %u2 = fadd double %u1, %x
      %u3 = fmul double %u2, %x
      %u4 = fadd double %u3, %x
      %c = fcmp olt double %u4, 0.0
      %v = select i1 %c, double %u1, double %x
    """
    plan = plan_of(body)
    assert saved(plan) == {"c"}
    value = next(v for v in plan.saved if v.name == "c")
    assert "recomputing it takes longer than loading it" in plan.explain(value)


@pytest.mark.parametrize(("function", "expected"), [("sqrt", {"c"}), ("llvm.fabs.f64", set())])
def test_a_root_counts_like_a_division(function: str, expected: set[str]):
    body = f"%u = call double @{function}(double %x)\n%c = fcmp olt double %u, 2.0"
    assert saved(plan_of(f"{body}\n%v = select i1 %c, double %x, double 1.0")) == expected


@pytest.mark.parametrize("function", ["sqrt", "llvm.fabs.f64"])
def test_cheap_functions_are_recomputed(function):
    assert saved(plan_of(f"%v = call double @{function}(double %x)")) == set()


def test_a_phi_of_a_branch_is_saved():
    body = """
      %c = fcmp olt double %x, 0.0
      br i1 %c, label %less, label %more.or.equal
    less:
      %one = fmul double %x, %x
      br label %join
    more.or.equal:
      %two = fmul double %x, 3.0
      br label %join
    join:
      %v = phi double [ %one, %less ], [ %two, %more.or.equal ]
    """
    plan = plan_of(body, y="[ %v, %join ]", total="fmul double %s, %y")
    assert "from" in saved(plan)  # which way it came
    assert {"s", "y"} & saved(plan) or {"s", "v"} & saved(plan)


def test_a_select_is_recomputed():
    body = "%c = fcmp olt double %x, 0.0\n%u = fneg double %x\n%v = select i1 %c, double %u, double %x"
    assert saved(plan_of(body)) == set()


def test_a_product_that_is_carried_is_saved():
    plan = plan_of("", y="%x", total="fmul double %s, %x")
    assert saved(plan) == {"s"}


def test_overwritten_memory_is_saved():
    body = "%v = fmul double %x, %x"
    plan = plan_of(body, after="store double 0.0, ptr %p")
    assert saved(plan) == {"x"}


def test_when_the_arguments_may_change():
    plan = plan_of("%v = fmul double %x, %x", arguments_may_change=True)
    assert saved(plan) == {"x"}


def test_affine_variables_are_not_saved():
    body = """
      %j = mul i64 %i, 3
      %q = getelementptr double, ptr %p, i64 %j
      %z = load double, ptr %q
      %v = fmul double %z, %z
    """
    assert saved(plan_of(body)) == set()


def test_an_index_from_memory_that_stays_is_loaded_again():
    body = """
      %kp = getelementptr i64, ptr %k, i64 %i
      %j = load i64, ptr %kp
      %q = getelementptr double, ptr %a, i64 %j
      %z = load double, ptr %q
      %v = fmul double %z, %z
    """
    assert saved(plan_of(body)) == set()
    written = plan_of(body, after="store i64 0, ptr %kp")
    assert saved(written) == {"j"}


def test_explanations():
    plan = plan_of("%v = call double @exp(double %x)")
    reasons = {v.name: plan.explain(v) for v in [*plan.reasons] if v.name}
    once = "saving it: 8 bytes per iteration, 1 loop deep (cost 128)"
    costs = "8 bytes per iteration, 1 loop deep (cost 128)"
    assert reasons["v"] == f"saved: {costs}: exp, which costs more than a load, is not called again"
    assert reasons["i"] == f"recomputed as start + step · iteration; {once}"
    assert reasons["p.shadow"] == f"recomputed from %a.shadow, %i; {once}"
    assert reasons["n"] == "saved: 8 bytes per call (cost 0.01): it is an argument"
    assert plan.explain(const_int(I64, 0)) == "not needed by the reverse sweep"


def test_save_all_saves_every_need():
    plan = plan_of("%v = fmul double %x, %x", plan="save_all")
    names = {v.name for v in plan.saved}
    assert {"x", "p.shadow", "r.shadow"} <= names
    assert all(plan.explain(v) == "saved: the plan is save_all" for v in plan.saved)


def test_bytes_per_iteration():
    plan = plan_of("%c = fcmp olt double %x, 0.0\n%e1 = call double @exp(double %x)\n"
                   "%v = select i1 %c, double %e1, double %x")  # fmt: skip
    inside = [v for v in plan.saved if "per iteration, 1 loop deep" in plan.explain(v)]
    assert sum(size_in_memory(v.type) for v in inside) == 8


def test_loop_modes():
    counted = plan_of("%v = fmul double %x, %x")
    assert list(counted.modes.values()) == [LoopMode.COUNTED]
    text = LOOP.format(body="", y="[ %x, %loop ]", sum="fadd double %s, %y", after="").replace(
        "%more = icmp slt i64 %next, %n", "%more = fcmp olt double %t, 10.0"
    )
    (made,) = generated(text, "scscc", MEMORY)
    assert list(made.plan.modes.values()) == [LoopMode.RECORDED]


def test_the_reason_says_what_recomputing_would_cost():
    body = """
      %p2 = getelementptr double, ptr %p, i64 1
      %z = load double, ptr %p2
      %e1 = call double @sin(double %x)
      %e2 = call double @sin(double %z)
      %u = fadd double %e1, %e2
      %v = fmul double %u, %u
    """
    plan = plan_of("%skip = fadd double %x, 0.0" + body.replace("@sin", "@exp"))
    assert saved(plan) == {"e1", "e2"}  # exp is its own derivative, so both are needed anyway
    sines = plan_of(body, declare="declare double @sin(double)\n")
    assert saved(sines) == {"u"}
    [reason] = [sines.explain(v) for v in sines.saved if v.name == "u"]
    costs = "8 bytes per iteration, 1 loop deep (cost 128)"
    assert reason == f"saved: {costs}: to recompute it, %e2, %e1 would be saved in its place (cost 256)"


@pytest.mark.parametrize(
    ("body", "after", "name", "why"),
    [
        (
            "%v = fmul double %x, %x",
            "store double 0.0, ptr %p",
            "x",
            "not loaded again: argument a is written later",
        ),
        ("%x2 = load volatile double, ptr %p\n%v = fmul double %x2, %x2", "", "x2", "a volatile or atomic load"),
    ],
)
def test_the_reason_says_why_something_is_not_computed_again(body, after, name, why):
    plan = plan_of(body, after=after)
    [reason] = [plan.explain(v) for v in plan.saved if v.name == name]
    assert "(cost 128): it is" in reason
    assert reason.endswith(why)


def test_reasons_are_a_mapping_of_all_that_was_weighed():
    plan = plan_of("%v = call double @exp(double %x)")
    assert len(plan.reasons) == len(list(plan.reasons))
    assert set(plan.saved) <= set(plan.reasons)
    assert [value for value in plan.reasons if plan.explain(value) == "not needed once others are saved"] == []
