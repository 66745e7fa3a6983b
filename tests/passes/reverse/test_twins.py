"""Functions whose value is the slope of another one that the program computes of the same argument."""

from __future__ import annotations

import math

import pytest

from irad.ir.instructions import Call
from irad.passes.mode import REVERSE
from tests.passes.units import generated, gradient

PLANS = pytest.mark.parametrize("plan", ["default", "save_all"])

DECLARED = """
declare double @sin(double)
declare double @cos(double)
declare double @llvm.cos.f64(double)
declare double @tanh(double)
declare float @sinf(float)
"""
FUNCTION = """
define i32 @f(ptr noalias %r, ptr noalias %e, ptr %a, i64 %n) {
  %p = getelementptr double, ptr %a, i64 1
  %x = load double, ptr %a
  %y = load double, ptr %p
  BODY
  store double %z, ptr %r
  ret i32 0
}
"""
X, Y = 0.7, 1.9
S, C = math.sin(X), math.cos(X)

BRANCH = """%s = call double @sin(double %x)
  %k = icmp sgt i64 %n, 0
  br i1 %k, label %more, label %end
more:
  %c = call double @cos(double %x)
  %t = fmul double %c, %s
  br label %end
end:
  %z = phi double [ %t, %more ], [ %x, %0 ]"""
SHARED = {
    "cosine first": "%c = call double @cos(double %x)\n%s = call double @sin(double %x)\n%z = fmul double %c, %s",
    "sine first": "%s = call double @sin(double %x)\n%c = call double @cos(double %x)\n%z = fmul double %c, %s",
    "by other names": (
        "%s = call double @sin(double %x)\n%c = call double @llvm.cos.f64(double %x)\n%z = fmul double %c, %s"
    ),
}
COMPUTED = {
    "of another argument": (
        "%s = call double @sin(double %x)\n%c = call double @cos(double %y)\n%z = fmul double %c, %s"
    ),
    "in one branch, and what follows": """%k = icmp sgt i64 %n, 0
  br i1 %k, label %more, label %end
more:
  %c = call double @cos(double %x)
  br label %end
end:
  %t = phi double [ %c, %more ], [ 1.0, %0 ]
  %s = call double @sin(double %x)
  %z = fmul double %t, %s""",
    "in two branches": """%k = icmp sgt i64 %n, 0
  br i1 %k, label %more, label %less
more:
  %c = call double @cos(double %x)
  br label %end
less:
  %s = call double @sin(double %x)
  br label %end
end:
  %z = phi double [ %c, %more ], [ %s, %less ]""",
}


def text_of(body: str) -> str:
    return FUNCTION.replace("BODY", body) + DECLARED


def called_in_reverse(body: str, **options: object) -> list[str]:
    (made,) = generated(text_of(body), "scsc", **options)
    names = [inst.callee.name or "" for inst in made.pair[REVERSE].instructions() if isinstance(inst, Call)]
    return [name for name in names if "sin" in name or "cos" in name]


@pytest.mark.parametrize("body", SHARED.values(), ids=SHARED.keys())
def test_what_is_known_is_not_computed_again(body: str):
    assert called_in_reverse(body) == []
    assert called_in_reverse(body, plan="save_all") != []
    for plan in ("default", "save_all"):
        assert gradient(text_of(body), [X, Y], 1, plan=plan) == pytest.approx([C * C - S * S, 0.0], rel=1e-14)


@pytest.mark.parametrize("body", COMPUTED.values(), ids=COMPUTED.keys())
def test_what_is_not_known_there_is_computed(body: str):
    assert called_in_reverse(body) != []


def test_a_branch_knows_what_was_before_it():
    assert [name.partition(".")[0] for name in called_in_reverse(BRANCH)] in (["cos"], ["llvm"])
    for plan in ("default", "save_all"):
        assert gradient(text_of(BRANCH), [X, Y], 1, plan=plan) == pytest.approx([C * C - S * S, 0.0], rel=1e-14)
        assert gradient(text_of(BRANCH), [X, Y], 0, plan=plan) == [1.0, 0.0]


@PLANS
def test_the_values_of_branches(plan: str):
    other, two = COMPUTED["in one branch, and what follows"], COMPUTED["in two branches"]
    assert gradient(text_of(other), [X, Y], 1, plan=plan) == pytest.approx([C * C - S * S, 0.0], rel=1e-14)
    assert gradient(text_of(other), [X, Y], 0, plan=plan) == pytest.approx([C, 0.0], rel=1e-14)
    assert gradient(text_of(two), [X, Y], 1, plan=plan) == pytest.approx([-S, 0.0], rel=1e-14)
    assert gradient(text_of(two), [X, Y], 0, plan=plan) == pytest.approx([C, 0.0], rel=1e-14)


LOOP = """
br label %loop
loop:
  %i = phi i64 [ 0, %0 ], [ %next, %loop ]
  %v = phi double [ %x, %0 ], [ %w, %loop ]
  %s = call double @sin(double %v)
  %c = call double @cos(double %v)
  %w = fmul double %s, %c
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %end
end:
  %z = phi double [ %w, %loop ]
"""


@PLANS
def test_in_a_loop_it_is_the_value_of_the_same_iteration(plan: str):
    v, slope = X, 1.0
    for _ in range(4):
        slope *= math.cos(2.0 * v)
        v = math.sin(v) * math.cos(v)
    assert gradient(text_of(LOOP), [X, Y], 4, plan=plan) == pytest.approx([slope, 0.0], rel=1e-13)
    assert plan == "save_all" or called_in_reverse(LOOP) == []


BEHIND_A_LOOP = """
  br label %loop
loop:
  %v = phi double [ %x, %0 ], [ %w, %loop ]
  %s = call double @sin(double %y)
  %w = fmul double %v, %s
  %more = fcmp ogt double %w, 0.1
  br i1 %more, label %loop, label %end
end:
  %last = phi double [ %w, %loop ]
  %c = call double @cos(double %y)
  %z = fmul double %last, %c
"""


@PLANS
def test_a_loop_is_left_with_its_values(plan: str):
    """The loop has run, but which iteration is meant is not known after it."""
    count, w = 0, X
    while count == 0 or w > 0.1:
        w *= math.sin(Y)
        count += 1
    s, c = math.sin(Y), math.cos(Y)
    expected = [s**count * c, X * (count * s ** (count - 1) * c * c - s ** (count + 1))]
    assert gradient(text_of(BEHIND_A_LOOP), [X, Y], 0, plan=plan) == pytest.approx(expected, rel=1e-12)
    assert len(called_in_reverse(BEHIND_A_LOOP)) == 2
