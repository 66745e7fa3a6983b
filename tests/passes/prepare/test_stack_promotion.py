from __future__ import annotations

import llvmlite.binding as llvm
import pytest

from irad.frontend.numba.convention import NUMBA
from irad.ir.text.parser import parse_module
from irad.ir.text.printer import print_module
from irad.passes.prepare.stack_promotion import promote_small_arrays
from tests.passes.units import COUNTING, canonical

MADE = """
  %m = call ptr @NRT_MemInfo_alloc_aligned(i64 24, i32 32)
  %failed = icmp eq ptr %m, null
  %field = getelementptr i8, ptr %m, i64 24
  %d = load ptr, ptr %field
"""


def promoted(body: str) -> list[str] | None:
    """The instructions of a function that was rewritten; None if it was not."""
    module = parse_module(canonical(f"define double @f(double %x, i64 %n, ptr %out) {{\n{body}\n}}\n{COUNTING}"))
    assert NUMBA.references is not None
    changed = promote_small_arrays(module, NUMBA.references)
    text = print_module(module)
    llvm.parse_assembly(text).verify()
    lines = [line.strip() for line in text.splitlines()]
    assert changed != any("call ptr @NRT_MemInfo" in line for line in lines)
    return lines if changed else None


def test_an_array_becomes_a_variable():
    lines = promoted(f"""
entry:
  {MADE}
  br i1 %failed, label %no, label %yes
no:
  ret double -1.0
yes:
  call void @NRT_incref(ptr %m)
  %size = getelementptr i8, ptr %m, i64 32
  %bytes = load i64, ptr %size
  store i64 %bytes, ptr %out
  %q = getelementptr double, ptr %d, i64 2
  store double %x, ptr %q
  %r = load double, ptr %q
  call void @NRT_decref(ptr %m)
  ret double %r
""")
    assert lines is not None
    assert "%m = alloca [24 x i8], align 64" in lines
    assert "call void @llvm.memset.p0.i64(ptr %m, i8 0, i64 24, i1 false)" in lines
    assert "br i1 false, label %no, label %yes" in lines
    assert any(line.startswith("store i64 24, ptr %out") for line in lines)
    assert "%q = getelementptr double, ptr %m, i64 2" in lines
    assert not any(line.startswith("call void @NRT") for line in lines)


def test_of_a_header_chosen_among_others_only_theirs_are_counted():
    lines = promoted(f"""
entry:
  %c = icmp sgt i64 %n, 0
  br i1 %c, label %make, label %join
make:
  {MADE}
  store double %x, ptr %d
  br label %join
join:
  %header = phi ptr [ %m, %make ], [ %out, %entry ]
  call void @NRT_decref(ptr %header)
  ret double %x
""")
    assert lines is not None
    assert "%header = phi ptr [ null, %make ], [ %out, %entry ]" in lines
    assert "call void @NRT_decref(ptr %header)" in lines


ESCAPES = {
    "stored": "store ptr %d, ptr %out",
    "its header stored": "store ptr %m, ptr %out",
    "passed to a call": "call void @other(ptr %d)",
    "its header passed to a call": "call void @other(ptr %m)",
    "an integer": "%i = ptrtoint ptr %d to i64\nstore i64 %i, ptr %out",
    "volatile": "store volatile double %x, ptr %d",
    "atomic": "%o = atomicrmw fadd ptr %d, double %x monotonic",
    "count read": "%c = load i64, ptr %m\nstore i64 %c, ptr %out",
    "maybe another": ("%c = icmp sgt i64 %n, 0\n%p = select i1 %c, ptr %d, ptr %out\nstore double %x, ptr %p"),
    "in an aggregate": "%s = insertvalue {ptr, i64} undef, ptr %d, 0\nstore {ptr, i64} %s, ptr %out",
}


@pytest.mark.parametrize("use", ESCAPES.values(), ids=ESCAPES.keys())
def test_arrays_that_may_be_known_elsewhere_stay(use: str):
    assert promoted(f"{MADE}\n{use}\nret double %x") is None


@pytest.mark.parametrize("size", ["0", "513", "%n"])
def test_arrays_of_other_sizes_stay(size: str):
    made = MADE.replace("i64 24, i32", f"i64 {size}, i32")
    assert promoted(f"{made}\nstore double %x, ptr %d\nret double %x") is None


LOOP = f"""
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %latch ]
  %before = phi ptr [ null, %entry ], [ {{carried}}, %latch ]
  %first = icmp eq i64 %i, 0
  {MADE}
  %v = uitofp i64 %i to double
  store double %v, ptr %d
  br i1 %first, label %latch, label %later
later:
  {{use}}
  br label %latch
latch:
  %next = add nuw nsw i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %exit
exit:
  ret double %x
"""


def test_an_array_that_is_read_after_the_next_is_made_stays():
    read = "%old = load double, ptr %before\n  store double %old, ptr %out"
    later = LOOP.format(carried="%d", use=read)
    assert promoted(later) is None
    same = LOOP.format(carried="%d", use="").replace("  br i1 %first", f"  {read}\n  br i1 %first")
    assert promoted(same) is None, "in the block in which the next is made"


def test_an_array_that_ends_before_the_next_is_made_does_not():
    read = "%old = load double, ptr %d\n  store double %old, ptr %out"
    assert promoted(LOOP.format(carried="null", use=read)) is not None


HANDED_ON = f"""
entry:
  {MADE.replace("%", "%old.")}
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %state = phi ptr [ %old.d, %entry ], [ %d, %loop ]
  %header = phi ptr [ %old.m, %entry ], [ %m, %loop ]
  {MADE}
  %s = load double, ptr %state
  %t = fadd double %s, %x
  store double %t, ptr %d
  {{use}}
  call void @NRT_decref(ptr %header)
  %next = add nuw nsw i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %exit
exit:
  %r = load double, ptr %last
  ret double %r
"""


def test_a_phi_takes_an_array_over():
    lines = promoted(HANDED_ON.format(use="").replace("%last", "%d"))
    assert lines is not None
    assert "%state = alloca [24 x i8], align 64" in lines
    assert "%s = load double, ptr %state, align 8" in lines or "%s = load double, ptr %state, align 4" in lines
    assert sum(line.startswith("store double") for line in lines) == 1 + 3 * 3  # in both blocks before, and in the loop


def test_it_does_not_if_what_it_took_over_is_used_by_another_name():
    assert promoted(HANDED_ON.format(use="").replace("%last", "%old.d")) is None
    later = "%old = load double, ptr %old.d\n  store double %old, ptr %out"
    assert promoted(HANDED_ON.format(use=later).replace("%last", "%d")) is None
    again = "%again = load ptr, ptr %old.field\n  store double %x, ptr %again"
    assert promoted(HANDED_ON.format(use=again).replace("%last", "%d")) is None


def test_it_does_not_if_two_phis_take_the_same():
    twin = HANDED_ON.replace("{use}", "store double %x, ptr %twin").replace(
        "%header = phi", "%twin = phi ptr [ %old.d, %entry ], [ %d, %loop ]\n  %header = phi"
    )
    assert promoted(twin.replace("%last", "%d")) is None


def test_it_does_not_if_only_a_part_is_handed_on():
    part = HANDED_ON.format(use="%part = getelementptr i8, ptr %d, i64 8").replace("[ %d, %loop ]", "[ %part, %loop ]")
    assert promoted(part.replace("%last", "%d")) is None


COPIED = f"""
  {MADE}
  %other = getelementptr i8, ptr %d, i64 8
  call void @llvm.memcpy.p0.p0.i64(ptr %d, ptr %from, i64 8, i1 false)
  %r = load double, ptr %d
  store double %r, ptr %out
  ret double %x
"""


def test_copies_are_made_element_by_element():
    copied = COPIED.replace("%from", "%other")
    lines = promoted(copied)
    assert lines is not None
    assert sum("= load double" in line for line in lines) == 2
    assert not any("memcpy" in line for line in lines if line.startswith("call"))
    mixed = copied.replace("ret double", "store i64 %n, ptr %d\n  ret double")
    assert promoted(mixed) is None  # numbers that may be moved as integers


def test_copies_from_elsewhere_are_of_the_numbers_that_the_array_holds():
    lines = promoted(COPIED.replace("%from", "%out"))
    assert lines is not None
    assert sum("= load double, ptr %out" in line for line in lines) == 1
    mixed = COPIED.replace("%from", "%out").replace("ret double", "%v = load i64, ptr %other\n  ret double")
    assert promoted(mixed) is None


def test_copies_to_elsewhere_may_be_read_there_as_anything():
    assert promoted(COPIED.replace("ptr %d, ptr %from", "ptr %out, ptr %d")) is None


def test_copies_of_any_length_stay():
    assert promoted(COPIED.replace("%from", "%out").replace("i64 8, i1", "i64 %n, i1")) is None


INDEXED = f"""
entry:
  {MADE}
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %p = getelementptr double, ptr %d, i64 {{index}}
  store double %x, ptr %p
  {{use}}
  %next = add nuw nsw i64 %i, 1
  %more = icmp ult i64 %next, {{bound}}
  br i1 %more, label %loop, label %exit
exit:
  ret double %x
"""
READ = "%r = load double, ptr %p\n  store double %r, ptr %out"


def test_loops_that_elements_are_indexed_by_are_unrolled():
    lines = promoted(INDEXED.format(index="%i", use="", bound=3))
    assert lines is not None
    assert any("llvm.loop.unroll.full" in line for line in lines)
    assert any(line.startswith("br i1 %more, label %loop, label %exit, !llvm.loop") for line in lines)


FLAGGED = f"""
entry:
  {MADE}
  br label %loop
loop:
  %last = phi i1 [ {{first}}, %entry ], [ {{then}}, %latch ]
  %i = phi i64 [ 0, %entry ], [ 1, %latch ]
  %p = getelementptr double, ptr %d, i64 %i
  store double %x, ptr %p
  {READ}
  br label %latch
latch:
  br i1 %last, label {{targets}}
exit:
  ret double %x
"""


@pytest.mark.parametrize(
    ("first", "then", "targets", "is_unrolled"),
    [
        ("false", "true", "%exit, label %loop", True),
        ("true", "false", "%loop, label %exit", True),
        ("false", "false", "%exit, label %loop", False),
        ("false", "%c", "%exit, label %loop", False),
    ],
)
def test_loops_that_end_by_a_flag_of_their_first_iteration_are_unrolled(
    first: str, then: str, targets: str, is_unrolled: bool
):
    body = FLAGGED.format(first=first, then=then, targets=targets)
    lines = promoted(body.replace("entry:", "entry:\n  %c = icmp sgt i64 %n, 0"))
    assert (lines is not None) == is_unrolled
    if lines is not None:
        assert any(line.startswith("br i1 %last") and "llvm.loop" in line for line in lines)


def test_other_loops_are_not():
    lines = promoted(INDEXED.format(index="1", use=READ, bound="%n"))
    assert lines is not None
    assert not any("llvm.loop" in line for line in lines)


def test_what_stays_in_memory_may_be_read_as_often_as_is_known():
    assert promoted(INDEXED.format(index="%n", use=READ, bound="%n")) is None
    assert promoted(INDEXED.format(index="%n", use="", bound="%n")) is not None
    assert promoted(INDEXED.format(index="%n", use=READ, bound="50")) is not None
    assert promoted(INDEXED.format(index="%i", use=READ, bound="5000")) is None
