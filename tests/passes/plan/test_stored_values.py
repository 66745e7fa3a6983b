"""Which numbers are not saved because memory still holds them."""

from __future__ import annotations

import pytest

from tests.passes.units import generated, value

LOOP = """
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
define i32 @f(ptr noalias %r, ptr noalias %e, ptr noalias %a, ptr noalias %b, double %x, i64 %n, i64 %step) {
entry:
  FIRST
  br label %loop
loop:
  %s = phi double [ %s0, %entry ], [ %t, %loop ]
  %i = phi i64 [ 1, %entry ], [ %next, %loop ]
  %offset = mul i64 %i, %step
  %before = sub i64 %i, 1
  %square = fmul double %s, %s
  %t = fmul double %square, %x
  %q = getelementptr double, ptr %b, i64 %i
  %p = getelementptr double, ptr %a, i64 PLACE
  store double %t, ptr %p
  AFTER
  %next = add nuw nsw i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %end
end:
  %t.end = phi double [ %t, %loop ]
  store double %t.end, ptr %r
  ret i32 0
}"""
LOADED = "%s0 = load double, ptr %a"
STORED = "%s0 = fmul double %x, %x\n  store double %s0, ptr %a"


def text_of(first: str, place: str, after: str) -> str:
    return LOOP.replace("FIRST", first).replace("PLACE", place).replace("AFTER", after)


def is_saved(first: str = LOADED, place: str = "%i", after: str = "") -> bool:
    made, *_ = generated(text_of(first, place, after), "scssacc")
    return any(each.name == "s" for each in made.plan.saved)


@pytest.mark.parametrize(
    ("first", "after"),
    [
        (LOADED, ""),
        (STORED, ""),
        (STORED, "store double 0.0, ptr %q"),
        (STORED + "\n  store double 0.0, ptr %b", ""),
        (STORED, "%behind = getelementptr double, ptr %p, i64 1\n  %u = load double, ptr %behind"),
    ],
)
def test_what_a_loop_hands_on(first: str, after: str):
    assert not is_saved(first, after=after)


@pytest.mark.parametrize(
    ("first", "place", "after"),
    [
        ("%s0 = load double, ptr %b", "%i", ""),
        ("%s0 = fmul double %x, %x", "%i", ""),
        ("%a1 = getelementptr double, ptr %a, i64 1\n  %s0 = load double, ptr %a1", "%i", ""),
        (LOADED + "\n  store double 0.0, ptr %a", "%i", ""),
        (LOADED + "\n  call void @llvm.memset.p0.i64(ptr %a, i8 0, i64 8, i1 false)", "%i", ""),
        (LOADED.replace("load", "load volatile"), "%i", ""),
        (LOADED, "0", ""),
        (LOADED, "%offset", ""),
        (LOADED, "%before", ""),
        (LOADED, "%i", "store double 0.0, ptr %p"),
        (LOADED, "%i", "call void @llvm.memset.p0.i64(ptr %a, i8 0, i64 8, i1 false)"),
    ],
)
def test_what_is_not_known_to_be_there(first: str, place: str, after: str):
    assert is_saved(first, place, after)


@pytest.mark.parametrize("place", ["after", "behind the loop"])
def test_what_is_overwritten_later(place: str):
    store = "store double 0.0, ptr %a"
    text = text_of(LOADED, "%i", store if place == "after" else "")
    if place != "after":
        text = text.replace("store double %t.end", f"{store}\n  store double %t.end")
    made, *_ = generated(text, "scssacc")
    assert "s" in [each.name for each in made.plan.saved]


EXP = """
declare double @exp(double)
define i32 @f(ptr noalias %r, ptr noalias %e, ptr noalias %a, ptr noalias %b, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %p = getelementptr double, ptr %a, i64 %i
  %q = getelementptr double, ptr %b, i64 %i
  %x = load double, ptr %p
  %y = call double @exp(double %x)
  store double %y, ptr %q
  AFTER
  %next = add nuw nsw i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %end
end:
  ret i32 0
}"""


@pytest.mark.parametrize(
    ("after", "saved"),
    [("", False), ("store double %y, ptr %p", False), ("store double 0.0, ptr %q", True)],
)
def test_what_is_stored_where_it_is_computed(after: str, saved: bool):
    made, *_ = generated(EXP.replace("AFTER", after), "scssc")
    assert ("y" in [each.name for each in made.plan.saved]) is saved
    if not saved:
        copy = made.augmented.value(value(made.unit.function, "y"))
        assert made.plan.explain(copy).startswith("loaded again, its memory stays as it is")


def test_the_oracle_saves_all():
    made, *_ = generated(EXP.replace("AFTER", ""), "scssc", plan="save_all")
    assert "y" in [each.name for each in made.plan.saved]
