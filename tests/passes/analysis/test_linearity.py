from __future__ import annotations

import pytest

from irad.errors import UnsupportedError, UnsupportedProgram
from tests.passes.units import DOUBLES, unit_of

HEAD = """
declare double @llvm.fma.f64(double, double, double)
declare double @llvm.sin.f64(double)
declare double @llvm.floor.f64(double)
declare i32 @numba_xxdot(i8, i8, i64, ptr, ptr, ptr)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
"""

BODY = """
define i32 @f(ptr noalias %r, ptr noalias %e, double %t, double %c, ptr noalias %p, ptr noalias %q) {{
entry:
  %s = load double, ptr %p
{body}
  store double %x, ptr %r
  ret i32 0
}}
"""


def check(body: str) -> None:
    """Analyses a function of an active number and a constant one, of active and of constant memory."""
    memory = [DOUBLES, None, None, None, DOUBLES, DOUBLES]
    unit_of(HEAD + BODY.format(body=body), "scacsc", memory, is_linear=True)


@pytest.mark.parametrize(
    "body",
    [
        "%x = fadd double %t, %s",
        "%x = fmul double %c, %t",
        "%x = fdiv double %s, %c",
        "%x = fneg double %t",
        "%b = fcmp ogt double %c, 0.0\n  %x = select i1 %b, double %t, double %s",
        "%x = call double @llvm.fma.f64(double %t, double %c, double %s)",
        "%a = call double @llvm.sin.f64(double %c)\n  %x = fmul double %a, %s",
        "call void @llvm.memcpy.p0.p0.i64(ptr %r, ptr %p, i64 8, i1 false)\n  %x = load double, ptr %r",
        "%k = call i32 @numba_xxdot(i8 100, i8 0, i64 3, ptr %p, ptr %q, ptr %r)\n  %x = load double, ptr %r",
    ],
)
def test_what_is_linear(body: str) -> None:
    check(body)


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("%x = fmul double %s, %t", "multiplies"),
        ("%x = fdiv double %c, %t", "divides"),
        ("%x = frem double %t, %c", "remainder"),
        ("%b = fcmp ogt double %t, 0.0\n  %x = select i1 %b, double %c, double 1.0", "compares"),
        ("%i = fptosi double %t to i64\n  %x = sitofp i64 %i to double", "to an integer"),
        ("%x = call double @llvm.fma.f64(double %t, double %s, double %c)", "takes fma"),
        ("%x = call double @llvm.sin.f64(double %t)", "takes sin"),
        ("%x = call double @llvm.floor.f64(double %t)", "takes floor"),
        ("%k = call i32 @numba_xxdot(i8 100, i8 0, i64 3, ptr %p, ptr %p, ptr %r)\n  %x = load double, ptr %r", "dot"),
    ],
)
def test_what_is_refused(body: str, problem: str) -> None:
    with pytest.raises(UnsupportedError, match=f"not linear: .*{problem}"):
        check(body)


def test_all_faults_are_named() -> None:
    with pytest.raises(UnsupportedProgram) as caught:
        check("%y = fmul double %s, %t\n  %x = call double @llvm.sin.f64(double %y)")
    assert [each.instruction.name for each in caught.value.errors if each.instruction is not None] == ["y", "x"]
