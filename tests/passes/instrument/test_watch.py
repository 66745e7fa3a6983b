from __future__ import annotations

from typing import Any

import pytest

from irad.ir.instructions import Call
from irad.ir.module import Function
from irad.passes.instrument.marks import MarkKind
from irad.passes.mode import AUGMENTED, REVERSE
from irad.passes.runtime import CHECKS, TIE
from tests.passes.units import derivative

TEXT = """
declare double @exp(double)
declare double @llvm.fabs.f64(double)

define i32 @f(ptr noalias %r, ptr noalias %e, ptr %a, i64 %n, double %k) {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %s = phi double [ 0.0, %entry ], [ %t, %loop ]
  %p = getelementptr double, ptr %a, i64 %i
  %x = load double, ptr %p
  {body}
  %t = fadd double %s, %y
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  store double %t, ptr %r
  ret i32 0
}}
"""


def marks_of(body: str, **options: Any):
    return derivative(TEXT.format(body=body), "scscc", **{"watches": True, **options}).program.marks


def words(body: str, kind: MarkKind) -> list[str]:
    return [mark.words for mark in marks_of(body) if mark.kind is kind]


def test_operations_of_both_sweeps():
    body = "%y = fdiv double %k, %x"
    assert words(body, MarkKind.VALUE)[:2] == ["{0} / {1}", "{0} + {1}"]  # what is recomputed may follow
    assert "{0} / {1}" in words(body, MarkKind.DERIVATIVE)
    assert {mark.primal for mark in marks_of(body) if mark.kind is MarkKind.DERIVATIVE} >= {"/"}


def test_functions_have_their_names():
    assert "exp({0})" in words("%y = call double @exp(double %x)", MarkKind.VALUE)


def test_loops_around():
    assert {len(mark.loops) for mark in marks_of("%y = fmul double %x, %x") if mark.kind is MarkKind.VALUE} == {1}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("%c = fcmp ogt double %x, %k\n%y = select i1 %c, double %x, double %k", ["{0} > {1}"]),
        ("%c = fcmp une double %x, 0.0\n%y = select i1 %c, double %x, double 1.0", ["{0} != {1}"]),
        ("%c = fcmp uno double %x, 0.0\n%y = select i1 %c, double 1.0, double %x", []),
        ("%c = fcmp ogt double %k, 2.0\n%y = select i1 %c, double %x, double 1.0", []),
        ("%y = call double @llvm.fabs.f64(double %x)", ["abs({0})"]),
        ("%y = fmul double %x, %x", []),
    ],
)
def test_choices(body, expected):
    assert words(body, MarkKind.TIE) == expected


def test_promises_that_there_are_no_nans_are_taken_back():
    made = derivative(TEXT.format(body="%y = fdiv fast double %k, %x"), "scscc", watches=True)
    pair = made.pairs[0].pair
    flags = {
        flag for f in (pair[AUGMENTED], pair[REVERSE]) for i in f.instructions() for flag in getattr(i, "flags", ())
    }
    assert not flags & {"fast", "nnan", "ninf"}
    assert "reassoc" in flags


def test_only_on_request():
    made = derivative(TEXT.format(body="%y = fdiv double %k, %x"), "scscc")
    assert made.program.marks == []
    assert "irad.places" not in made.program.module.globals
    pair = made.pairs[0].pair
    called = {
        i.callee.name
        for f in (pair[AUGMENTED], pair[REVERSE])
        for i in f.instructions()
        if isinstance(i, Call) and isinstance(i.callee, Function)
    }
    assert not called & {*CHECKS.values(), TIE}


@pytest.mark.parametrize(
    ("flags", "kept"),
    [("fast", "reassoc nsz arcp contract afn"), ("nnan ninf contract", "contract"), ("reassoc nsz", "reassoc nsz")],
)
def test_a_watched_operation_may_give_nan_and_infinity(flags: str, kept: str):
    made = derivative(TEXT.format(body=f"%y = fadd {flags} double %x, %k"), "scscc", watches=True)
    sums = [inst for inst in made.pairs[0].pair[AUGMENTED].instructions() if getattr(inst, "opcode", "") == "fadd"]
    assert sorted(kept.split()) in [sorted(inst.flags) for inst in sums]
    assert not any({"nnan", "ninf", "fast"} & set(inst.flags) for inst in sums)
