"""Which loops of a forward sweep run four iterations side by side."""

from __future__ import annotations

import pytest

from irad.ir.instructions import Binary, Load
from irad.ir.module import Block
from irad.passes.mode import AUGMENTED
from tests.passes.units import generated

PRODUCT = """
declare double @llvm.exp.f64(double)
declare void @NRT_incref(ptr)
define i32 @f(ptr noalias %r, ptr noalias %e, ptr %a, ptr %x, ptr noalias %y, i64 %n, i64 %m, i64 %z) {{
entry:
  br label %outer
outer:
  %i = phi i64 [ 0, %entry ], [ %i.next, %latch ]
  %total = phi double [ 0.0, %entry ], [ %total.next, %latch ]
  %row = mul i64 %i, %m
  %some = icmp ne i64 {guarded}, 0
  {before}
  br i1 %some, label %row.start, label %latch
row.start:
  br label %inner
inner:
  %k = phi i64 [ 0, %row.start ], [ %k.next, %inner ]
  %sum = phi double [ 0.0, %row.start ], [ %sum.next, %inner ]
  %at = add i64 %row, %k
  %p = getelementptr double, ptr %a, i64 %at
  %u = load double, ptr %p
  %q = getelementptr double, ptr {vector}, i64 %k
  %v = load double, ptr %q
  %uv = fmul double %u, %v
  %sum.next = fadd {flags} double %sum, %uv
  {inside}
  %k.next = add nuw nsw i64 %k, 1
  %inner.ends = icmp eq i64 %k.next, {bound}
  br i1 %inner.ends, label %row.end, label %inner
row.end:
  %sum.last = phi double [ %sum.next, %inner ]
  br label %latch
latch:
  %dot = phi double [ 0.0, %outer ], [ %sum.last, %row.end ]
  %o = getelementptr double, ptr %y, i64 {place}
  store double %dot, ptr %o
  %square = fmul double %dot, {factor}
  %total.next = fadd double %total, %square
  %i.next = add nuw nsw i64 %i, 1
  %ends = icmp eq i64 %i.next, %n
  br i1 %ends, label %end, label %outer
end:
  %last = phi double [ %total.next, %latch ]
  store double %last, ptr %r
  ret i32 0
}}
"""
USUAL = {
    "guarded": "%m", "before": "", "vector": "%x", "flags": "", "inside": "", "bound": "%m",
    "place": "%i", "factor": "%dot",
}  # fmt: skip


def lockstep(plan: str = "default", **parts: str) -> list[Block]:
    """The blocks of the second version of the loop."""
    (made,) = generated(PRODUCT.format(**USUAL | parts), "scsssccc", plan=plan)
    return [b for b in made.pair[AUGMENTED].blocks if str(b.name).endswith(".lockstep")]


def count(blocks: list[Block], kind: type, opcode: str = "") -> int:
    found = (i for block in blocks for i in block.instructions if isinstance(i, kind))
    return sum(not opcode or getattr(i, "opcode", "") == opcode for i in found)


def test_four_rows_are_multiplied_side_by_side():
    blocks = lockstep()
    assert count(blocks, Load) == 8  # each row has its own; LLVM sees that all load the same of the vector
    assert count(blocks, Binary, "fadd") == 8
    inner = [block for block in blocks if str(block.name).startswith("inner")]
    assert count(inner, Binary, "add") == 4 + 1  # the counter once


@pytest.mark.parametrize(
    "parts",
    [
        {"place": "0"},  # in a block, stores stay in order
        {"guarded": "1"},
        {"inside": "%t = call double @llvm.exp.f64(double %u)"},
        {"vector": "%a"},
        {"inside": "store double %sum, ptr %o0", "before": "%o0 = getelementptr double, ptr %y, i64 %i"},
    ],
)
def test_what_may_run_in_lockstep(parts):
    assert lockstep(**parts)


@pytest.mark.parametrize(
    "parts",
    [
        {"flags": "reassoc"},  # LLVM makes vectors of it
        {"before": "%longer = add nuw nsw i64 %i, 1", "bound": "%longer"},  # as long as its row
        {"guarded": "%i"},
        {"vector": "%y"},  # an earlier row stores what a later one loads
        {"before": "%stored = load double, ptr %y"},
        {"factor": "%total"},  # it is saved before the row is done
        {"inside": "%w = fadd double %total, %v"},
        {"inside": "call void @NRT_incref(ptr null)"},
        {"inside": "%u0 = load volatile double, ptr %p"},
        {"inside": "store double %sum, ptr %y"},  # of all rows in one place
    ],
)
def test_what_stays_in_order(parts):
    assert not lockstep(**parts)


def test_loops_that_are_left_in_the_middle_stay_in_order():
    """Code after the exit comes before the rest of the loop in the order of the blocks."""
    text = PRODUCT
    for old, new in BROKEN.items():
        assert old in text
        text = text.replace(old, new)
    (made,) = generated(text.format(**USUAL), "scsssccc")
    assert not [b for b in made.pair[AUGMENTED].blocks if str(b.name).endswith(".lockstep")]


BROKEN = {
    "  {inside}": "  %found = icmp eq i64 %k, %z\n  br i1 %found, label %middle, label %on\non:",
    "label %row.end, label %inner\n": "label %row.end, label %inner\nmiddle:\n  br label %row.out\n",
    "[ %k.next, %inner ]": "[ %k.next, %on ]",
    "[ 0.0, %row.start ], [ %sum.next, %inner ]": "[ 0.0, %row.start ], [ %sum.next, %on ]",
    "%sum.last = phi double [ %sum.next, %inner ]": "%sum.last = phi double [ %sum.next, %on ]",
    "[ %sum.last, %row.end ]": "[ %sum.left, %row.out ]",
    "  br label %latch\nlatch:": """  br label %row.out
row.out:
  %sum.left = phi double [ %sum.last, %row.end ], [ %sum.next, %middle ]
  br label %latch
latch:""",
}


def test_the_oracle_takes_one_row_after_the_other():
    assert not lockstep(plan="save_all")
