"""Which programs a caller may run twice, and which derivatives gain by it."""

from __future__ import annotations

import pytest

from irad.passes.analysis.speculation import may_speculate, written_parameters
from tests.passes.units import DOUBLES, POINTERS, unit_of

TEXT = """
declare ptr @llvm.stacksave.p0()
declare void @llvm.stackrestore.p0(ptr)
declare double @llvm.exp.f64(double)
declare i32 @rand()
declare void @NRT_incref(ptr)

define i32 @f(ptr noalias %r, ptr noalias %e, ptr %a, ptr %header, double %x) {{
entry:
  %local = alloca double
  {body}
  {result}
  store double %y, ptr %r
  ret i32 0
raise:
  %ignored = call i32 @rand()
  ret i32 1
}}

define internal double @draws(double %x) noinline {{
  %n = call i32 @rand()
  ret double %x
}}

define internal double @is_never_nan(double %x) noinline {{
  %s = fadd nnan double %x, 1.0
  ret double %s
}}

define internal double @stores(double %x) noinline {{
  store double %x, ptr inttoptr (i64 64 to ptr)
  ret double %x
}}

define internal double @adds(double %x) noinline {{
  %s = fadd double %x, 1.0
  ret double %s
}}
"""
SQUARE = "%y = fmul double %x, %x"


MEMORY = [DOUBLES, POINTERS, DOUBLES, POINTERS, None]


def entry_of(body: str = "", result: str = SQUARE, *, speculates: bool = True):
    return unit_of(TEXT.format(body=body, result=result), "scsca", MEMORY, speculates=speculates)


@pytest.mark.parametrize(
    "body",
    [
        "",
        "%s = call ptr @llvm.stacksave.p0()\n  call void @llvm.stackrestore.p0(ptr %s)",
        "call void @NRT_incref(ptr %header)",
        "store double %x, ptr %local\n  %l = load double, ptr %local",
        "%l = load double, ptr %a",
        "%s = call double @adds(double %x)",
        "%c = fcmp ogt double %x, 0.0\n  br i1 %c, label %go, label %raise\ngo:",
        "store double 0.0, ptr %r",
    ],
)
def test_what_may_run_twice(body: str):
    assert may_speculate(entry_of(body))
    assert not may_speculate(entry_of(body, speculates=False))


@pytest.mark.parametrize(
    "body",
    [
        "store double %x, ptr %a",
        "store double %x, ptr inttoptr (i64 64 to ptr)",
        "store double %x, ptr getelementptr (double, ptr inttoptr (i64 64 to ptr), i64 1)",
        "%n = call i32 @rand()",
        "%s = fadd nnan double %x, 1.0",
        *(f"%s = call double @{callee}(double %x)" for callee in ("draws", "is_never_nan", "stores")),
    ],
)
def test_what_may_not(body: str):
    assert not may_speculate(entry_of(body))


@pytest.mark.parametrize(
    ("result", "gains"),
    [
        (SQUARE, True),
        ("%l = load double, ptr %a\n  %y = fdiv double %l, %x", True),
        ("%y = call double @llvm.exp.f64(double %x)", True),
        ("%y = fmul double %x, 2.0", False),
        ("%y = fadd double %x, 2.0", False),
        ("%c = sitofp i32 2 to double\n  %z = fmul double %c, %c\n  %y = fadd double %z, %x", False),
    ],
)
def test_a_derivative_without_guards_gains_nothing(result: str, gains: bool):
    assert may_speculate(entry_of(result=result)) is gains


def test_parameters_that_are_written():
    assert list(written_parameters(entry_of())) == [0]
    assert list(written_parameters(entry_of("store double 0.0, ptr %a"))) == [0, 2]
    assert list(written_parameters(entry_of("%p = load ptr, ptr %header\n  store double 0.0, ptr %p"))) == [0, 3]
