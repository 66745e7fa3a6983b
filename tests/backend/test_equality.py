from __future__ import annotations

import llvmlite.binding as llvm

from irad.backend import equality
from irad.backend.optimise import scalarise
from irad.frontend.numba.library import CPU

TEXT = """
define double @f(double %x, double %y) {
  %c = fcmp fast oeq double %x, 0x4000000000000000 , !dbg !0
  %d = fcmp une double %x,              %y
  %z = fcmp nsz oeq double %x, 0x0
  %l = fcmp olt double %x, %y
  %e = and i1 %c, %d
  %g = and i1 %z, %l
  %h = or i1 %e, %g
  %r = select i1 %h, double %x, double 1.0
  ret double %r
}
!0 = !{}
"""


def test_what_is_hidden():
    hidden = equality.hide(TEXT)
    assert "%c = call i1 @irad.fcmp.oeq.double(double %x, double 0x4000000000000000) , !dbg !0" in hidden
    assert "%d = call i1 @irad.fcmp.une.double(double %x, double %y)" in hidden
    assert "%z = fcmp oeq double %x, 0x0" in hidden
    assert "%l = fcmp olt double %x, %y" in hidden
    assert equality.reveal_decided(hidden) is None
    revealed = equality.reveal(hidden)
    assert "%c = fcmp oeq double %x, 0x4000000000000000 , !dbg !0" in revealed
    assert "irad." not in revealed


def test_a_module_without_comparisons_stays_the_same():
    text = "define double @f(double %x) {\n  ret double %x\n}\n"
    assert equality.hide(text) == text
    assert equality.reveal(text) == text


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


def test_a_comparison_that_inlining_decides_is_folded():
    for special, expected in (("1.0", "ret double %x"), ("2.0", "fmul double %x, %x")):
        text = scalarise(equality.hide(BRANCH.replace("SPECIAL", special)), ("f",), CPU)
        assert "irad." not in text
        assert "fcmp" not in text
        assert expected in text


def test_the_compared_number_is_not_replaced():
    text = scalarise(equality.hide(BRANCH.replace("SPECIAL", "%x")), ("f",), CPU)
    assert "fcmp oeq double %x, 1.0" in text
    assert "double 1.000000e+00" not in text.replace("fcmp oeq double %x, 1.000000e+00", "")
    llvm.parse_assembly(text).verify()
