from __future__ import annotations

import pytest

from irad.frontend.numba.convention import NUMBA
from irad.ir.instructions import Load
from irad.ir.values import Value
from irad.passes.analysis.effects import Effects, find_effects
from irad.passes.augmented.deferred_frees import keepable
from tests.passes.units import DOUBLES, POINTERS, effects_without_kept, unit_of, value

PLACES = """
define i32 @f(ptr noalias %r, ptr %a, i64 %n, i1 %c, ptr %b) {{
entry:
  {before}
  %x = load double, ptr %a
  {after}
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %latch ]
  %p = getelementptr double, ptr %a, i64 %i
  %y = load double, ptr %p
  br i1 %c, label %branch, label %latch
branch:
  {branch}
  br label %latch
latch:
  {latch}
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %end
end:
  %z = load double, ptr %a
  {end}
  store double %z, ptr %r
  ret i32 0
}}
"""


def is_overwritten(effects: Effects, load: Value) -> bool:
    assert isinstance(load, Load)
    return effects.is_overwritten(load.operands[0], load)


def overwritten(**places: str) -> str:
    """The names of the loads that cannot be repeated, with stores put at places."""
    text = PLACES.format(**{key: places.get(key, "") for key in ("before", "after", "branch", "latch", "end")})
    unit = unit_of(text, "ccccc")
    loads = {n: value(unit.function, n) for n in "xyz"}
    return "".join(n for n, load in loads.items() if is_overwritten(unit.effects, load))


WRITE = "store double 1.0, ptr %a"


@pytest.mark.parametrize(
    ("place", "expected"),
    [("before", ""), ("after", "x"), ("branch", "xy"), ("latch", "xy"), ("end", "xyz")],
)
def test_where_a_write_counts(place, expected):
    assert overwritten(**{place: WRITE}) == expected


def test_nothing_is_written():
    assert overwritten() == ""


@pytest.mark.parametrize(("target", "expected"), [("b", "xyz"), ("r", "")])
def test_arguments_may_overlap_unless_noalias(target, expected):
    assert overwritten(end=f"store double 1.0, ptr %{target}") == expected


def test_a_write_earlier_in_a_loop_comes_after_in_the_next_iteration():
    text = """
    define i32 @f(ptr noalias %r, ptr %a, i1 %c) {
    entry:
      br label %loop
    loop:
      store double 1.0, ptr %a
      %x = load double, ptr %a
      br i1 %c, label %loop, label %end
    end:
      ret i32 0
    }"""
    unit = unit_of(text, "ccc")
    load = value(unit.function, "x")
    assert unit.effects.is_overwritten(load.operands[0], load)
    assert unit.effects.explain(load.operands[0], load) == "argument a is written later"


LIVES = """
declare ptr @NRT_MemInfo_alloc_aligned(i64, i32)
declare void @NRT_decref(ptr)
@table = internal constant [2 x double] [double 1.0, double 2.0]
@state = internal global double 1.0
define i32 @f(ptr noalias %r, ptr %a) {
  %l = alloca double
  %m = call ptr @NRT_MemInfo_alloc_aligned(i64 8, i32 32)
  %at = getelementptr i8, ptr %m, i64 24
  %d = load ptr, ptr %at
  %x = load double, ptr %a
  store double %x, ptr %l
  store double %x, ptr %d
  %local = load double, ptr %l
  %data = load double, ptr %d
  %constant = load double, ptr @table
  %global = load double, ptr @state
  %s = fadd double %local, %data
  store double %s, ptr %r
  call void @NRT_decref(ptr %m)
  ret i32 0
}
"""


def explain(effects: Effects, unit, name: str) -> str:
    load = value(unit.function, name)
    assert isinstance(load, Load)
    return effects.explain(load.operands[0], load)


def test_what_outlives_the_forward_sweep():
    unit = unit_of(LIVES, "ss")
    kept = "not overwritten before the reverse sweep reads it"
    lost = "may change before the reverse sweep"
    assert explain(unit.effects, unit, "x") == kept
    assert explain(unit.effects, unit, "constant") == kept
    assert explain(unit.effects, unit, "data") == kept
    assert explain(unit.effects, unit, "local") == f"local l {lost}"
    assert explain(unit.effects, unit, "global") == f"global state {lost}"
    without = effects_without_kept(unit)
    assert explain(without, unit, "data") == f"allocation m {lost}"


def test_a_caller_may_change_the_arguments():
    unit = unit_of(LIVES, "ss", arguments_may_change=True)
    assert explain(unit.effects, unit, "x") == "argument a may change before the reverse sweep"
    assert explain(unit.effects, unit, "data") == "not overwritten before the reverse sweep reads it"
    callee = unit_of(LIVES, "ss", entry=False)
    assert explain(callee.effects, callee, "x").startswith("argument a may change")


def test_calls_write_what_their_rule_says_or_all_that_they_reach():
    text = """
    declare i64 @strlen(ptr)
    declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
    define i32 @f(ptr noalias %r, ptr noalias %a, ptr noalias %b, ptr noalias %c) {
      %x = load double, ptr %a
      %y = load double, ptr %b
      %z = load double, ptr %c
      call void @llvm.memcpy.p0.p0.i64(ptr %a, ptr %b, i64 8, i1 false)
      call void @g(ptr %c)
      ret i32 0
    }
    define void @g(ptr %p) {
      ret void
    }"""
    unit = unit_of(text, "cccc")
    loads = {n: value(unit.function, n) for n in "xyz"}
    assert [n for n, load in loads.items() if unit.effects.is_overwritten(load.operands[0], load)] == ["x", "z"]


def test_a_pointer_to_nothing_known():
    text = """
    define i32 @f(ptr noalias %r, ptr %a) {
      %p = load ptr, ptr %a
      %x = load double, ptr %p
      store double %x, ptr %r
      ret i32 0
    }"""
    unit = unit_of(text, "cc", [DOUBLES, DOUBLES])
    load = value(unit.function, "x")
    assert unit.effects.explain(load.operands[0], load) == "it points to no known object"
    unit = unit_of(text, "cc", [DOUBLES, POINTERS])
    load = value(unit.function, "x")
    assert not unit.effects.is_overwritten(load.operands[0], load)


def test_what_is_written_is_that_of_the_function():
    unit = unit_of(LIVES, "ss")
    mask = keepable(unit.function, unit.mod_ref, NUMBA, results_change=False)
    again = find_effects(unit.cfg, unit.mod_ref, arguments_change=False, kept=mask)
    assert again.written == unit.effects.written
    assert again.kept == unit.effects.kept
    written = {str(item) for item in unit.points_to.members(again.written)}
    assert written == {"local l", "allocation m", "argument r"}


@pytest.mark.parametrize(("mark", "expected"), [("", ""), ('"irad.elsewhere"', "xy")])
def test_a_call_that_may_write_elsewhere_overwrites_what_others_know(mark, expected):
    declared = "declare void @stranger()\n"
    text = declared + PLACES.format(before="", after="", branch="", latch=f"call void @stranger() {mark}", end="")
    unit = unit_of(text, "ccccc")
    loads = {n: value(unit.function, n) for n in "xyz"}
    assert "".join(n for n, load in loads.items() if is_overwritten(unit.effects, load)) == expected
