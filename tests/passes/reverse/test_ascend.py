"""Which loops of a reverse sweep go upwards."""

from __future__ import annotations

import pytest

from irad.ir.instructions import Binary
from irad.passes.mode import REVERSE
from tests.passes.units import generated

LOOP = """
define i32 @f(ptr noalias %r, ptr noalias %e, ptr noalias %x, ptr noalias %y, i64 %n) {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %loop ]
  %sum = phi double [ 0.0, %entry ], [ %sum.next, %loop ]
  %p = getelementptr double, ptr %x, i64 %i
  %q = getelementptr double, ptr %y, i64 %i
  %a = load double, ptr %p
  %b = load double, ptr %q
  {part}
  %i.next = add i64 %i, 1
  %done = icmp eq i64 %i.next, %n
  br i1 %done, label %end, label %loop
end:
  store double %sum.next, ptr %r
  ret i32 0
}}
"""
DOT = "%ab = fmul double %a, %b\n  %sum.next = fadd double %sum, %ab"


def goes_up(part: str, text: str = LOOP, **options: object) -> bool:
    """Whether the number of an iteration is taken from the other end."""
    (made,) = generated(text.format(part=part), "scssc", **options)
    (body,) = (b for b in made.pair[REVERSE].blocks if b.name == "loop.adjoint")
    turned = [b for b in made.pair[REVERSE].blocks if b.name == "loop.adjoint.first"]
    numbers = [i for i in body.instructions if isinstance(i, Binary) and i.opcode == "sub"]
    assert numbers or not turned
    return bool(turned)


@pytest.mark.parametrize(
    "part",
    [
        DOT,
        f"{DOT}\n  store double %ab, ptr %q",  # each iteration clears the shadow of its own element
        "%sum.next = fadd double %sum, %a",
    ],
)
def test_loops_whose_order_does_not_matter(part: str):
    assert goes_up(part)


@pytest.mark.parametrize(
    "part",
    [
        "%h = fmul double %sum, %a\n  %sum.next = fadd double %h, %b",  # a recurrence
        f"{DOT}\n  store double %ab, ptr %y",  # the last iteration decides what remains
        f"{DOT}\n  %c = getelementptr double, ptr %q, i64 1\n  store double %ab, ptr %c",  # what the next one loads
        "%sum.next = fmul double %a, %b",  # only the last one counts
    ],
)
def test_loops_whose_order_matters(part: str):
    assert not goes_up(part)


def test_arrays_that_may_overlap():
    """An element of one may be cleared in the iteration that adds to it as an element of the other."""
    unknown = LOOP.replace("ptr noalias %x, ptr noalias %y", "ptr %x, ptr %y")
    assert not goes_up(f"{DOT}\n  store double %ab, ptr %q", unknown)


@pytest.mark.parametrize("options", [{"strict": True}, {"plan": "save_all"}, {"watches": True}, {"is_primal": True}])
def test_modes_that_keep_the_order(options: dict[str, object]):
    assert not goes_up(DOT, **options)
