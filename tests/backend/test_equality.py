from __future__ import annotations

import llvmlite.binding as llvm
import pytest

from irad.backend import equality
from irad.backend.optimise import scalarise
from irad.frontend.numba.library import CPU

TEXT = """
define double @f(double %x, double %y) {
  %c = fcmp fast oeq double %x, 0x4000000000000000 , !dbg !0
  %d = fcmp une double %x,              %y
  %z = fcmp nsz oeq double 0x0, %x
  %l = fcmp nnan olt double %x, %y
  %g = fcmp ole double %x, %y
  %n = fcmp uno double %x, %y
  ret double %x
}
!0 = !{}
"""


def test_what_is_hidden():
    hidden = equality.hide(TEXT)
    copy = "  %irad.same.{} = call double @llvm.arithmetic.fence.f64(double {})\n"
    for line in (
        copy.format(0, "%x") + "  %c = fcmp oeq double %irad.same.0, 0x4000000000000000 , !dbg !0\n",
        copy.format(1, "%x") + copy.format(2, "%y") + "  %d = fcmp une double %irad.same.1, %irad.same.2\n",
        copy.format(3, "%x") + "  %z = fcmp oeq double 0x0, %irad.same.3\n",
        copy.format(4, "%x") + "  %l = fcmp nnan olt double %irad.same.4, %y\n",
        copy.format(5, "%y") + "  %g = fcmp ole double %x, %irad.same.5\n",
        "\n  %n = fcmp uno double %x, %y\n",
    ):
        assert line in hidden
    llvm.parse_assembly(hidden).verify()
    assert equality.reveal_decided(hidden) is None
    revealed = equality.reveal(hidden)
    assert "%c = fcmp oeq double %x, 0x4000000000000000 , !dbg !0" in revealed
    assert "%g = fcmp ole double %x, %y" in revealed
    assert "irad." not in revealed
    assert "fence" not in revealed


def test_a_module_without_comparisons_stays_the_same():
    text = "define double @f(double %x) {\n  ret double %x\n}\n"
    assert equality.hide(text) == text
    assert equality.reveal(text) == text


def test_the_program_keeps_its_own_fences():
    text = """
declare double @llvm.arithmetic.fence.f64(double)
define i1 @f(double %x) {
  %y = call double @llvm.arithmetic.fence.f64(double %x)
  %c = fcmp olt double %y, 1.0
  ret i1 %c
}
"""
    hidden = equality.hide(text)
    llvm.parse_assembly(hidden).verify()
    assert equality.reveal(hidden).strip() == text.strip()


BRANCH = """
define double @callee(double %x, double %special) {
  %c = fcmp oeq double %special, 1.0
  br i1 %c, label %yes, label %no
yes:
  ret double %x
no:
  %r = fmul double %x, %x
  ret double %r
}
define double @f(double %x) {
  %r = call double @callee(double %x, double SPECIAL)
  ret double %r
}
"""


@pytest.mark.parametrize(
    ("predicate", "special", "expected"),
    [("oeq", "1.0", "ret double %x"), ("oeq", "2.0", "fmul double %x, %x"), ("olt", "0.5", "ret double %x")],
)
def test_a_comparison_that_inlining_decides_is_folded(predicate, special, expected):
    text = BRANCH.replace("SPECIAL", special).replace("oeq", predicate)
    text = scalarise(text, ("f",), CPU)
    assert "irad." not in text
    assert "fcmp" not in text
    assert expected in text


def test_the_compared_number_is_not_replaced():
    text = scalarise(BRANCH.replace("SPECIAL", "%x"), ("f",), CPU)
    assert "fcmp oeq double %x, 1.0" in text
    assert "double 1.000000e+00" not in text.replace("fcmp oeq double %x, 1.000000e+00", "")
    llvm.parse_assembly(text).verify()


CHOICE = """
define double @f(double %x, double %y) {
  %a = fcmp fast A
  %b = fcmp fast B
  %c = and i1 %a, %b
  br i1 %c, label %yes, label %no
yes:
  %r = call double @llvm.sin.f64(double %x)
  ret double %r
no:
  ret double %y
}
declare double @llvm.sin.f64(double)
"""


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("oge double %x, 2.0", "ole double %x, 2.0"),
        ("ule double %x, 2.0", "uge double %x, 2.0"),
        ("ole double %x, %y", "oge double %x, %y"),
        ("ole double %y, %x", "ole double %x, %y"),
        ("ule double %x, %y", "uge double %x, %y"),
    ],
)
def test_two_orders_pin_no_number(a, b):
    text = scalarise(CHOICE.replace("A\n", f"{a}\n").replace("B\n", f"{b}\n"), ("f",), CPU)
    assert "@llvm.sin.f64(double %x)" in text


def test_branches_become_selections():
    text = """
define double @f(double %x, double %y) {
  %c = fcmp olt double %x, %y
  br i1 %c, label %yes, label %no
yes:
  %d = fcmp ogt double %x, 1.0
  br i1 %d, label %both, label %no
both:
  %r = fmul double %x, %x
  br label %no
no:
  %s = phi double [ %r, %both ], [ %y, %yes ], [ %y, %0 ]
  ret double %s
}
"""
    text = scalarise(text, ("f",), CPU)
    assert "br i1" not in text
    assert "select" in text
