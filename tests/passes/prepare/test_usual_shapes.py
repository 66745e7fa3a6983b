"""Which functions get a second version for arrays of the shapes that their code suggests."""

from __future__ import annotations

import llvmlite.binding as llvm
import pytest

from irad.backend.patterns import suggests_shapes
from irad.frontend.numba.convention import NUMBA
from irad.ir.instructions import Alloca
from irad.ir.text.parser import parse_module
from irad.ir.text.printer import print_module
from irad.passes.prepare.shape_specialisation import separate_usual_shapes
from tests.passes.units import canonical

LOOP = """
define i64 @f(ptr %out, i64 %n, i64 %m, i32 %k) {
entry:
  %slot = alloca i64
  %before = COMPARISON
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %length = select i1 ASKED, i64 %n, i64 6
  %p = getelementptr i64, ptr %out, i64 %i
  store i64 %length, ptr %p
  store i64 %length, ptr %slot
  %next = add nuw nsw i64 %i, 1
  %end = icmp eq i64 %next, %m
  br i1 %end, label %exit, label %loop
exit:
  %last = select i1 %before, i64 %i, i64 %next
  %left = load i64, ptr %slot
  %sum = add i64 %last, %left
  ret i64 %sum
}
"""


def versions(comparison: str = "icmp slt i64 %n, 7", asked: str = "%before", text: str = LOOP) -> str | None:
    """The text of a module with two versions of the function; None if it has one."""
    text = canonical(text.replace("COMPARISON", comparison).replace("ASKED", asked))
    module = parse_module(text)
    assert NUMBA.references is not None
    changed = separate_usual_shapes(module, NUMBA.references)
    assert suggests_shapes(text, NUMBA.references.plain) or not changed
    printed = print_module(module)
    llvm.parse_assembly(printed).verify()
    return printed if changed else None


@pytest.mark.parametrize(
    ("comparison", "least"),
    [("icmp slt i64 %n, 7", 7), ("icmp sgt i64 %n, 7", 8), ("icmp slt i64 %n, 2", 2), ("icmp slt i64 %n, 64", 64)],
)
def test_the_head_asks_for_the_length(comparison: str, least: int):
    text = versions(comparison)
    assert text is not None
    lines = [line.strip() for line in text.splitlines()]
    (test,) = (line for line in lines if line.endswith(f"= icmp sge i64 %n, {least}"))
    assert f"br i1 {test.split()[0]}, label %entry, label %entry.other" in lines
    assert text.count("ret i64") == 2


def test_slots_of_the_stack_are_shared():
    text = versions()
    assert text is not None
    (function,) = parse_module(text).defined_functions()
    slots = [inst for inst in function.instructions() if isinstance(inst, Alloca)]
    assert [slot.block for slot in slots] == [function.entry]


def test_several_lengths():
    text = versions(text=LOOP.replace("%end = icmp eq i64 %next, %m", MORE))
    assert text is not None
    assert "icmp sge i64 %n, 9" in text
    assert "icmp sge i64 %m, 5" in text


MORE = """%far = icmp slt i64 %n, 9
  %wide = icmp sgt i64 %m, 4
  %both = and i1 %far, %wide
  %same = icmp eq i64 %next, %m
  %end = or i1 %both, %same"""


@pytest.mark.parametrize(
    ("comparison", "asked"),
    [
        ("icmp slt i64 %n, 7", "true"),  # in no loop
        ("icmp slt i64 %n, 1", "%before"),  # whether there is anything
        ("icmp slt i64 %n, 65", "%before"),
        ("icmp slt i64 %n, -3", "%before"),
        ("icmp eq i64 %n, 7", "%before"),
        ("icmp ult i64 %n, 7", "%before"),
        ("icmp slt i64 %n, %m", "%before"),
        ("icmp slt i32 %k, 7", "%before"),
    ],
)
def test_all_else_stays(comparison: str, asked: str):
    assert versions(comparison, asked) is None


def test_large_functions_stay():
    filler = "\n".join(f"  %x{k} = add i64 %n, {k}\n  store volatile i64 %x{k}, ptr %out" for k in range(1001))
    assert versions(text=LOOP.replace("  br label %loop\nloop:", f"{filler}\n  br label %loop\nloop:", 1)) is None


ROWS = """
declare i64 @irad.dimension(i64, ptr)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
define void @f(ptr %x, i64 %n, i64 %size) {
entry:
  %d = call i64 @irad.dimension(i64 %size, ptr %x)
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %row = mul i64 %i, %d
  %p = getelementptr double, ptr %x, i64 %row
  %a = load double, ptr %p
  %q = getelementptr i8, ptr %p, i64 8
  store double %a, ptr %q
  %r = getelementptr i8, ptr %p, i64 OFFSET
  %c = load double, ptr %r
  MORE
  %next = add nuw nsw i64 %i, 1
  %end = icmp eq i64 %next, %n
  br i1 %end, label %exit, label %loop
exit:
  ret void
}
"""


@pytest.mark.parametrize(("offset", "length"), [(16, 3), (8, 2), (56, 8), (20, 3)])
def test_rows_of_which_few_elements_are_accessed(offset: int, length: int):
    text = versions(text=ROWS.replace("OFFSET", str(offset)).replace("MORE", ""))
    assert text is not None
    assert f"icmp eq i64 %size, {length}" in text
    assert f"call i64 @irad.dimension(i64 {length}, ptr %x)" in text
    assert "call i64 @irad.dimension(i64 %size, ptr %x)" in text


IN_TURN = [
    "%s = getelementptr double, ptr %p, i64 %i\n  %t = load double, ptr %s",
    "%s = add i64 %row, %i\n  %o = getelementptr double, ptr %x, i64 %s\n  %t = load double, ptr %o",
    "%w = shl i64 %d, 3\n  %b = mul i64 %w, %i\n  %o = getelementptr i8, ptr %x, i64 %b\n"
    "  call void @llvm.memset.p0.i64(ptr %o, i8 0, i64 24, i1 false)",
    "%t = icmp slt i64 %size, %i\n  store i1 %t, ptr %x",  # the length is asked for
]


@pytest.mark.parametrize("more", IN_TURN)
def test_rows_whose_elements_are_taken_in_turn_as_well(more: str):
    text = versions(text=ROWS.replace("OFFSET", "16").replace("MORE", more))
    assert text is not None
    assert "icmp eq i64 %size, 3" in text
    assert versions(text=ROWS.replace("OFFSET", "24").replace("MORE", more)) is None, "nothing says what the third is"


@pytest.mark.parametrize(
    ("offset", "more"),
    [
        (64, ""),  # rows of nine elements, and more
        (-8, ""),
        (16, "%u = add i64 %i, 1\n  %s = getelementptr double, ptr %p, i64 %u\n  %t = load double, ptr %s"),
        (16, "%s = add i64 %row, %n\n  %o = getelementptr double, ptr %x, i64 %s\n  %t = load double, ptr %o"),
        (16, "store ptr %q, ptr %x"),  # an address that others may use
        (16, "store i64 %d, ptr %x"),
    ],
)
def test_rows_of_which_more_may_be_accessed(offset: int, more: str):
    assert versions(text=ROWS.replace("OFFSET", str(offset)).replace("MORE", more)) is None


def test_rows_in_no_loop():
    once = ROWS.replace("%end = icmp eq i64 %next, %n", "%end = icmp eq i64 %next, 1")
    straight = once.replace("br i1 %end, label %exit, label %loop", "br label %exit").replace(", [ %next, %loop ]", "")
    assert versions(text=straight.replace("OFFSET", "16").replace("MORE", "")) is None


VECTORS = """
declare ptr @NRT_MemInfo_alloc_aligned(i64, i32)
define void @f(ptr %x, i64 %n, i64 %m) {
entry:
  %bytes = BYTES
  %made = call ptr @NRT_MemInfo_alloc_aligned(i64 %bytes, i32 32)
  %field = getelementptr i8, ptr %made, i64 24
  %data = load ptr, ptr %field
  %q = getelementptr i8, ptr %data, i64 OFFSET
  br label %steps
steps:
  %k = phi i64 [ 0, %entry ], [ %later, %steps.end ]
  %a = load double, ptr %data
  store double %a, ptr %q
  br label %loop
loop:
  %i = phi i64 [ START, %steps ], [ %next, %loop ]
  %up = add i64 %i, 1
  %empty = icmp eq i64 %n, 1
  %stretched = select i1 %empty, i64 0, i64 %i
  %p = getelementptr double, ptr %data, i64 INDEX
  %b = load double, ptr %p
  %o = getelementptr double, ptr %x, i64 %i
  store double %b, ptr %o
  %next = add nuw nsw i64 %i, 1
  %end = icmp eq i64 %next, %n
  br i1 %end, label %steps.end, label %loop
steps.end:
  %later = add nuw nsw i64 %k, 1
  %over = icmp eq i64 %later, %m
  br i1 %over, label %exit, label %steps
exit:
  ret void
}
"""


def vectors(offset: int = 8, start: str = "0", index: str = "%i", size: str = "shl nsw i64 %n, 3") -> str:
    text = VECTORS.replace("BYTES", size).replace("START", start).replace("INDEX", index)
    return text.replace("OFFSET", str(offset))


@pytest.mark.parametrize("index", ["%i", "%stretched"])
def test_arrays_of_which_few_elements_are_accessed_by_constants(index: str):
    text = versions(text=vectors(index=index))
    assert text is not None
    assert "icmp eq i64 %n, 2" in text
    assert "shl nsw i64 2, 3" in text


@pytest.mark.parametrize(
    "parts",
    [
        {"offset": 16},  # the first and the third
        {"offset": 0},  # one element
        {"offset": -8},
        {"start": "1"},  # from the second on
        {"index": "%up"},
        {"size": "add i64 %n, 8"},
        {"size": "shl i64 %n, 4"},  # both numbers of the first element
        {"size": "shl i64 %k0, 3\n  %unused = add i64 0, 0"},
    ],
)
def test_arrays_of_any_size(parts):
    text = vectors(**parts).replace("%bytes = shl i64 %k0", "%k0 = add i64 %n, 1\n  %bytes = shl i64 %k0")
    assert versions(text=text) is None


def test_elements_accessed_once():
    once = vectors().replace("br i1 %over, label %exit, label %steps", "br label %exit")
    assert versions(text=once.replace(", [ %later, %steps.end ]", "")) is None


STATE = """
declare ptr @NRT_MemInfo_alloc_aligned(i64, i32)
define void @f(ptr %x, i64 %n, i64 %m, i64 %later) {
entry:
  %bytes = shl i64 %n, 3
  %made = call ptr @NRT_MemInfo_alloc_aligned(i64 %bytes, i32 32)
  br label %loop
loop:
  %size = phi i64 [ FIRST, %entry ], [ NEXT, %step ]
  %k = phi i64 [ 0, %entry ], [ %up, %step ]
  store i64 %size, ptr %x
  %c = icmp eq i64 %k, 3
  br i1 %c, label %skip, label %step
skip:
  br label %step
step:
  %same = phi i64 [ %size, %skip ], [ 6, %loop ]
  %up = add nuw nsw i64 %k, 1
  %over = icmp eq i64 %up, %m
  br i1 %over, label %exit, label %loop
exit:
  ret void
}
"""


@pytest.mark.parametrize("following", ["6", "%same"])
def test_states_that_get_arrays_of_a_known_size(following: str):
    text = versions(text=STATE.replace("FIRST", "%n").replace("NEXT", following))
    assert text is not None
    assert "icmp eq i64 %n, 6" in text
    assert "phi i64 [ 6, %entry ], [ " in text
    assert "phi i64 [ %n, %entry.other ], [ " in text


@pytest.mark.parametrize(
    ("first", "following"),
    [
        ("%n", "1"),
        ("%n", "0"),
        ("%n", "65"),
        ("%n", "-6"),
        ("%n", "%later"),
        ("%n", "%k"),  # what changes again
        ("6", "%same"),  # known anyway
        ("%bytes", "6"),  # not as the caller gave it
    ],
)
def test_states_of_any_size(first: str, following: str):
    assert versions(text=STATE.replace("FIRST", first).replace("NEXT", following)) is None


def test_a_size_outside_of_loops():
    text = (
        STATE.replace("FIRST", "%n")
        .replace("NEXT", "6")
        .replace("br i1 %over, label %exit, label %loop", "br label %exit")
    )
    text = text.replace(", [ 6, %step ]", "").replace(", [ %up, %step ]", "")
    assert versions(text=text) is None


COPIED = """
  %f = getelementptr i8, ptr %made, i64 24
  %data = load ptr, ptr %f
  %length = mul i64 FACTORS
  call void @llvm.memcpy.p0.p0.i64(ptr TARGET, ptr %x, i64 %length, i1 false)
"""


@pytest.mark.parametrize(
    ("factors", "target", "expected"),
    [
        ("%bytes1, %n", "%data", {"%bytes1": 8}),
        ("%n, %bytes1", "%data", {"%bytes1": 8}),
        ("%bytes1, %all", "%data", {"%bytes1": 8, "%all": 6}),
        ("%all, %bytes1", "%data", {"%bytes1": 8, "%all": 6}),
        ("%bytes1, %n", "%x", {}),  # an array that is not made here
        ("%bytes1, %bytes", "%data", {}),
        ("8, %n", "%data", {}),
    ],
)
def test_the_numbers_by_which_a_state_is_copied(factors: str, target: str, expected: dict[str, int]):
    body = COPIED.replace("FACTORS", factors).replace("TARGET", target)
    text = (
        STATE.replace("FIRST", "%n")
        .replace("NEXT", "6")
        .replace("  br label %loop\nloop", f"{body}  br label %loop\nloop", 1)
    )
    text = text.replace("i64 %n, i64 %m", "i64 %all, i64 %bytes1, i64 %n, i64 %m")
    text = text.replace("define", "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)\ndefine", 1)
    found = versions(text=text)
    assert found is not None
    head = found[found.index("{") : found.index("label %entry,")]
    tests = dict(line.split(" eq i64 ")[1].split(", ") for line in head.splitlines() if " icmp eq i64 " in line)
    assert tests == {"%n": "6"} | {name: str(value) for name, value in expected.items()}


NESTED = """
define void @f(ptr %x, i64 %n, i64 %axes) {
entry:
  br label %points
points:
  %i = phi i64 [ 0, %entry ], [ %j, %points.end ]
  br label %inner.head
inner.head:
  br label %inner
inner:
  %k = phi i64 [ START, %inner.head ], [ %l, %inner ]
  %p = getelementptr double, ptr %x, i64 %k
  %a = load double, ptr %p
  store double %a, ptr %x
  %l = add nsw i64 %k, STEP
  %stop = icmp eq i64 %l, END
  br i1 %stop, label %points.end, label %inner
points.end:
  %j = add nuw nsw i64 %i, 1
  %last = icmp eq i64 %j, OUTER
  br i1 %last, label %exit, label %points
exit:
  ret void
}
"""


def versions_for(
    lengths: dict[int, int], text: str, start: str = "0", step: str = "1", end: str = "%axes"
) -> str | None:
    """The text of a module with two versions of the function for the lengths of a call; None if it has one."""
    text = text.replace("START", start).replace("STEP", step).replace("END", end).replace("OUTER", "%n")
    module = parse_module(canonical(text))
    assert NUMBA.references is not None
    changed = separate_usual_shapes(module, NUMBA.references, {"f": lengths, "g": {1: 6}})
    printed = print_module(module)
    llvm.parse_assembly(printed).verify()
    return printed if changed else None


@pytest.mark.parametrize(("start", "step", "end"), [("0", "1", "%axes"), ("%axes", "-1", "0")])
def test_a_length_at_which_inner_loops_end(start: str, step: str, end: str):
    text = versions_for({2: 6}, NESTED, start, step, end)
    assert text is not None
    assert "icmp eq i64 %axes, 6" in text
    assert text.count("ret void") == 2


@pytest.mark.parametrize("lengths", [{}, {1: 6}])
def test_lengths_of_outer_loops_vary(lengths: dict[int, int]):
    assert versions_for(lengths, NESTED) is None
    both = NESTED.replace("OUTER", "%axes")
    assert versions_for({2: 6}, both) is None, "points, of which each looks at all"


def test_lengths_of_single_loops_vary():
    text = LOOP.replace("COMPARISON", "icmp slt i64 %n, %m").replace("ASKED", "true")
    assert versions_for({1: 6, 2: 6}, text) is None


def test_a_length_of_a_loop_by_itself_that_ends_inner_ones_too():
    """That of a vector, which a sum runs along once."""
    more = """alone:
  %q = phi i64 [ 0, %points.done ], [ %r, %alone ]
  store i64 %q, ptr %x
  %r = add nsw i64 %q, 1
  %done = icmp eq i64 %r, %axes
  br i1 %done, label %exit, label %alone
exit:"""
    text = NESTED.replace("label %exit, label %points", "label %points.done, label %points")
    text = text.replace("exit:\n", f"points.done:\n  br label %alone\n{more}\n", 1)
    assert versions_for({2: 6}, text) is not None


def test_the_length_of_a_call_counts_more_than_what_the_code_suggests():
    text = ROWS.replace("OFFSET", "16").replace("MORE", "")
    module = parse_module(canonical(text))
    assert NUMBA.references is not None
    assert separate_usual_shapes(module, NUMBA.references, {"f": {2: 5}})
    assert "icmp eq i64 %size, 5" in print_module(module)
    assert "icmp eq i64 %size, 3" not in print_module(module)
