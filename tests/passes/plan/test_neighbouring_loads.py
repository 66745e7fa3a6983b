"""Which loads find what others find in later iterations."""

from __future__ import annotations

import pytest

from tests.passes.units import generated

LOOP = """
define i32 @f(ptr noalias %r, ptr noalias %e, ptr noalias %x, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %at = mul i64 %i, STEP
  %p = getelementptr i8, ptr %x, i64 %at
  %q = getelementptr i8, ptr %p, i64 8
  %s = getelementptr i8, ptr %p, i64 WRITTEN
  %a = load double, ptr %q, align 4
  %b = load double, ptr %p, align 4
  %c = fmul double %a, %b
  store double %c, ptr %s, align 4
  %next = add nuw nsw i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %end
end:
  %y = load double, ptr %x
  store double %y, ptr %r
  ret i32 0
}"""


@pytest.mark.parametrize(
    ("step", "written", "saved"),
    [
        (8, 0, "b"),
        (8, -8, "b"),
        (8, 8, "a"),  # written before it is read again, which is the last time: the other is loaded again
        (4, 0, "ab"),  # a step is shorter than a number: the iteration between the two writes to a part of it
    ],
)
def test_one_number_for_both(step: int, written: int, saved: str):
    made, *_ = generated(LOOP.replace("STEP", str(step)).replace("WRITTEN", str(written)), "scsc")
    assert {each.name for each in made.plan.saved} & {"a", "b"} == set(saved)
