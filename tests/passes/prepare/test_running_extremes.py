"""Numbers that a loop passes on and that are loaded again after it."""

from __future__ import annotations

import pytest

from irad.ir.instructions import Binary, Load
from irad.ir.verifier import verify
from tests.passes.units import unit_of, value

LOOP = """
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
define i32 @f(ptr noalias %r, ptr noalias %e, ptr noalias %a, ptr noalias %b, double %m0, i64 %n, i64 %step) {
entry:
  br label %loop
loop:
  %m = phi double [ %m0, %entry ], [ %s, %loop ]
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %offset = mul i64 %i, %step
  %p = getelementptr double, ptr %a, i64 PLACE
  %q = getelementptr double, ptr %b, i64 PLACE
  NUMBER
  %c = fcmp ogt double %v, %m
  %s = select i1 %c, double CHOICE
  AFTER
  %next = add nuw nsw i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %end
end:
  %s.end = phi double [ %s, %loop ]
  %v.end = phi double [ %v, %loop ]
  %sum = fadd double %s.end, %v.end
  store double %sum, ptr %r
  ret i32 0
}"""
LOADED = "%v = load double, ptr %p"
STORED = """%w = load double, ptr %q
  %v = fmul double %w, 2.0
  store double %v, ptr %p"""


def is_loaded_behind(
    number: str = LOADED, place: str = "%i", choice: str = "%v, double %m", after: str = "", kinds: str = "scssacc"
) -> bool:
    text = LOOP.replace("NUMBER", number).replace("PLACE", place).replace("CHOICE", choice).replace("AFTER", after)
    unit = unit_of(text, kinds)
    verify(unit.function)
    total = value(unit.function, "sum")
    assert isinstance(total, Binary)
    found = isinstance(total.operands[0], Load)
    assert not (found and unit.activity.is_active(value(unit.function, "m")))
    return found


@pytest.mark.parametrize("choice", ["%v, double %m", "%m, double %v"])
@pytest.mark.parametrize(
    ("number", "place", "after"),
    [
        (LOADED, "%i", ""),
        (LOADED, "%offset", ""),
        (LOADED, "0", ""),
        (LOADED, "%i", "store double %v, ptr %q"),
        (STORED, "%i", ""),
    ],
)
def test_what_stays_where_it_is(number: str, place: str, after: str, choice: str):
    assert is_loaded_behind(number, place, choice, after)


@pytest.mark.parametrize(
    ("number", "place", "after"),
    [
        (LOADED, "%i", "store double 0.0, ptr %p"),
        (LOADED, "%i", "store double 0.0, ptr %a"),
        (LOADED, "%i", "call void @llvm.memset.p0.i64(ptr %a, i8 0, i64 8, i1 false)"),
        (LOADED.replace("load", "load volatile"), "%i", ""),
        (STORED, "0", ""),
        (STORED, "%offset", ""),
        (STORED, "%i", "store double 0.0, ptr %p"),
        ("%w = load double, ptr %p\n  %v = fmul double %w, 2.0", "%i", ""),
        (LOADED, "%i", "store double %m, ptr %q"),
        (LOADED, "%i", "store double %s, ptr %q"),
    ],
)
def test_what_does_not(number: str, place: str, after: str):
    assert not is_loaded_behind(number, place, after=after)


def test_what_carries_no_derivative():
    assert not is_loaded_behind(kinds="sccsccc")
