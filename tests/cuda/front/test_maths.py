"""Mathematics in kernels: libdevice's functions, questions about floats, float16."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special
from numba import cuda, float32, int32, types
from numba.cuda import libdevice

from irad.frontend.cuda.program import load_kernel
from tests.cuda.run import run

# name → where it is defined, NumPy's
UNARY = {
    **{name: ((-0.9, 0.9), getattr(np, f"arc{name[1:]}")) for name in ("asin", "acos", "atan", "atanh")},
    **{name: ((-2, 2), getattr(np, name)) for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "expm1")},
    **{name: ((0.1, 3), getattr(np, name)) for name in ("log", "log1p", "log2", "log10", "sqrt")},
    **{name: ((-3, 3), getattr(np, name)) for name in ("floor", "ceil", "trunc", "fabs", "radians", "degrees")},
    **{name: ((-2, 2), getattr(scipy.special, name)) for name in ("erf", "erfc")},
    "asinh": ((-2, 2), np.arcsinh),
    "acosh": ((1.1, 3), np.arccosh),
    "gamma": ((0.2, 4), scipy.special.gamma),
    "lgamma": ((0.2, 4), scipy.special.gammaln),
}


def calling(expression: str) -> Callable[..., None]:
    """A kernel that computes an expression of x[i] and y[i] into z[i]."""
    source = f"""
def kernel(x, y, z):
    i = cuda.grid(1)
    if i < x.size:
        a, b = x[i], y[i]
        z[i] = {expression}
"""
    names: dict[str, Any] = {"cuda": cuda, "math": math, "libdevice": libdevice, "np": np}
    exec(source, names)
    return names["kernel"]


def computed(expression: str, x: Any, y: Any, **options: Any) -> Any:
    z = np.zeros_like(x)
    run(calling(expression), 1, 32, (x, y, z), **options)
    return z


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-13), (np.float32, 2e-6)])
def test_functions_of_one_number(dtype: type, tolerance: float):
    """All in one kernel, since a compilation takes longer than they do."""
    names = sorted(UNARY)
    rng = np.random.default_rng(0)
    x = np.array([rng.uniform(*UNARY[name][0], size=4) for name in names], dtype)
    lines = "\n".join(f"        z[{row}, i] = math.{name}(x[{row}, i])" for row, name in enumerate(names))
    source = f"def kernel(x, z):\n    i = cuda.grid(1)\n    if i < 4:\n{lines}\n"
    found: dict[str, Any] = {"cuda": cuda, "math": math}
    exec(source, found)
    z = np.zeros_like(x)
    run(found["kernel"], 1, 32, (x, z))
    for row, name in enumerate(names):
        wanted = UNARY[name][1](x[row].astype(float))
        np.testing.assert_allclose(z[row], wanted, rtol=tolerance, atol=tolerance, err_msg=name)


@pytest.mark.parametrize(
    ("expression", "reference"),
    [
        ("math.atan2(a, b) + math.hypot(a, b)", lambda a, b: np.arctan2(a, b) + np.hypot(a, b)),
        ("math.copysign(a, b) + math.fmod(a, b)", lambda a, b: np.copysign(a, b) + np.fmod(a, b)),
        ("math.pow(abs(a), b) + a ** 3", lambda a, b: np.abs(a) ** b + a**3),
        ("a // b + a % b", lambda a, b: a // b + a % b),
        ("math.ldexp(a, 3) + round(b)", lambda a, b: np.ldexp(a, 3) + np.rint(b)),
        ("cuda.fma(a, b, 2.0) + cuda.cbrt(abs(b))", lambda a, b: a * b + 2.0 + np.cbrt(np.abs(b))),
        ("cuda.selp(a > b, a, b)", np.maximum),
        ("libdevice.rsqrt(abs(a)) + libdevice.j0(b)", lambda a, b: np.abs(a) ** -0.5 + scipy.special.j0(b)),
        ("libdevice.sincos(a)[0] * libdevice.sincos(a)[1]", lambda a, _: np.sin(a) * np.cos(a)),
        ("libdevice.erfcinv(0.5 + 0.1 * a) + libdevice.normcdf(b)", None),
    ],
)
def test_functions_of_two_numbers(expression: str, reference: Callable[..., Any] | None):
    reference = reference or (lambda a, b: scipy.special.erfcinv(0.5 + 0.1 * a) + scipy.special.ndtr(b))
    rng = np.random.default_rng(1)
    x, y = rng.uniform(-3, 3, size=32), rng.uniform(-3, 3, size=32)
    np.testing.assert_allclose(computed(expression, x, y), reference(x, y), rtol=1e-12, atol=1e-13)


def test_questions_about_floats():
    for dtype in (np.float32, np.float64):
        x = np.array([0.0, -0.0, 1.5, np.nan, np.inf, -np.inf, np.finfo(dtype).max], dtype)
        for name in ("isnan", "isinf", "isfinite"):
            np.testing.assert_array_equal(computed(f"math.{name}(a)", x, x), getattr(np, name)(x))


def test_bits():
    def kernel(x, y):
        i = cuda.grid(1)
        y[0, i] = cuda.popc(x[i])
        y[1, i] = cuda.clz(x[i])
        y[2, i] = cuda.ffs(x[i])
        y[3, i] = cuda.brev(x[i])

    for bits, dtype in ((32, np.uint32), (64, np.uint64)):
        x = np.array([0, 1, 6, 2**31, 2**bits - 1], dtype)
        y = np.zeros((4, 5), dtype)
        run(kernel, 1, 5, (x, y))
        for column, value in enumerate(map(int, x)):
            spelled = f"{value:0{bits}b}"
            first = spelled[::-1].find("1") + 1
            wanted = [spelled.count("1"), (spelled + "1").index("1"), first, int(spelled[::-1], 2)]
            assert [int(each) for each in y[:, column]] == wanted


def test_fast_mathematics():
    x = np.linspace(0.1, 2.0, 32).astype(np.float32)
    expression = "math.sin(a) / math.sqrt(b) + math.exp(a) * math.log(b) + math.tanh(a)"
    exact = computed(expression, x, x)
    np.testing.assert_allclose(computed(expression, x, x, fastmath=True), exact, rtol=1e-5)
    types_ = (types.float32[::1],) * 3
    kernel = cuda.jit(calling(expression))
    assert "__nv_fast_" not in load_kernel(kernel, types_).module.text
    module = load_kernel(kernel, types_, fastmath=True).module
    assert module.fastmath
    assert "__nv_fast_sinf" in module.text


def halves(a, b, result, singles, truths, integers):
    i = cuda.grid(1)
    h, g = a[i], b[i]
    result[0, i] = h + g
    result[1, i] = h - g
    result[2, i] = h * g
    result[3, i] = h / g
    result[4, i] = -h
    result[5, i] = abs(h)
    result[6, i] = cuda.fp16.hmax(h, g)
    result[7, i] = cuda.fp16.hmin(h, g)
    result[8, i] = singles[i]
    result[9, i] = cuda.fp16.hsin(h)
    result[10, i] = cuda.fp16.hexp(g)
    result[11, i] = cuda.fp16.hsqrt(abs(h))
    result[12, i] = integers[i]
    singles[i] = float32(h) * float32(g)
    truths[0, i], truths[1, i], truths[2, i] = h < g, h <= g, h == g
    truths[3, i], truths[4, i], truths[5, i] = h > g, h >= g, h != g
    integers[i] = int32(g)


def test_half_precision():
    rng = np.random.default_rng(2)
    a, b = rng.normal(size=32).astype(np.float16), rng.normal(size=32).astype(np.float16)
    a[:4], b[:4] = b[:4], a[:4].copy()
    a[5] = b[5]
    b[6:9] = [2.5, 3.5, -1.5]  # ties go to the even integer
    singles = rng.normal(size=32).astype(np.float32)
    integers = rng.integers(-9, 9, 32).astype(np.int32)
    before = singles.copy(), integers.copy()
    result, truths = np.zeros((13, 32), np.float16), np.zeros((6, 32), np.bool_)
    run(halves, 1, 32, (a, b, result, singles, truths, integers))
    wide = a.astype(float), b.astype(float)
    wanted = [
        *(a + b, a - b, a * b, a / b, -a, abs(a), np.maximum(a, b), np.minimum(a, b)),
        *(before[0], np.sin(wide[0]), np.exp(wide[1]), np.sqrt(abs(wide[0])), before[1]),
    ]
    for row, each in enumerate(wanted):
        np.testing.assert_array_equal(result[row], np.asarray(each).astype(np.float16), err_msg=str(row))
    np.testing.assert_array_equal(singles, a.astype(np.float32) * b.astype(np.float32))
    np.testing.assert_array_equal(truths, [a < b, a <= b, a == b, a > b, a >= b, a != b])
    np.testing.assert_array_equal(integers, np.rint(b).astype(np.int32))
    array = types.Array(types.float16, 1, "C")
    signature = array, array, types.Array(types.float16, 2, "C"), types.float32[::1], types.boolean[:, ::1]
    text = load_kernel(cuda.jit(halves), (*signature, types.int32[::1])).module.text
    assert "fadd contract half" in text
    declared = [line.partition("@")[2].partition("(")[0] for line in text.splitlines() if line.startswith("declare")]
    assert all(name.startswith(("llvm.", "__nv_")) for name in declared)
    assert " asm " not in text


def test_half_precision_is_rounded_once():
    def kernel(a, x, result):
        i = cuda.grid(1)
        result[0, i] = cuda.fp16.hfma(a[i], a[i], a[31 - i])
        result[1, i] = x[i]

    rng = np.random.default_rng(3)
    a, x = rng.normal(size=32).astype(np.float16), rng.normal(size=32)
    x[0] = 1.0 + 2.0**-11 + 2.0**-30  # float32 would make it a tie
    result = np.zeros((2, 32), np.float16)
    run(kernel, 1, 32, (a, x, result))
    wide = a.astype(float)
    np.testing.assert_array_equal(result[0], (wide * wide + wide[::-1]).astype(np.float16))
    np.testing.assert_array_equal(result[1], x.astype(np.float16))
