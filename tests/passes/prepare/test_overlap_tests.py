"""Tests for overlap: false where one array was allocated after the address of the other was known, else left alone."""

from __future__ import annotations

import llvmlite.binding as llvm
import pytest

from irad.frontend.numba.convention import NUMBA
from irad.ir.text.parser import parse_module
from irad.ir.text.printer import print_module
from irad.passes.prepare.overlap_tests import drop_overlap_tests
from tests.passes.units import COUNTING, canonical

MADE = """
  %m = call ptr @NRT_MemInfo_alloc_aligned(i64 %n, i32 32)
  %field = getelementptr i8, ptr %m, i64 24
  %new = load ptr, ptr %field
"""
ASKED = """
  %target = getelementptr i8, ptr %new, i64 24
  %a = ptrtoint ptr OLD to i64
  %a.end = add i64 %a, %n
  %b = ptrtoint ptr %target to i64
  %b.end = add i64 %b, 24
  %c = icmp ugt i64 %a.end, %b
  %d = icmp ult i64 %a, %b.end
  %overlap = and i1 %c, %d
"""
COPY = """
  br i1 %overlap, label %copy, label %apart
copy:
  store double 1.0, ptr %out
  br label %apart
apart:
  %from = phi ptr [ %out, %copy ], [ OLD, BEFORE ]
  store ptr %from, ptr %new
  br i1 %overlap, label %free, label %done
free:
  store double 2.0, ptr %out
  br label %done
done:
  ret double 0.0
"""


def dropped(body: str) -> str | None:
    """The text of a function that was rewritten; None if it was not."""
    text = canonical(f"define double @f(ptr %y, i64 %n, i64 %k, ptr %out) {{\n{body}\n}}\n{COUNTING}")
    module = parse_module(text)
    assert NUMBA.references is not None
    changed = drop_overlap_tests(module, NUMBA.references)
    printed = print_module(module)
    llvm.parse_assembly(printed).verify()
    assert changed or printed == print_module(parse_module(text))
    return printed if changed else None


def straight(old: str = "%y", before: str = "", after: str = "", asked: str = ASKED) -> str:
    """A function that asks in its first block, with code before and after the allocation."""
    text = f"entry:\n{before}{MADE}{after}{asked}{COPY}"
    return text.replace("OLD", old).replace("BEFORE", "%entry")


KNOWN_BEFORE = {
    "an argument": ("%y", ""),
    "a part of it": ("%part", "%part = getelementptr i8, ptr %y, i64 16\n"),
    "from memory": ("%held", "%held = load ptr, ptr %y\n"),
    "one of two": ("%one", "%e = icmp eq i64 %k, 0\n%one = select i1 %e, ptr %y, ptr %out\n"),
    "memory made earlier": (
        "%first",
        "%m0 = call ptr @NRT_MemInfo_alloc_aligned(i64 %n, i32 32)\n"
        "%f0 = getelementptr i8, ptr %m0, i64 24\n%first = load ptr, ptr %f0\n",
    ),
}


@pytest.mark.parametrize("name", KNOWN_BEFORE)
def test_what_was_known_before_is_apart(name: str):
    old, before = KNOWN_BEFORE[name]
    text = dropped(straight(old, before))
    assert text is not None
    assert "ptrtoint" not in text
    assert "icmp u" not in text
    assert "store double" not in text
    assert text.count("br i1") == 0


def test_memory_made_later_is_apart_from_what_it_is_compared_with():
    """The header of the older array may be asked for its data at any time."""
    later = "%m0 = call ptr @NRT_MemInfo_alloc_aligned(i64 %n, i32 32)\n"
    late = "%f0 = getelementptr i8, ptr %m0, i64 24\n%first = load ptr, ptr %f0\n"
    assert dropped(straight("%first", after=later + late)) is not None  # %new was known before that one was allocated
    assert dropped(straight("%first", before=later, after=late)) is None


KNOWN_AFTER = {
    "the same array": ("%new", ""),
    "a part of it": ("%part", "%part = getelementptr double, ptr %new, i64 %k\n"),
    "perhaps the same": ("%one", "%e = icmp eq i64 %k, 0\n%one = select i1 %e, ptr %y, ptr %new\n"),
    "from memory that may hold its address": ("%held", "store ptr %new, ptr %y\n%held = load ptr, ptr %y\n"),
    "from another field": ("%other", "%f2 = getelementptr i8, ptr %m, i64 16\n%other = load ptr, ptr %f2\n"),
}


@pytest.mark.parametrize("name", KNOWN_AFTER)
def test_what_is_known_later_may_be_the_same(name: str):
    old, after = KNOWN_AFTER[name]
    assert dropped(straight(old, after=after)) is None


OTHER_TESTS = {
    "either": ("and i1", "or i1"),
    "one is enough": ("%d = icmp ult i64 %a, %b.end", "%d = icmp ult i64 %a, %n"),
    "twice the same": ("%d = icmp ult i64 %a, %b.end", "%d = icmp ult i64 %b, %a.end"),
    "signed": ("icmp ult", "icmp slt"),
    "or equal": ("icmp ult", "icmp ule"),
    "another way round": ("icmp ult", "icmp ugt"),
    "a distance": ("add i64 %b, 24", "sub i64 %b, %a"),
    "two addresses": ("add i64 %b, 24", "add i64 %b, %a"),
}


@pytest.mark.parametrize("name", OTHER_TESTS)
def test_other_comparisons_stay(name: str):
    assert dropped(straight(asked=ASKED.replace(*OTHER_TESTS[name]))) is None


def test_what_else_is_asked_of_addresses_stays():
    text = dropped(straight(asked=ASKED + "  store i64 %b.end, ptr %out\n"))
    assert text is not None
    assert "store i64 %b.end, ptr %out" in text
    assert text.count("ptrtoint") == 1


LOOP = """
entry:
  br label %loop
loop:
  %old = phi ptr [ %y, %entry ], [ NEXT, %latch ]
  %i = phi i64 [ 0, %entry ], [ %next, %latch ]
  MADE
  br label %body
body:
  %j = phi ptr [ INNER, %loop ], [ %new, %body.again ]
  ASKED
  br i1 %overlap, label %copy, label %body.again
copy:
  store double 1.0, ptr %out
  br label %body.again
body.again:
  %again = icmp ult i64 %i, %k
  br i1 %again, label %body, label %latch
latch:
  %next = add nuw nsw i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret double 0.0
"""


def looped(old: str) -> str:
    return (
        LOOP.replace("MADE", MADE)
        .replace("ASKED", ASKED)
        .replace("NEXT", "%new")
        .replace("INNER", "%y")
        .replace("OLD", old)
    )


def test_the_array_of_the_iteration_before_is_apart_from_this_one():
    text = dropped(looped("%old"))
    assert text is not None
    assert "store double" not in text


def test_a_name_that_gets_the_array_in_between_is_not():
    assert dropped(looped("%j")) is None
