"""Forward mode of programs in C and C++ whose own checks say whether tangents are right, and what is refused there."""

from __future__ import annotations

from pathlib import Path

import pytest

from irad.errors import IradError
from tests.raw.toolchain import bitcode_of, differentiated, in_turn, name_of, needs_clang, programs_in, run

pytestmark = needs_clang

PROGRAMS = programs_in("forward")
IN_TURN, OTHERS = in_turn(PROGRAMS)


@pytest.mark.parametrize(("path", "level"), IN_TURN, ids=name_of)
def test_tangent(path: Path, level: int, tmp_path: Path):
    check(path, level, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(("path", "level"), OTHERS, ids=name_of)
def test_tangent_at_the_other_levels(path: Path, level: int, tmp_path: Path):
    check(path, level, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("path", PROGRAMS, ids=name_of)
def test_tangent_by_the_oracle_plan(path: Path, tmp_path: Path):
    check(path, 1, tmp_path, plan="save_all")


def check(path: Path, level: int, folder: Path, plan: str = "default") -> None:
    """Asserts that the program's own checks pass, and that nothing asks for a derivative any more."""
    made = differentiated(bitcode_of(path, level, folder), plan)
    names = {function.name for function in made.module.functions}
    assert not [name for name in names if "_fwddiff" in name]
    done = run(made, folder)
    assert (done.returncode, done.stderr) == (0, "")


# ------------------------------------------------------------------------------------------------ refusals

HEAD = """\
extern int enzyme_dup, enzyme_const, enzyme_out, enzyme_primal_return;
int enzyme_width, enzyme_dupv;
double __enzyme_fwddiff(void *, ...);
float __irad_fwddiff_float(void *, ...);
void *__irad_fwddiff_pointer(void *, ...);
double __enzyme_autodiff(void *, ...);
"""
# name → (source, what the message says, what it says to do, text of the line it names)
CASES = {
    "number of tangents known at run time": (
        "double f(double x) { return x; }\n"
        "double use(double x, int n) { return __enzyme_fwddiff((void *)f, enzyme_width, n, x, 1.0, 2.0); }",
        "does not say how many tangents",
        "followed by a literal",
        "enzyme_width",
    ),
    "fewer tangents than there are directions": (
        "double f(double x) { return x; }\n"
        "double use(double x) { return __enzyme_fwddiff((void *)f, enzyme_width, 2, x, 1.0); }",
        "argument 1 of f is a number without its tangent in each of 2 directions",
        "pass its tangent after it",
        "enzyme_width",
    ),
    "room for one tangent of several": (
        "double f(double x) { return x; }\n"
        "double use(double x) { return __enzyme_fwddiff((void *)f, enzyme_width, 2, x, 1.0, 2.0); }",
        "the tangent of f returns double, not double and double",
        "a structure of double, double",
        "enzyme_width",
    ),
    "distance between tangents of a number": (
        "double f(double x) { return x; }\n"
        "double use(double x) { return __enzyme_fwddiff((void *)f, enzyme_width, 2, enzyme_dupv, 8, x, 1.0); }",
        "argument 1 of f is not a pointer",
        "each shadow or tangent",
        "enzyme_width",
    ),
    "value of a gradient": (
        "double f(double x) { return x; }\n"
        "double use(double x) { return __enzyme_autodiff((void *)f, enzyme_primal_return, x); }",
        "does not know the marker enzyme_primal_return",
        "only __enzyme_fwddiff returns both",
        "enzyme_primal_return",
    ),
    "marker of reverse mode": (
        "double f(double x) { return x; }\ndouble use(double x) { return __enzyme_fwddiff((void *)f, enzyme_out, x); }",
        "argument 1 of f is marked enzyme_out, which is for reverse mode",
        "pass its tangent after it",
        "enzyme_out",
    ),
    "number without a tangent": (
        "double f(double x) { return x; }\ndouble use(double x) { return __enzyme_fwddiff((void *)f, x); }",
        "argument 1 of f is a number without its tangent",
        "put enzyme_const before it",
        "(void *)f, x",
    ),
    "integer for a tangent": (
        "double f(double x) { return x; }\ndouble use(double x) { return __enzyme_fwddiff((void *)f, x, 1); }",
        "argument 1 of f is a number without its tangent",
        "as a floating-point number",
        "(void *)f, x",
    ),
    "pointer without a shadow": (
        "double f(double *x) { return *x; }\ndouble use(double *x) { return __enzyme_fwddiff((void *)f, x); }",
        "a pointer without its shadow",
        "put enzyme_const before it",
        "(void *)f, x",
    ),
    "too many arguments": (
        "double f(double x) { return x; }\ndouble use(double x) { return __enzyme_fwddiff((void *)f, x, 1.0, 2.0); }",
        "passes more than its 1 parameters",
        "its tangent or shadow",
        "(void *)f, x",
    ),
    "too few arguments": (
        "double f(double x, double y) { return x * y; }\n"
        "double use(double x) { return __enzyme_fwddiff((void *)f, x, 1.0); }",
        "has 2 parameters",
        "its tangent or shadow",
        "(void *)f, x",
    ),
    "result of another type": (
        "double f(double x) { return x; }\nfloat use(double x) { return __irad_fwddiff_float((void *)f, x, 1.0); }",
        "the tangent of f returns float, not double",
        "returns double",
        "(void *)f, x",
    ),
    "value that the call has no room for": (
        "double f(double x) { return x; }\n"
        "double use(double x) { return __enzyme_fwddiff((void *)f, enzyme_primal_return, x, 1.0); }",
        "the tangent of f returns double, not double and double",
        "a structure of double, double",
        "(void *)f, enzyme_primal_return",
    ),
    "structure that is too small": (
        "typedef struct { double x[4]; } Four; typedef struct { double x[3]; } Three;\n"
        "Three __irad_fwddiff_three(void *, ...);\nFour f(double x) { return (Four){{x, x, x, x}}; }\n"
        "double use(double x) { return __irad_fwddiff_three((void *)f, x, 1.0).x[0]; }",
        "returns double and double and double, not double and double and double and double",
        "a structure of double, double, double, double",
        "(void *)f, x",
    ),
    "pointer that is returned": (
        "double *f(double *x) { return x + 1; }\n"
        "void *use(double *x, double *dx) { return __irad_fwddiff_pointer((void *)f, x, dx); }",
        "f returns ptr, which has no tangent to return",
        "write the results to memory",
        "(void *)f, x",
    ),
    "result without numbers": (
        "int f(double x) { return x > 1; }\n"
        "double use(double x) { return __enzyme_fwddiff((void *)f, enzyme_primal_return, x, 1.0); }",
        "which has no tangent to return",
        "return a number",
        "(void *)f, enzyme_primal_return",
    ),
    "structure of floats in a register": (
        "typedef struct { float a, b; } S;\nfloat f(S s) { return s.a * s.b; }\n"
        "float use(S s, S ds) { return __irad_fwddiff_float((void *)f, enzyme_dup, s, ds); }",
        "argument 1 of f is not a pointer, so it has no shadow",
        "mark it enzyme_const",
        "(void *)f, enzyme_dup, s",
    ),
    "function without a rule": (
        "double other(double);\ndouble f(double x) { return other(x); }\n"
        "double use(double x) { return __enzyme_fwddiff((void *)f, x, 1.0); }",
        "no derivative rule for a call to other",
        "in reverse mode: __irad_autodiff",
        "return other(x)",
    ),
    "hand-written derivative": (
        "double f(double x);\ndouble fa(double x);\ndouble fr(double x, double ct);\n"
        "void *__enzyme_register_gradient_f[] = {(void *)f, (void *)fa, (void *)fr};\n"
        "double g(double x) { return f(x) * x; }\n"
        "double use(double x) { return __enzyme_fwddiff((void *)g, x, 1.0); }",
        "f has a rule for reverse mode only",
        "__irad_autodiff",
        "return f(x)",
    ),
    "tangent of a tangent": (
        "double f(double x) { return x * x; }\ndouble g(double x) { return __enzyme_fwddiff((void *)f, x, 1.0); }\n"
        "double use(double x) { return __enzyme_fwddiff((void *)g, x, 1.0); }",
        "asks for a derivative itself",
        "",
        "(void *)f, x",
    ),
    "active value in a constant array": (
        "double f(double x, double *work) { work[0] = x * x; return work[0]; }\n"
        "double use(double x, double *w) { return __enzyme_fwddiff((void *)f, x, 1.0, enzyme_const, w); }",
        "was passed as constant",
        "enzyme_dup",
        "work[0] = x * x",
    ),
}


@pytest.mark.parametrize("level", [0, 2])
@pytest.mark.parametrize("name", CASES)
def test_refusal(name: str, level: int, tmp_path: Path):
    source, message, remedy, line = CASES[name]
    path = tmp_path / "source.c"
    path.write_text(HEAD + source)
    with pytest.raises(IradError) as caught:
        differentiated(bitcode_of(path, level, tmp_path, "-g"))
    text = str(caught.value)
    assert message in text
    assert remedy in " ".join(text.split("  do  ")[1].split())
    assert line in text
    assert "source.c:" in text
    assert "irad.grad" not in text, "remedies for C"
    assert "irad.rules" not in text
