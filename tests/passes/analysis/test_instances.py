from __future__ import annotations

import pytest

from irad.ir.instructions import Load
from tests.passes.units import unit_of, value

ITERATIONS = """
declare ptr @NRT_MemInfo_alloc_aligned(i64, i32)
declare void @NRT_decref(ptr)
define i32 @f(ptr noalias %r, ptr %a, i64 %n, i1 %c) {{
entry:
  %m0 = call ptr @NRT_MemInfo_alloc_aligned(i64 80, i32 32)
  %at0 = getelementptr i8, ptr %m0, i64 24
  %first = load ptr, ptr %at0
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %latch ]
  %m = phi ptr [ %m0, %entry ], [ %m1, %latch ]
  %old = phi ptr [ %first, %entry ], [ %new, %latch ]
  {begin}
  br i1 %c, label %early, label %work
early:
  {early}
  br label %work
work:
  %m1 = call ptr @NRT_MemInfo_alloc_aligned(i64 80, i32 32)
  %at1 = getelementptr i8, ptr %m1, i64 24
  %new = load ptr, ptr %at1
  %p = getelementptr double, ptr %old, i64 %i
  %x = load double, ptr %p
  {middle}
  %q = getelementptr double, ptr %new, i64 %i
  store double %x, ptr %q
  {written}
  %y = load double, ptr %new
  br label %latch
latch:
  {latch}
  call void @NRT_decref(ptr %m)
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %end
end:
  %z = load double, ptr %new
  {end}
  store double %z, ptr %r
  call void @NRT_decref(ptr %m1)
  ret i32 0
}}
"""


@pytest.mark.parametrize(
    ("place", "line", "expected"),
    [
        ("end", "", ""),  # a store to each array in its iteration: x is of the one before
        ("written", "store double 2.0, ptr %new", ""),  # before y
        ("latch", "store double 2.0, ptr %new", "y"),
        ("latch", "store double 2.0, ptr %old", "xy"),  # it may be what is read, or read next
        ("middle", "store double 2.0, ptr %old", "xy"),
        ("begin", "store double 2.0, ptr %old", "xy"),  # that array is the last one made until this iteration's is
        ("early", "store double 2.0, ptr %old", "xy"),
        ("end", "store double 2.0, ptr %new", "yz"),
        ("end", "store double 2.0, ptr %old", "xyz"),
        ("end", "store double 2.0, ptr %first", "x"),
        ("latch", "%s = select i1 %c, ptr %old, ptr %new\n  store double 2.0, ptr %s", "xy"),
        ("latch", "call void @g(ptr %new)", "xyz"),  # it may keep it
    ],
)
def test_what_may_be_overwritten(place, line, expected):
    places = {key: line if key == place else "" for key in ("begin", "early", "middle", "written", "latch", "end")}
    text = ITERATIONS.format(**places) + "define void @g(ptr %p) {\n  ret void\n}"
    unit = unit_of(text, "sscc")
    loads = [load for name in "xyz" if isinstance(load := value(unit.function, name), Load)]
    found = "".join(str(load.name) for load in loads if unit.effects.is_overwritten(load.operands[0], load))
    assert found == expected


SOMETIMES = """
declare ptr @NRT_MemInfo_alloc_aligned(i64, i32)
declare void @NRT_decref(ptr)
define i32 @f(ptr noalias %r, ptr %a, i64 %n, i1 %c) {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %latch ]
  %old = phi ptr [ %a, %entry ], [ %last, %latch ]
  br i1 %c, label %make, label %latch
make:
  %m = call ptr @NRT_MemInfo_alloc_aligned(i64 80, i32 32)
  %at = getelementptr i8, ptr %m, i64 24
  %new = load ptr, ptr %at
  {before}
  store double 2.0, ptr %new
  {after}
  br label %latch
latch:
  %last = phi ptr [ %old, %loop ], [ %new, %make ]
  {latch}
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %end
end:
  store double 1.0, ptr %r
  ret i32 0
}}
"""


@pytest.mark.parametrize(
    ("place", "written", "expected"),
    [
        ("before", "", False),  # the array of an earlier iteration, whether the one before made one or not
        ("after", "", False),
        ("latch", "", False),  # the next write comes after the next allocation
        ("latch", "store double 3.0, ptr %last", True),
    ],
)
def test_an_array_that_only_some_iterations_make(place, written, expected):
    pointer = "%last" if place == "latch" else "%old"
    places = dict.fromkeys(("before", "after", "latch"), "") | {place: f"%x = load double, ptr {pointer}\n  {written}"}
    unit = unit_of(SOMETIMES.format(**places), "sscc")
    load = value(unit.function, "x")
    assert isinstance(load, Load)
    assert unit.effects.is_overwritten(load.operands[0], load) == expected
