"""Which guards of zero cotangents choose the cotangent itself."""

from __future__ import annotations

import math

import pytest

from irad.ir.instructions import FCmp, Select
from irad.passes.mode import REVERSE
from tests.passes.units import generated, gradient, straight

LOOP = """
define i32 @f(ptr noalias %r, ptr noalias %e, ptr %x, ptr %y, i64 %n) {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %loop ]
  %sum = phi double [ 0.0, %entry ], [ %sum.next, %loop ]
  {body}
  %i.next = add nuw nsw i64 %i, 1
  %done = icmp eq i64 %i.next, %n
  br i1 %done, label %end, label %loop
end:
  store double %sum.next, ptr %r
  ret i32 0
}}
"""


def forms(text: str, kinds: str, **options: object) -> set[tuple[str, bool]]:
    """Of the guards: the predicate of the comparison, and whether it chooses what is compared."""
    return {(test.predicate, guard.operands[1] is test.operands[0]) for guard, test in guards(text, kinds, **options)}


def guards(text: str, kinds: str, **options: object) -> list[tuple[Select, FCmp]]:
    """The guards, with what they ask."""
    (made,) = generated(text, kinds, **options)
    selects = [inst for inst in made.pair[REVERSE].instructions() if isinstance(inst, Select)]
    found = [(inst, test) for inst in selects if isinstance(test := inst.operands[0], FCmp)]
    assert found
    return found


def body(elements: int) -> str:
    """A sum of products of some pairs of elements."""
    lines, total = list[str](), "%sum"
    for k in range(elements):
        lines += [
            f"%at{k} = add i64 %i, {k * 1000}",
            f"%p{k} = getelementptr double, ptr %x, i64 %at{k}",
            f"%q{k} = getelementptr double, ptr %y, i64 %at{k}",
            f"%a{k} = load double, ptr %p{k}",
            f"%b{k} = load double, ptr %q{k}",
            f"%c{k} = fmul double %a{k}, %b{k}",
            f"%s{k} = fadd double {total}, %c{k}",
        ]
        total = f"%s{k}"
    return "\n  ".join([*lines, f"%sum.next = fadd double {total}, -0.0"])


@pytest.mark.parametrize("options", [{}, {"strict": True}])
def test_straight_code(options: dict[str, object]):
    assert forms(straight("%z = fmul double %x, %y"), "scs", **options) == {("ueq", True)}


@pytest.mark.parametrize("options", [{"plan": "save_all"}, {"watches": True}])
def test_what_is_watched_and_the_oracle_stay(options: dict[str, object]):
    assert forms(straight("%z = fmul double %x, %y"), "scs", **options) == {("oeq", False)}


def test_loops_of_which_llvm_makes_vectors_stay():
    assert forms(LOOP.format(body=body(2)), "scssc") == {("oeq", False)}


def test_loops_that_store_a_lot():
    """They have much to do at once: no branches."""
    assert forms(LOOP.format(body=body(5)), "scssc", strict=True) == {("ueq", True)}
    assert not [
        guard for guard, _ in guards(LOOP.format(body=body(5)), "scssc", strict=True) if "prof" in guard.metadata
    ]
    assert all("prof" in guard.metadata for guard, _ in guards(LOOP.format(body=body(2)), "scssc"))


def test_zero_and_nan_stay_what_they_are():
    """A cotangent of zero meets an infinite partial derivative; one that is NaN a finite one."""
    unused = "%d = fdiv double 1.0, %x\n%c = fcmp one double %x, 0.0\n%z = select i1 %c, double %d, double %y"
    assert gradient(straight(unused), (0.0, 3.0)) == [0.0, 1.0]
    found = gradient(straight("%s = call double @exp(double %x)\n%z = fmul double %s, %y"), (1.0, math.nan))
    assert math.isnan(found[0])
    assert found[1] == math.exp(1.0)
