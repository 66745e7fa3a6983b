from __future__ import annotations

import pytest

from irad.ir.instructions import Call
from tests.passes.units import gradient, parsed, straight, value

CALLS = """
declare double @hypot(double, double)
declare float @hypotf(float, float)
declare double @llvm.sqrt.f64(double)
define double @f(double %x, double %y, double %c, i1 %b) {
  %h = call double @hypot(double %x, double %y)
  %s = call double @llvm.sqrt.f64(double %x)
"""


def passed_through(body: str) -> list[str]:
    """The functions that values are passed through in a function with a length `%h` and a root `%s`."""
    _, f = parsed(f"{CALLS}{body}\n  ret double %z\n}}")
    names = [str(inst.callee.name) for inst in f.instructions() if isinstance(inst, Call)]
    return [name.removeprefix("irad_as_") for name in names if name.startswith("irad_as_")]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("%z = fmul double %h, %h", ["squared_length_f64"]),
        ("%z = fmul double %s, %s", ["squared_root_f64"]),
        ("%m = fdiv double %h, %c  %z = fmul double %m, %m", ["squared_length_f64"]),
        ("%n = fneg double %s  %m = fmul double %c, %n  %z = fmul double %m, %m", ["squared_root_f64", "identity_f64"]),
        ("%m = fmul double %c, %h  %z = fmul double %h, %m", ["squared_length_f64", "identity_f64"]),
        ("%m = fmul double %s, %s  %z = fmul double %m, %s", ["squared_root_f64"]),
        ("%m = fmul double %h, %h  %z = fmul double %m, %m", ["squared_length_f64"]),
        # no squares of a root
        ("%z = fmul double %h, %s", []),
        ("%m = fdiv double %c, %h  %z = fmul double %m, %m", []),
        ("%m = fadd double %h, 1.0  %z = fmul double %m, %m", []),
        ("%m = select i1 %b, double %h, double %c  %z = fmul double %m, %m", []),
    ],
)  # fmt: skip
def test_which_products_are_squares(body: str, expected: list[str]):
    assert passed_through(body.replace("  ", "\n")) == expected


def test_the_square_itself_is_computed_as_before():
    _, f = parsed(f"{CALLS} %p = fmul double %h, %h\n %z = fadd double %p, %p\n ret double %z\n}}")
    product, total = value(f, "p"), value(f, "z")
    (passed,) = product.users
    assert passed.operands[:3] == [product, *f.params[:2]]
    assert total.operands == [passed, passed]


def test_single_precision():
    _, f = parsed("""
    declare float @hypotf(float, float)
    define float @f(float %x, float %y) {
      %h = call float @hypotf(float %x, float %y)
      %p = fmul float %h, %h
      ret float %p
    }""")
    assert [inst.name for inst in f.instructions()][:2] == ["h", "p"]
    assert len(list(f.instructions())) == 4


ROOT = "declare double @llvm.sqrt.f64(double)\ndeclare double @hypot(double, double)\n"


@pytest.mark.parametrize("plan", ["minimum_cut", "save_all"])
@pytest.mark.parametrize(
    ("body", "at_zero", "at_large"),
    [
        ("%s = call double @llvm.sqrt.f64(double %x)\n %z = fmul double %s, %s", [1.0, 0.0], [1.0, 0.0]),
        ("%h = call double @hypot(double %x, double %y)\n %z = fmul double %h, %h", [0.0, 0.0], [2e200, 4e-200]),
        (
            "%h = call double @hypot(double %x, double %y)\n %m = fdiv double %h, 1.0e200\n %z = fmul double %m, %m",
            [0.0, 0.0],
            [2e-200, 0.0],
        ),
    ],
)
def test_derivatives_at_zero_and_far_out(body: str, at_zero: list[float], at_large: list[float], plan: str):
    """The square of a factor alone would be infinite."""
    assert gradient(ROOT + straight(body), (0.0, 0.0), plan=plan) == at_zero
    assert gradient(ROOT + straight(body), (1e200, 2e-200), plan=plan) == pytest.approx(at_large, rel=1e-14, abs=0.0)
