"""What cannot be differentiated is refused with the line, or without debug information in words, and a way out."""

from __future__ import annotations

from pathlib import Path

import pytest

from irad.errors import BackendError, IradError
from irad.frontend.raw.differentiate import differentiate
from irad.frontend.raw.read import parse, read_module
from irad.options import Options
from tests.raw.toolchain import bitcode_of, differentiated, needs_clang

pytestmark = needs_clang

HEAD = """\
#include <stdlib.h>
#include <string.h>
extern int enzyme_dup, enzyme_const, enzyme_out, enzyme_width;
double __enzyme_autodiff(void *, ...);
float __irad_autodiff_float(void *, ...);
double __enzyme_fwddiff(void *, ...);
"""
# name → (source, what the message says, text of the line it names)
CASES = {
    "unknown function": (
        "double other(double);\ndouble f(double x) { return other(x); }\n"
        "double use(double x) { return __enzyme_autodiff((void *)f, x); }",
        "no derivative rule for a call of other",
        "return other(x)",
    ),
    "inline assembly": (
        'double f(double x) { double y; __asm__("sqrtsd %1, %0" : "=x"(y) : "x"(x)); return y; }\n'
        "double use(double x) { return __enzyme_autodiff((void *)f, x); }",
        "inline assembly",
        "__asm__",
    ),
    "computed goto": (
        "double f(double x, int n) { static void *labels[] = {&&a, &&b}; goto *labels[n];\n"
        "a: return x;\nb: return x * x; }\n"
        "double use(double x, int n) { return __enzyme_autodiff((void *)f, x, n); }",
        "a computed goto has no derivative",
        "in f",
    ),
    "long double": (
        "double f(double x) { long double y = x; return y * y; }\n"
        "double use(double x) { return __enzyme_autodiff((void *)f, x); }",
        "x86_fp80",
        "long double y",
    ),
    "bytes that may be numbers": (
        "void f(void *x, void *y, long n) { memcpy(y, x, n); }\n"
        "void use(void *x, void *dx, void *y, void *dy) { __enzyme_autodiff((void *)f, x, dx, y, dy, 8L); }",
        "nothing tells whether numbers are in it",
        "memcpy",
    ),
    "eight bytes that may be a number": (
        "void f(void *x, void *y) { memcpy(y, x, 8); }\n"
        "void use(void *x, void *dx, void *y, void *dy) { __enzyme_autodiff((void *)f, x, dx, y, dy); }",
        "nothing tells whether numbers are in it",
        "memcpy",
    ),
    "memory of the caller reallocated": (
        "double f(double **x, int n) { *x = realloc(*x, 2 * n * sizeof(double)); return (*x)[0] * (*x)[0]; }\n"
        "void use(double **x, double **dx) { __enzyme_autodiff((void *)f, x, dx, 3); }",
        "how large the shadow is",
        "realloc",
    ),
    "second derivative": (
        "double f(double x) { return x * x; }\n"
        "double g(double x) { return __enzyme_autodiff((void *)f, x); }\n"
        "double use(double x) { return __enzyme_autodiff((void *)g, x); }",
        "asks for a derivative itself",
        "(void *)f, x",
    ),
    "forward mode": (
        "double f(double x) { return x * x; }\ndouble use(double x) { return __enzyme_fwddiff((void *)f, x, 1.0); }",
        "asks for forward mode",
        "fwddiff",
    ),
    "no shadow": (
        "double f(double *x) { return *x; }\ndouble use(double *x) { return __enzyme_autodiff((void *)f, x); }",
        "a pointer without its shadow",
        "(void *)f, x",
    ),
    "too few arguments": (
        "double f(double x, double y) { return x * y; }\n"
        "double use(double x) { return __enzyme_autodiff((void *)f, x); }",
        "has 2 parameters",
        "(void *)f, x",
    ),
    "too many arguments": (
        "double f(double x) { return x; }\ndouble use(double x) { return __enzyme_autodiff((void *)f, x, 3); }",
        "gives more than its 1 parameters take",
        "(void *)f, x",
    ),
    "unknown marker": (
        "double f(double x) { return x; }\n"
        "double use(double x) { return __enzyme_autodiff((void *)f, enzyme_width, 2, x); }",
        "does not know the marker enzyme_width",
        "enzyme_width",
    ),
    "result of another type": (
        "double f(double x) { return x; }\nfloat use(double x) { return __irad_autodiff_float((void *)f, x); }",
        "returns float, its arguments' derivatives are double",
        "(void *)f, x",
    ),
    "pointer marked out": (
        "double f(double *x) { return *x; }\n"
        "double use(double *x) { return __enzyme_autodiff((void *)f, enzyme_out, x); }",
        "is no floating-point number",
        "enzyme_out",
    ),
    "function of another module": (
        "double f(double);\ndouble use(double x) { return __enzyme_autodiff((void *)f, x); }",
        "is not defined in this module",
        "(void *)f, x",
    ),
    "function that is not known": (
        "double use(double x, void *f) { return __enzyme_autodiff(f, x); }",
        "is not known where the derivative is asked for",
        "autodiff(f, x)",
    ),
    "variable arguments": (
        "double f(double x, ...) { return x; }\ndouble use(double x) { return __enzyme_autodiff((void *)f, x); }",
        "takes a variable number of arguments",
        "(void *)f, x",
    ),
    "structure by value": (
        "struct S { double a[4]; };\ndouble f(struct S s) { return s.a[0]; }\n"
        "double use(struct S s) { return __enzyme_autodiff((void *)f, s); }",
        "passed or returned by value",
        "(void *)f, s",
    ),
    "active value in a constant array": (
        "double f(double x, double *work) { work[0] = x * x; return work[0]; }\n"
        "double use(double x, double *w) { return __enzyme_autodiff((void *)f, x, enzyme_const, w); }",
        "was passed as constant",
        "work[0] = x * x",
    ),
    "active value in a global variable": (
        "double work[4];\ndouble f(double x, int i) { work[i] = x * x; return work[1]; }\n"
        "double use(double x, int i) { return __enzyme_autodiff((void *)f, x, i); }",
        "was passed as constant",
        "work[i] = x * x",
    ),
    "derivative by hand that does not fit": (
        "double f(double x) { return x; }\ndouble fa(double x) { return x; }\nvoid fr(double x) {}\n"
        "void *__enzyme_register_gradient_f[] = {(void *)f, (void *)fa, (void *)fr};\n"
        "double use(double x) { return __enzyme_autodiff((void *)f, x); }",
        "fr, the reverse of f, does not take (double, double)",
        "",
    ),
}
CATCHING = """\
extern "C" double __enzyme_autodiff(void *, ...);
__attribute__((noinline)) static double g(double x) { if (x < 0) throw 3; return x * x; }
double f(double x) {
    try { return g(x); } catch (int k) { return x * k; }
}
double use(double x) { return __enzyme_autodiff((void *)f, x); }
"""


def refusal(source: str, folder: Path, *flags: str, suffix: str = ".c", level: int = 1) -> IradError:
    """The error that a source is refused with."""
    path = folder / f"source{suffix}"
    path.write_text(source)
    bitcode = bitcode_of(path, level, folder, *flags)
    with pytest.raises(IradError) as caught:
        differentiated(bitcode)
    return caught.value


@pytest.mark.parametrize("level", [0, 2])
@pytest.mark.parametrize("name", CASES)
def test_refusal(name: str, level: int, tmp_path: Path):
    source, message, line = CASES[name]
    text = str(refusal(HEAD + source, tmp_path, "-g", level=level))
    assert message in text
    assert line in text
    assert "  do  " in text
    assert ("source.c:" in text) == bool(line)
    assert len(text.splitlines()) <= 25


def test_exceptions_are_not_caught(tmp_path: Path):
    error = refusal(CATCHING, tmp_path, "-g", suffix=".cpp")
    assert "an exception is caught" in error.problem
    assert error.location is not None
    assert error.location.line in (3, 4, 5)


def test_without_debug_information_the_place_is_told_in_words(tmp_path: Path):
    assert "in  a call of other in f (compile with -g to see the line)" in str(
        refusal(HEAD + CASES["unknown function"][0], tmp_path)
    )


def test_several_errors_come_at_once(tmp_path: Path):
    source = HEAD + (
        "double other(double);\ndouble f(double x) { return other(x); }\ndouble g(double *x) { return *x; }\n"
        "double use(double x) { return __enzyme_autodiff((void *)f, x) + __enzyme_autodiff((void *)f, 2 * x); }"
    )
    assert str(refusal(source, tmp_path, "-g")).count("no derivative rule") == 1  # the same twice is told once


def test_nothing_to_do(tmp_path: Path):
    assert "nothing in this module asks for a derivative" in refusal("int f(void) { return 1; }", tmp_path).problem


# ------------------------------------------------------------------------------------------------ files


def test_files_that_cannot_be_read(tmp_path: Path):
    with pytest.raises(BackendError, match="cannot read"):
        read_module(tmp_path / "missing.ll")
    (tmp_path / "wrong.ll").write_text("define nonsense")
    with pytest.raises(BackendError, match=r"cannot read .*wrong\.ll"):
        read_module(tmp_path / "wrong.ll")
    (tmp_path / "wrong.bc").write_bytes(b"BC\xc0\xde" + b"nonsense")
    with pytest.raises(BackendError, match=r"cannot read .*wrong\.bc"):
        read_module(tmp_path / "wrong.bc")


def test_targets_that_irad_does_not_know(tmp_path: Path):
    (tmp_path / "big.ll").write_text('target datalayout = "E-m:e-i64:64"\ntarget triple = "powerpc64-linux-gnu"\n')
    with pytest.raises(IradError, match="big-endian"):
        read_module(tmp_path / "big.ll")
    (tmp_path / "small.ll").write_text('target datalayout = "e-p:32:32"\ntarget triple = "i686-linux-gnu"\n')
    with pytest.raises(IradError, match="64-bit pointers"):
        read_module(tmp_path / "small.ll")


def test_text_with_typed_pointers_is_read():
    text = "define double @f(double* %p) {\n  %v = load double, double* %p\n  ret double %v\n}\n"
    assert "load double, ptr %p" in str(parse(text.encode(), "typed"))
    with pytest.raises(BackendError, match="asks for a derivative"):
        differentiate(str(parse(text.encode(), "typed")), Options())
