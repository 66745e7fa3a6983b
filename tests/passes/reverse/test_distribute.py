from __future__ import annotations

import pytest

from irad.passes.mode import REVERSE
from tests.passes.units import generated

LOOP = """
define i32 @f(ptr noalias %r, ptr noalias %e, ptr %x, ptr %y, i64 %n) {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %loop ]
  %sum = phi double [ 0.0, %entry ], [ %sum.next, %loop ]
  %p = getelementptr double, ptr %x, i64 %i
  %q = getelementptr i8, ptr %p, i64 {offset}
  %a = load double, ptr %p
  {second}
  %ab = fmul double %a, %b
  %sum.next = fadd double {summand}, %ab
  %i.next = add i64 %i, 1
  %done = icmp eq i64 %i.next, %n
  br i1 %done, label %end, label %loop
end:
  store double %sum.next, ptr %r
  ret i32 0
}}
"""
NEIGHBOUR = "%b = load double, ptr %q"


def versions(second: str, offset: int = 8, summand: str = "%sum", **options: object) -> list[str]:
    """The blocks of second versions of the loop."""
    text = LOOP.format(second=second, offset=offset, summand=summand)
    (made,) = generated(text, "scssc", **options)
    return [str(b.name).removeprefix("loop.adjoint.") for b in made.pair[REVERSE].blocks if "adjoint." in str(b.name)]


def test_neighbours_are_added_at_once():
    assert versions(NEIGHBOUR) == ["guard", "chunk", "part", "sums", "part.back", "sum", "summed", "again"]


def test_what_lies_far_behind_has_a_loop_of_its_own():
    assert versions(NEIGHBOUR, offset=80).count("sum") == 2


def test_shadows_that_are_read_at_one_place_are_checked_at_run_time_or_not_at_all():
    """Each iteration looks at the cotangent of what is stored, which may be in the same array."""
    assert versions(f"{NEIGHBOUR}\n  store double %a, ptr %p") == []
    assert versions(f"{NEIGHBOUR}\n  store double %a, ptr %y") != []


@pytest.mark.parametrize("options", [{"strict": True}, {"plan": "save_all"}, {"watches": True}, {"is_primal": True}])
def test_modes_that_keep_the_order(options: dict[str, object]):
    assert versions(NEIGHBOUR, **options) == []


def test_recurrences_are_left_alone():
    half = "%b = load double, ptr %q\n  %h = fmul double %sum, %a"
    assert versions(half, summand="%h") == []
    assert versions(NEIGHBOUR, summand="%a") != []


def test_functions_that_may_call_themselves_keep_their_frames_small():
    text = LOOP.format(second=NEIGHBOUR, offset=8, summand="%sum").replace(
        "end:\n", "end:\n  %again = call i32 @f(ptr %r, ptr %e, ptr %x, ptr %y, i64 %n)\n"
    )
    entry, callee = generated(text, "scssc")
    guards = [[b for b in made.pair[REVERSE].blocks if str(b.name).endswith(".guard")] for made in (entry, callee)]
    assert [len(each) for each in guards] == [1, 0]
