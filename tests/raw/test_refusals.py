"""What cannot be differentiated is refused with the line, or without debug information in words, and a way out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from irad.errors import BackendError, IradError
from irad.frontend.numba.library import CPU
from irad.options import Options
from irad.raw.differentiate import differentiate
from irad.raw.files import parse, read_module
from tests.raw.toolchain import bitcode_of, differentiated, needs_clang

pytestmark = needs_clang

HEAD = """\
#include <stdlib.h>
#include <string.h>
extern int enzyme_dup, enzyme_const, enzyme_out, enzyme_tape, enzyme_width;
double __enzyme_autodiff(void *, ...);
float __irad_autodiff_float(void *, ...);
double __enzyme_virtualreverse(void *, ...);
"""
# name → (source, what the message says, text of the line it names)
CASES = {
    "unknown function": (
        "double other(double);\ndouble f(double x) { return other(x); }\n"
        "double use(double x) { return __enzyme_autodiff((void *)f, x); }",
        "no derivative rule for a call to other",
        "return other(x)",
    ),
    "inline assembly": (
        'double f(double x) { double y; __asm__("sqrtsd %1, %0" : "=x"(y) : "x"(x)); return y; }\n'
        "double use(double x) { return __enzyme_autodiff((void *)f, x); }",
        "inline assembly has no derivative",
        "__asm__",
    ),
    "computed goto": (
        "double f(double x, int n) { static void *labels[] = {&&a, &&b}; goto *labels[n];\n"
        "a: return x;\nb: return x * x; }\n"
        "double use(double x, int n) { return __enzyme_autodiff((void *)f, x, n); }",
        "a computed goto has no derivative",
        "in f",
    ),
    "memory behind a segment register": (
        "double f(double x, __attribute__((address_space(257))) double *own) {\n    return x * *own; }\n"
        "double use(double x, __attribute__((address_space(257))) double *own) {\n"
        "    return __enzyme_autodiff((void *)f, x, enzyme_const, own); }",
        "a pointer to address space 257 is used",
        "x * *own",
    ),
    "a shadow in another address space": (
        "double f(__attribute__((address_space(1))) double *x) { return *x; }\n"
        "double use(__attribute__((address_space(1))) double *x, double *dx) {\n"
        "    return __enzyme_autodiff((void *)f, x, dx); }",
        "the shadow of argument 1 of f is a ptr, and not a ptr addrspace(1)",
        "(void *)f, x, dx",
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
        "irad cannot tell whether it holds numbers",
        "memcpy",
    ),
    "eight bytes that may be a number": (
        "void f(void *x, void *y) { memcpy(y, x, 8); }\n"
        "void use(void *x, void *dx, void *y, void *dy) { __enzyme_autodiff((void *)f, x, dx, y, dy); }",
        "irad cannot tell whether it holds numbers",
        "memcpy",
    ),
    "more bytes than the structure has": (
        "typedef struct { double w; int kind; } S;\n"
        "void f(const S *x, void *y, long n) { memcpy(y, x, n); ((S *)y)->w *= x->kind; }\n"
        "void use(S *x, S *dx, S *y, S *dy, long n) { __enzyme_autodiff((void *)f, x, dx, y, dy, n); }",
        "irad cannot tell whether it holds numbers",
        "memcpy",
    ),
    "memory of the caller reallocated": (
        "double f(double **x, int n) { *x = realloc(*x, 2 * n * sizeof(double)); return (*x)[0] * (*x)[0]; }\n"
        "void use(double **x, double **dx) { __enzyme_autodiff((void *)f, x, dx, 3); }",
        "how large that shadow is",
        "realloc",
    ),
    "second derivative": (
        "double f(double x) { return x * x; }\n"
        "double g(double x) { return __enzyme_autodiff((void *)f, x); }\n"
        "double use(double x) { return __enzyme_autodiff((void *)g, x); }",
        "asks for a derivative itself",
        "(void *)f, x",
    ),
    "inactive function that overwrites": (
        '__attribute__((annotate("enzyme_inactive"), noinline)) static void reset(double *x) { *x = 5; }\n'
        "double f(double *x) {\n    double a = *x;\n    reset(x);\n    return a * *x;\n}\n"
        "double use(double *x, double *dx) { return __enzyme_autodiff((void *)f, x, dx); }",
        "reset, which was declared inactive, writes to the memory of argument '1', which has a derivative",
        "reset(x);",
    ),
    "another kind of derivative": (
        "double f(double x) { return x * x; }\ndouble use(double x) { return __enzyme_virtualreverse((void *)f, x); }",
        "asks for derivatives of pointers to functions",
        "virtualreverse",
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
        "passes more than its 1 parameters",
        "(void *)f, x",
    ),
    "hand-written derivative for several directions": (
        "__attribute__((noinline)) double g(double x) { return 3 * x; }\n"
        "double g_augmented(double x) { return x; }\ndouble g_reverse(double x, double bar) { return bar; }\n"
        "void *__enzyme_register_gradient_g[] = {(void *)g, (void *)g_augmented, (void *)g_reverse};\n"
        "double f(double *x) { return g(*x); }\n"
        "double use(double *x, double *dx) { return __enzyme_autodiff((void *)f, enzyme_width, 2, x, dx, dx + 1); }",
        "the rule for g cannot be called once for each",
        "return g(*x)",
    ),
    "unknown marker": (
        "double f(double x) { return x; }\n"
        "double use(double x) { return __enzyme_autodiff((void *)f, enzyme_tape, 2, x); }",
        "does not know the marker enzyme_tape",
        "enzyme_tape",
    ),
    "result of another type": (
        "double f(double x) { return x; }\nfloat use(double x) { return __irad_autodiff_float((void *)f, x); }",
        "returns float, its arguments' derivatives are double",
        "(void *)f, x",
    ),
    "pointer marked out": (
        "double f(double *x) { return *x; }\n"
        "double use(double *x) { return __enzyme_autodiff((void *)f, enzyme_out, x); }",
        "is not a floating-point number",
        "enzyme_out",
    ),
    "function of another module": (
        "double f(double);\ndouble use(double x) { return __enzyme_autodiff((void *)f, x); }",
        "is not defined in this module",
        "(void *)f, x",
    ),
    "function that is not known": (
        "double use(double x, void *f) { return __enzyme_autodiff(f, x); }",
        "not known at compile time which function to differentiate",
        "autodiff(f, x)",
    ),
    "variable arguments": (
        "double f(double x, ...) { return x; }\ndouble use(double x) { return __enzyme_autodiff((void *)f, x); }",
        "takes a variable number of arguments",
        "(void *)f, x",
    ),
    "structure by value without a marker": (
        "struct S { double a[4]; };\ndouble f(struct S s) { return s.a[0]; }\n"
        "double use(struct S s) { return __enzyme_autodiff((void *)f, s); }",
        "no marker says how it takes part",
        "(void *)f, s",
    ),
    "structure in a register without a marker": (
        "struct S { float a, b; };\nfloat f(struct S s) { return s.a * s.b; }\n"
        "float use(struct S s) { return __irad_autodiff_float((void *)f, s); }",
        "no marker says how it takes part",
        "(void *)f, s",
    ),
    "shadow by value": (
        "struct S { double a[4]; };\ndouble f(struct S s) { return s.a[0]; }\n"
        "double use(struct S s, struct S d) { return __enzyme_autodiff((void *)f, enzyme_dup, s, d); }",
        "is a structure by value without its shadow",
        "enzyme_dup, s, d",
    ),
    "structure returned by value": (
        "struct S { double a[4]; };\nstruct S f(double x) { return (struct S){{x}}; }\n"
        "double use(struct S *s, double x) { return __enzyme_autodiff((void *)f, enzyme_const, s, x); }",
        "returned by value",
        "(void *)f, enzyme_const, s",
    ),
    "number of another kind": (
        "double f(double x) { return x * x; }\ndouble use(void) { return __enzyme_autodiff((void *)f, 3); }",
        "is of type double, the call passes i32",
        "(void *)f, 3",
    ),
    "integer that is too narrow": (
        "double f(double x, long n) { return x * n; }\n"
        "double use(double x) { return __enzyme_autodiff((void *)f, x, 3); }",
        "is of type i64, the call passes i32",
        "(void *)f, x, 3",
    ),
    "result of type long double": (
        "long double f(double x) { return 1; }\ndouble use(double x) { return __enzyme_autodiff((void *)f, x); }",
        "returns a value of type x86_fp80",
        "(void *)f, x",
    ),
    "argument of type long double": (
        "double f(long double x) { return x; }\ndouble use(double x) { return __enzyme_autodiff((void *)f, x); }",
        "is of type x86_fp80",
        "(void *)f, x",
    ),
    "function that is changed elsewhere": (
        "double f(double x) { return x; }\nvoid change(double (**f)(double));\n"
        "double use(double x) { double (*g)(double) = f; change(&g); return __enzyme_autodiff((void *)g, x); }",
        "not known at compile time which function to differentiate",
        "(void *)g, x",
    ),
    "call that returns twice": (
        "int _setjmp(void *) __attribute__((returns_twice));\nvoid longjmp(void *, int);\nchar state[512];\n"
        "double f(double x) { volatile double y = x;\n"
        "if (!_setjmp(state)) { y = x * x; longjmp(state, 1); }\nreturn y; }\n"
        "double use(double x) { return __enzyme_autodiff((void *)f, x); }",
        "_setjmp may return more than once",
        "_setjmp(state)",
    ),
    "active variable arguments": (
        "double sum(int n, ...) { __builtin_va_list a; __builtin_va_start(a, n); double s = 0;\n"
        "for (int i = 0; i < n; i++) s += __builtin_va_arg(a, double); return s; }\n"
        "double f(double x) { return sum(2, x, x * x); }\n"
        "double use(double x) { return __enzyme_autodiff((void *)f, x); }",
        "a variable number of arguments",
        "return sum(2",
    ),
    "sum in a global variable": (
        "static double sum;\n"
        "void add(double *a, double v, int n) {\n"
        "*a += v; if (n > 0) add(a, v / 2, n - 1); if (n > 2) add(a, v, n - 2); }\n"
        "double f(double x) { add(&sum, x * x, 4); return sum * 3; }\n"
        "double use(double x) { return __enzyme_autodiff((void *)f, x); }",
        "an active value is stored in the global variable sum",
        "add(&sum",
    ),
    "pointer in a global variable": (
        "static double *now;\n"
        "double g(int n) { if (n < 2) return now[n] * now[n]; return g(n - 1) + (n > 2 ? g(n - 2) : 0) * now[1]; }\n"
        "double f(double *x) { now = x; return g(4); }\n"
        "void use(double *x, double *dx) { __enzyme_autodiff((void *)f, x, dx); }",
        "an active value is stored in the global variable now",
        "now = x",
    ),
    "number among integers that are passed": (
        "typedef struct { float x; int k; } S;\nfloat g(S s, int n) {\n"
        "if (n < 1) return s.x * s.k;\nreturn g((S){s.x * 2, 3}, n - 1) + (n > 2 ? g(s, n - 2) : 0); }\n"
        "double f(double x) { return g((S){x, 3}, 4); }\n"
        "double use(double x) { return __enzyme_autodiff((void *)f, x); }",
        "becomes a number again",
        "g((S)",
    ),
    "number among integers that are returned": (
        "typedef struct { float x; int k; } S;\nS g(float x, int n) { if (n < 1) return (S){x * x, 3};\n"
        "S a = g(x * 2, n - 1); if (n > 2) a.x += g(a.x, n - 2).x; return a; }\n"
        "double f(double x) { S s = g(x, 4); return s.x * s.k; }\n"
        "double use(double x) { return __enzyme_autodiff((void *)f, x); }",
        "becomes a number again",
        "",
    ),
    "hand-written derivative of a structure": (
        "typedef struct { float x, y; } S;\ndouble f(S s, double z);\ndouble fa(S s, double z);\n"
        "double fr(S s, double z, double ct);\n"
        "void *__enzyme_register_gradient_f[] = {(void *)f, (void *)fa, (void *)fr};\n"
        "double g(double z) { return f((S){z, z}, z); }\n"
        "double use(double x) { return __enzyme_autodiff((void *)g, x); }",
        "is a structure by value",
        "",
    ),
    "constant bytes over numbers beside pointers, where is not known": (
        "typedef struct { double *p; double d; } S;\n"
        "double f(char *at, long n) { double v = *((S *)at)->p * ((S *)at)->d;\n"
        "for (long i = 0; i < n; i += n & 7) v += *(double *)(at + i);\n"
        "memset(at, 0, n);\nreturn v; }\n"
        "double use(char *s, char *t, long n) { return __enzyme_autodiff((void *)f, s, t, n); }",
        "holds numbers and pointers, and irad cannot tell them apart",
        "memset(at, 0, n)",
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
    "hand-written derivative that does not fit": (
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
    assert ("source.c:" in text) or not line
    assert not re.search(r"irad\.rules|[nN]umba|Python|\bnp\.", text), "remedies for C"
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
    assert str(refusal(source, tmp_path, "-g")).count("no derivative rule") == 1  # one reason is reported once


def test_all_that_is_wrong_is_told(tmp_path: Path):
    names = [f"other{number}" for number in range(5)]
    source = HEAD + (
        "".join(f"double {name}(double);\n" for name in names)
        + 'double f(double x) {\n  __asm__ volatile("nop" : "+x"(x));\n'
        + "".join(f"  x += {name}(x);\n" for name in names)
        + "  return x;\n}\ndouble use(double x) { return __enzyme_autodiff((void *)f, x); }"
    )
    text = str(refusal(source, tmp_path, "-g"))
    assert all(f"no derivative rule for a call to {name}\n" in text for name in names)
    assert "\ninline assembly has no derivative\n" in text
    assert "irad.check" not in text


def test_tasks_of_openmp(tmp_path: Path):
    source = HEAD + (
        "double f(double *x, int n) {\n  double s = 0;\n  #pragma omp parallel\n  #pragma omp single\n"
        "  for (int i = 0; i < n; i++) {\n    #pragma omp task firstprivate(i)\n    {\n      #pragma omp atomic\n"
        "      s += x[i];\n    }\n  }\n  return s;\n}\n"
        "double use(double *x, double *dx, int n) { return __enzyme_autodiff((void *)f, enzyme_dup, x, dx, n); }"
    )
    error = refusal(source, tmp_path, "-g", "-fopenmp")
    assert "irad does not support tasks of OpenMP" in str(error)
    assert "#pragma omp task" in str(error)
    assert "register_gradient" not in str(error)
    without = tmp_path / "without.c"
    without.write_text(source)
    differentiated(bitcode_of(without, 1, tmp_path))  # the remedy


def test_nothing_to_do(tmp_path: Path):
    assert "nothing in this module asks for a derivative" in refusal("int f(void) { return 1; }", tmp_path).problem


# ------------------------------------------------------------------------------------------------ files


def test_files_that_cannot_be_read(tmp_path: Path):
    with pytest.raises(BackendError, match="cannot read"):
        read_module(tmp_path / "missing.ll")
    (tmp_path / "wrong.ll").write_text("define nonsense")
    with pytest.raises(BackendError, match=r"cannot read .*wrong\.ll: .*wrong\.ll:1:8: error"):
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
        differentiate(str(parse(text.encode(), "typed")), CPU, Options())
