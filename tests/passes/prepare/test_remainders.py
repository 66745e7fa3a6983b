from __future__ import annotations

import llvmlite.binding as llvm
import pytest

from irad.ir.text.parser import parse_module
from irad.ir.text.printer import print_module
from irad.passes.prepare.remainders import choose_remainders
from tests.passes.units import canonical

FLOORED = """
  %r = srem i64 %v, %n
  %x = xor i64 %r, %n
  %c = icmp slt i64 %x, 0
  %s = select i1 %c, i64 %n, i64 0
  %a = add i64 %s, %r
  %negative = icmp slt i64 %a, 0
  %more = select i1 %negative, i64 %n, i64 0
  %index = add i64 %a, %more
"""
PLAIN = "%index = srem i64 %v, %n"
UNSIGNED = "%index = urem i64 %v, %n"
LOOP = """
define void @f(ptr %out, i64 %n, i64 %m, i1 %early) {
entry:
  %none = GUARD
  br i1 %none, label %done, label %some
some:
  %fewer = SECOND
  br i1 %fewer, label %done, label %before
before:
  br label %loop
loop:
  %i = phi i64 [ START, %before ], [ %next, %latch ]
  %next = add nuw nsw i64 %i, STEP
  DIVIDEND
  REMAINDER
  %p = getelementptr i64, ptr %out, i64 %i
  store i64 %index, ptr %p
  br i1 %early, label %exit, label %latch
latch:
  %end = ENDS
  br i1 %end, label %exit, label %loop
exit:
  br label %done
done:
  ret void
}
"""
BEFORE = "%v = add nsw i64 %i, -1"


def rewritten(
    dividend: str = BEFORE,
    remainder: str = FLOORED,
    guard: str = "icmp slt i64 %n, 1",
    second: str = "icmp eq i64 %m, 7",
    start: str = "0",
    step: str = "1",
    ends: str = "icmp eq i64 %next, %n",
) -> str | None:
    """The text of a module that was rewritten; None if it was not."""
    text = (
        LOOP.replace("GUARD", guard)
        .replace("SECOND", second)
        .replace("START", start)
        .replace("STEP", step)
        .replace("ENDS", ends)
    )
    module = parse_module(canonical(text.replace("DIVIDEND", dividend).replace("REMAINDER", remainder)))
    changed = choose_remainders(module)
    text = print_module(module)
    llvm.parse_assembly(text).verify()
    return text if changed else None


def test_the_neighbour_before():
    text = rewritten()
    assert text is not None
    lines = [line.strip() for line in text.splitlines()]
    compare = next(line for line in lines if line.endswith("icmp eq i64 %i, 0"))
    last = next(line for line in lines if line.endswith("= add nsw i64 %n, -1"))
    chosen = next(line for line in lines if f"select i1 {compare.split()[0]}, i64 {last.split()[0]}, i64 %" in line)
    assert "%more = select i1 false, i64 %n, i64 0" in lines
    assert f"%index = add i64 {chosen.split()[0]}, %more" in lines


@pytest.mark.parametrize("remainder", [FLOORED, PLAIN, UNSIGNED])
@pytest.mark.parametrize(
    ("dividend", "chosen"),
    [
        ("%w = add i64 %i, %n\n%v = add i64 %w, -1", "last"),
        ("%w = add i64 %n, -1\n%v = add i64 %w, %i", "last"),
        ("%v = add nuw nsw i64 %i, 1", "0"),
        ("%v = add nuw i64 %next, %n", "0"),
    ],
)
def test_neighbours_as_sums_of_the_divisor(dividend: str, chosen: str, remainder: str):
    text = rewritten(dividend, remainder)
    assert text is not None
    assert "i64 0, i64 %" in text if chosen == "0" else "icmp eq i64 %i, 0" in text


@pytest.mark.parametrize(
    "changed",
    [
        {"remainder": PLAIN},
        {"remainder": UNSIGNED},
        {"remainder": FLOORED.replace("srem", "urem")},
        {"remainder": FLOORED + "store i64 %r, ptr %out"},
        {"remainder": FLOORED.replace("select i1 %c, i64 %n, i64 0", "select i1 %c, i64 %m, i64 0")},
        {"remainder": FLOORED.replace("slt i64 %x, 0", "slt i64 %x, 1")},
        {"remainder": FLOORED.replace("xor i64 %r, %n", "xor i64 %r, %m")},
        {"remainder": FLOORED.replace("srem i64 %v, %n", "srem i64 %v, %m")},
        {"dividend": "%v = add nsw i64 %i, -2"},
        {"dividend": "%v = add nsw i64 %i, 2"},
        {"dividend": "%v = add nsw i64 %m, -1"},
        {"dividend": "%w = add i64 %i, %i\n%v = add i64 %w, -1"},
        {"dividend": "%w = add i64 %n, %n\n%u = add i64 %w, %i\n%v = add i64 %u, 1"},
        {"dividend": "%v = sub i64 %m, %i"},
        {"guard": "icmp slt i64 %n, 0"},
        {"guard": "icmp sgt i64 %n, 0"},
        {"guard": "icmp slt i64 %m, 1"},
        {"guard": "icmp eq i64 %n, 0"},
        {"start": "1"},
        {"start": "%m"},
        {"step": "2", "ends": "icmp sge i64 %next, %n"},
        {"ends": "icmp eq i64 %next, %m"},
        {"ends": "icmp eq i64 %i, %n"},
    ],
    ids=str,
)
def test_all_else_stays(changed: dict[str, str]):
    assert rewritten(**changed) is None


@pytest.mark.parametrize("ends", ["icmp eq i64 %next, %n", "icmp sge i64 %next, %n", "icmp uge i64 %next, %n"])
@pytest.mark.parametrize("guard", ["icmp slt i64 %n, 1", "icmp slt i64 %n, 5"])
def test_loops_that_end_in_other_ways(ends: str, guard: str):
    assert rewritten(ends=ends, guard=guard) is not None


@pytest.mark.parametrize(
    ("guard", "second", "is_positive"),
    [
        ("icmp slt i64 %n, 0", "icmp eq i64 %n, 0", True),  # the check of a shape, and that of a loop
        ("icmp eq i64 %n, 0", "icmp slt i64 %n, 0", True),
        ("icmp slt i64 %n, 0", "icmp ne i64 %n, 0", False),
        ("icmp slt i64 %n, 0", "icmp eq i64 %n, 1", False),
        ("icmp slt i64 %n, 0", "icmp eq i64 %m, 0", False),
        ("icmp slt i64 %m, 0", "icmp eq i64 %n, 0", False),
        ("icmp slt i64 %n, -1", "icmp eq i64 %n, 0", False),
        ("icmp sge i64 %n, 0", "icmp eq i64 %n, 0", False),
    ],
)
def test_two_checks_of_the_divisor(guard: str, second: str, is_positive: bool):
    assert (rewritten(guard=guard, second=second) is not None) == is_positive


def test_a_divisor_that_is_known_is_left_to_llvm():
    of_eight = FLOORED.replace("%n,", "8,").replace(", %n\n", ", 8\n")
    assert rewritten(remainder=of_eight, ends="icmp eq i64 %next, 8") is None
