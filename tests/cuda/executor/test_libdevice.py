"""Every function of CUDA's device library that Numba declares is known or refused by name; those known are right."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest
import scipy.special
from numba.cuda.libdevicefuncs import functions

from irad.backend.executor.rewriting.libdevice import is_known
from tests.cuda.executor.texts import kernel, run

DIRECTED = {"rz", "ru", "rd"}
SPELLED = {
    numba.float64: "double",
    numba.float32: "float",
    numba.int64: "i64",
    numba.int32: "i32",
    numba.int16: "i16",
    numba.void: "void",
}
DTYPES = {"double": np.float64, "float": np.float32, "i64": np.int64, "i32": np.int32, "i16": np.int16}


def signature(name: str) -> tuple[str, tuple[str, ...]]:
    """LLVM's types of result and parameters."""
    result, parameters = functions[f"__nv_{name}"]
    return SPELLED[result], tuple("ptr" if each.is_ptr else SPELLED[each.ty] for each in parameters)


def called(name: str, *arrays: np.ndarray) -> np.ndarray:
    """The function's values for arrays of arguments."""
    result, parameters = signature(name)
    loads = [
        f"  %p{n} = getelementptr {t}, ptr %x{n}, i64 %i\n  %v{n} = load {t}, ptr %p{n}\n"
        for n, t in enumerate(parameters)
    ]
    arguments = ", ".join(f"{t} %v{n}" for n, t in enumerate(parameters))
    body = f"""
{"".join(loads)}
  %w = call {result} @__nv_{name}({arguments})
  %to = getelementptr {result}, ptr %y, i64 %i
  store {result} %w, ptr %to
  ret void"""
    outside = f"declare {result} @__nv_{name}({', '.join(parameters)})\n"
    text = kernel(", ".join([f"ptr %x{n}" for n in range(len(parameters))] + ["ptr %y"]), body, outside)
    typed = [np.ascontiguousarray(array, DTYPES[t]) for array, t in zip(arrays, parameters, strict=True)]
    out = np.zeros(len(arrays[0]), DTYPES[result])
    run(text, 1, len(out), *typed, out)
    return out


REAL = np.array([0.0, -0.0, 1e-300, 1e-8, 0.1, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 2.5, 3.7, 11.0, 25.0, np.inf, np.nan])
ANY = np.r_[REAL, -REAL]
UNIT = np.r_[REAL[REAL <= 1], -REAL[REAL <= 1], np.nan]
PROBABILITY = np.r_[0.0, 1e-310, 1e-300, 1e-20, 1e-5, 0.01, 0.2, 0.49, 0.5, 0.51, 0.9, 0.99, 1 - 1e-12, 1.0]
WHOLE = np.array([0, 1, -1, 5, -7, 12345, -98765, 2**31 - 1, -(2**31), 0x00FF00FF])
LONG = np.r_[WHOLE, 2**63 - 1, -(2**63), 2**40 + 3]
Reference = Callable[..., Any]

UNARY: dict[str, tuple[Reference, np.ndarray]] = {
    **{name: (getattr(np, numpy), ANY) for name, numpy in {
        "sin": "sin", "cos": "cos", "tan": "tan", "sinh": "sinh", "cosh": "cosh", "tanh": "tanh", "atan": "arctan",
        "asinh": "arcsinh", "exp": "exp", "exp2": "exp2", "expm1": "expm1", "cbrt": "cbrt", "fabs": "abs",
        "floor": "floor", "ceil": "ceil", "trunc": "trunc", "rint": "rint", "nearbyint": "rint",
    }.items()},
    **{name: (getattr(np, f"arc{name[1:]}"), UNIT) for name in ("asin", "acos", "atanh")},
    **{name: (getattr(np, numpy), REAL) for name, numpy in {
        "sqrt": "sqrt", "log": "log", "log2": "log2", "log10": "log10", "log1p": "log1p", "acosh": "arccosh"}.items()},
    **{name: (getattr(scipy.special, name), ANY) for name in ("erf", "erfc", "erfcx")},
    **{name: (getattr(scipy.special, name), ANY[np.isfinite(ANY)]) for name in ("j0", "j1")},
    **{name: (getattr(scipy.special, name), REAL[(REAL > 0) & (REAL < np.inf)]) for name in ("y0", "y1")},
    "exp10": (lambda x: np.power(10.0, x), ANY),
    "tgamma": (scipy.special.gamma, REAL[REAL > 1e-8]),
    "lgamma": (scipy.special.gammaln, REAL[REAL > 1e-8]),
    "erfinv": (scipy.special.erfinv, UNIT),
    "erfcinv": (scipy.special.erfcinv, 2 * np.r_[PROBABILITY, np.nan]),
    "normcdf": (scipy.special.ndtr, ANY),
    "normcdfinv": (scipy.special.ndtri, np.r_[PROBABILITY, np.nan]),
    "rsqrt": (lambda x: 1 / np.sqrt(x), REAL),
    "rcbrt": (lambda x: 1 / np.cbrt(x), ANY),
    "sinpi": (lambda x: np.sin(np.pi * np.fmod(x, 2)), ANY[np.abs(ANY) < 1e6]),
    "cospi": (lambda x: np.cos(np.pi * np.fmod(x, 2)), ANY[np.abs(ANY) < 1e6]),
    "round": (lambda x: np.trunc(x + np.copysign(0.5, x)), ANY),
    "logb": (lambda x: np.floor(np.log2(np.abs(x))), ANY[np.abs(ANY) > 1e-20]),
}  # fmt: skip
ROUGH = {"j0": 1e-15, "j1": 1e-15, "y0": 1e-15, "y1": 1e-15, "sinpi": 3e-16, "cospi": 3e-16}
"""What references lose near zeros."""
RELATIVE = {"normcdf": 2e-14}
"""What they lose elsewhere: SciPy rounds the argument of erfc."""
FAST = {f"fast_{name}f": name for name in ("sin", "cos", "tan", "exp", "exp10", "log", "log2", "log10")}


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_functions_of_one_number(name: str):
    reference, points = UNARY[name]
    rough = ROUGH.get(name, 1e-300)
    np.testing.assert_allclose(called(name, points), reference(points), rtol=RELATIVE.get(name, 4e-15), atol=rough)
    single = points.astype(np.float32)
    wanted = reference(single.astype(float)).astype(np.float32)
    np.testing.assert_allclose(called(f"{name}f", single), wanted, rtol=5e-7, atol=max(1e9 * rough, 1e-37))


@pytest.mark.parametrize("name", FAST)
def test_fast_functions_are_the_usual_ones(name: str):
    points = REAL[REAL > 1e-5][:-1].astype(np.float32)
    assert np.array_equal(called(name, points), called(f"{FAST[name]}f", points))


def test_zeros_of_sinpi_and_cospi_are_exact():
    whole = np.array([1.0, 2.0, -3.0, 1e9 + 1, 2.0**60])
    assert np.array_equal(called("sinpi", whole), np.zeros(5))
    assert np.array_equal(called("cospi", np.array([0.5, -1.5, 1e9 + 0.5])), np.zeros(3))
    assert np.array_equal(called("cospi", whole), [-1, 1, -1, -1, 1])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_inverses_are_inverses_over_all_magnitudes():
    x = np.concatenate([10.0 ** -np.arange(0.3, 300, 7.0), np.linspace(0.01, 0.999, 50)])
    np.testing.assert_allclose(scipy.special.erf(called("erfinv", x)), x, rtol=1e-15, atol=0)
    np.testing.assert_allclose(scipy.special.erfc(called("erfcinv", x)), x, rtol=4e-13, atol=0)
    np.testing.assert_allclose(called("erfinv", x[:45]), scipy.special.erfinv(x[:45]), rtol=4e-16, atol=0)
    tail = -np.linspace(1, 37, 60)
    np.testing.assert_allclose(called("normcdf", tail), scipy.special.ndtr(tail), rtol=2e-13)
    np.testing.assert_allclose(called("normcdfinv", called("normcdf", tail)), tail, rtol=1e-15)


BINARY: dict[str, Reference] = {
    "pow": np.power, "atan2": np.arctan2, "hypot": np.hypot, "fmod": np.fmod, "fmax": np.fmax, "fmin": np.fmin,
    "copysign": np.copysign, "nextafter": np.nextafter, "fdim": lambda x, y: np.where(x > y, x - y, 0.0 * (x + y)),
    "remainder": lambda x, y: np.array([math.remainder(a, b) for a, b in zip(x, y, strict=True)]),
    "dadd_rn": np.add, "dmul_rn": np.multiply, "ddiv_rn": np.divide,
}  # fmt: skip


@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two_numbers(name: str):
    x, y = (each.ravel() for each in np.meshgrid([0.5, 1.0, 2.75, 9.0], [-2.0, 0.3, 1.0, 4.5]))
    np.testing.assert_allclose(called(name, x, y), BINARY[name](x, y), rtol=1e-15)
    single = {"dadd_rn": "fadd_rn", "dmul_rn": "fmul_rn", "ddiv_rn": "fdiv_rn"}.get(name, f"{name}f")
    x32, y32 = x.astype(np.float32), y.astype(np.float32)
    np.testing.assert_allclose(called(single, x32, y32), BINARY[name](x32, y32).astype(np.float32), rtol=2e-7)


def test_arithmetic_in_single_precision_and_the_like():
    x, y = np.float32([0.1, 0.7, 5.0, -3.0]), np.float32([0.3, 2.0, -4.0, 7.0])
    assert np.array_equal(called("fsub_rn", x, y), x - y)
    assert np.array_equal(called("fast_fdividef", x, y), x / y)
    assert np.array_equal(called("fast_powf", np.abs(x), y), called("powf", np.abs(x), y))
    assert np.array_equal(called("frcp_rn", x), np.float32(1) / x)
    assert np.array_equal(called("drcp_rn", x), 1 / x.astype(float))
    assert np.array_equal(called("fsqrt_rn", np.abs(x)), np.sqrt(np.abs(x)))
    assert np.array_equal(called("frsqrt_rn", np.abs(x)), called("rsqrtf", np.abs(x)))
    assert np.array_equal(called("saturatef", np.r_[x, np.nan]), np.float32([0.1, 0.7, 1, 0, 0]))
    np.testing.assert_allclose(called("fma_rn", x, y, x), x.astype(float) * y + x, rtol=1e-15)
    np.testing.assert_allclose(called("fmaf", x, y, x), x.astype(float) * y + x, rtol=1e-7)


@pytest.mark.parametrize("letter", ["", "f"])
def test_powers_and_functions_with_an_integer(letter: str):
    x, n = np.array([2.0, 2.0, -3.0, 0.5, 0.0, 7.0]), np.array([10, -3, 3, 0, 4, 1])
    assert np.array_equal(called(f"powi{letter}", x, n), DTYPES["float" if letter else "double"](x ** n.astype(float)))
    assert np.array_equal(called(f"ldexp{letter}", x, n), x * 2.0**n)
    assert np.array_equal(called(f"scalbn{letter}", x, n), x * 2.0**n)
    assert np.array_equal(called(f"ilogb{letter}", x[x != 0]), [1, 1, 1, -1, 2])
    tolerance = 1e-6 if letter else 1e-14
    np.testing.assert_allclose(
        called(f"jn{letter}", np.arange(4), x[:4]), scipy.special.jv(np.arange(4), x[:4]), tolerance
    )
    np.testing.assert_allclose(
        called(f"yn{letter}", np.arange(2), x[:2]), scipy.special.yn(np.arange(2), x[:2]), tolerance
    )


def unsigned(x: np.ndarray) -> list[int]:
    return [int(each) % 2**32 for each in x]


def signed(x: Any, bits: int = 32) -> np.ndarray:
    return np.array([(int(each) + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1) for each in x])


INTEGERS: dict[str, Callable[..., Any]] = {
    "abs": abs,
    "brev": lambda x: int(f"{x % 2**32:032b}"[::-1], 2),
    "clz": lambda x: 32 - (x % 2**32).bit_length(),
    "ffs": lambda x: (x & -x).bit_length(),
    "popc": lambda x: (x % 2**32).bit_count(),
    "brevll": lambda x: int(f"{x % 2**64:064b}"[::-1], 2),
    "clzll": lambda x: 64 - (x % 2**64).bit_length(),
    "ffsll": lambda x: (x & -x).bit_length(),
    "popcll": lambda x: (x % 2**64).bit_count(),
    "llabs": abs,
    "max": max,
    "min": min,
    "umax": lambda x, y: max(x % 2**32, y % 2**32),
    "umin": lambda x, y: min(x % 2**32, y % 2**32),
    "llmax": max,
    "llmin": min,
    "ullmax": lambda x, y: max(x % 2**64, y % 2**64),
    "ullmin": lambda x, y: min(x % 2**64, y % 2**64),
    "mulhi": lambda x, y: x * y >> 32,
    "umulhi": lambda x, y: (x % 2**32) * (y % 2**32) >> 32,
    "mul64hi": lambda x, y: x * y >> 64,
    "umul64hi": lambda x, y: (x % 2**64) * (y % 2**64) >> 64,
    "mul24": lambda x, y: int(signed([x], 24)[0]) * int(signed([y], 24)[0]),
    "umul24": lambda x, y: (x % 2**24) * (y % 2**24),
    "hadd": lambda x, y: x + y >> 1,
    "rhadd": lambda x, y: x + y + 1 >> 1,
    "uhadd": lambda x, y: x % 2**32 + y % 2**32 >> 1,
    "urhadd": lambda x, y: x % 2**32 + y % 2**32 + 1 >> 1,
    "sad": lambda x, y, z: abs(x - y) + z,
    "usad": lambda x, y, z: abs(x % 2**32 - y % 2**32) + z,
    "byte_perm": lambda x, y, s: sum(
        (((y % 2**32 << 32 | x % 2**32) >> 8 * (s >> 4 * k & 7)) & 255) << 8 * k for k in range(4)
    ),
}


@pytest.mark.parametrize("name", INTEGERS)
def test_integers(name: str):
    result, parameters = signature(name)
    points = LONG if parameters[0] == "i64" else WHOLE
    arrays = [np.roll(points, 3 * n) for n in range(len(parameters))]
    wanted = [INTEGERS[name](*map(int, row)) for row in zip(*arrays, strict=True)]
    assert np.array_equal(called(name, *arrays), signed(wanted, 64 if result == "i64" else 32))


def test_bits():
    x, bits = np.array([1.5, -0.0, np.pi]), np.array([1.5, -0.0, np.pi]).view(np.int64)
    assert np.array_equal(called("double_as_longlong", x), bits)
    assert np.array_equal(called("longlong_as_double", bits).view(np.int64), bits)
    assert np.array_equal(called("double2hiint", x), bits >> 32)
    assert np.array_equal(called("double2loint", x), signed(bits & 0xFFFFFFFF))
    assert np.array_equal(called("hiloint2double", bits >> 32, signed(bits & 0xFFFFFFFF)), x)
    x32 = x.astype(np.float32)
    assert np.array_equal(called("float_as_int", x32), x32.view(np.int32))
    assert np.array_equal(called("int_as_float", x32.view(np.int32)), x32)
    assert np.array_equal(called("float2half_rn", x32), x32.astype(np.float16).view(np.int16))
    assert np.array_equal(called("half2float", x32.astype(np.float16).view(np.int16)), x32.astype(np.float16))


def test_kinds_of_numbers():
    x = np.array([1.0, -1.0, -0.0, np.inf, -np.inf, np.nan, 1e-310])
    for letter, finite in (("d", "isfinited"), ("f", "finitef")):
        assert np.array_equal(called(f"signbit{letter}", x[[0, 1, 2, 3, 4, 6]]), [0, 1, 1, 0, 1, 0])
        assert np.array_equal(called(f"isinf{letter}", x), np.isinf(x))
        assert np.array_equal(called(f"isnan{letter}", x), np.isnan(x))
        assert np.array_equal(called(finite, x), np.isfinite(x))


ROUNDINGS = {"rn": np.rint, "rz": np.trunc, "ru": np.ceil, "rd": np.floor}


@pytest.mark.parametrize("source", ["double", "float"])
@pytest.mark.parametrize("target", ["int", "ll", "uint", "ull"])
def test_conversions_to_integers(source: str, target: str):
    x = np.array([0.5, 1.5, 2.5, -0.5, -1.5, 1e6 + 0.25, 1e30, -1e30]).astype(DTYPES[source])
    low, high = {
        "int": (-(2**31), 2**31 - 1),
        "ll": (-(2**63), 2**63 - 1),
        "uint": (0, 2**32 - 1),
        "ull": (0, 2**64 - 1),
    }[target]
    bits = 64 if target in ("ll", "ull") else 32
    for mode, rounding in ROUNDINGS.items():
        wanted = signed([min(max(int(each), low), high) for each in rounding(x)], bits)
        assert np.array_equal(called(f"{source}2{target}_{mode}", x), wanted), mode
    assert np.array_equal(called(f"{target}2{source}_rn", np.arange(5)), np.arange(5.0))


def test_conversions_of_large_integers():
    assert called("uint2double_rn", np.array([-1]))[0] == 2**32 - 1
    assert called("ull2double_rn", np.array([-1]))[0] == 2.0**64
    assert called("int2double_rn", np.array([-1]))[0] == -1
    assert called("double2float_rn", np.array([1 / 3]))[0] == np.float32(1 / 3)
    assert np.array_equal(called("llrint", np.array([2.5, -3.5])), [2, -4])
    assert np.array_equal(called("llroundf", np.array([2.5, -3.5])), [3, -4])


POINTERS: dict[str, tuple[tuple[str, ...], Callable[..., Any]]] = {
    "sincos": (("double", "double"), lambda x: (math.sin(x), math.cos(x))),
    "sincospi": (("double", "double"), lambda x: (math.sin(math.pi * x), math.cos(math.pi * x))),
    "frexp": (("i32",), lambda x: (math.frexp(x)[1], math.frexp(x)[0])),
    "modf": (("double",), lambda x: (math.modf(x)[1], math.modf(x)[0])),
}


@pytest.mark.parametrize("letter", ["", "f"])
@pytest.mark.parametrize("name", POINTERS)
def test_functions_with_two_results(name: str, letter: str):
    spelled = "float" if letter else "double"
    stored = tuple(t if t == "i32" else spelled for t in POINTERS[name][0])
    result = "void" if len(stored) == 2 else spelled
    slots = ", ".join(f"ptr %slot{n}" for n in range(len(stored)))
    body = "".join(f"  %slot{n} = alloca {t}, align 8\n" for n, t in enumerate(stored))
    head = "  " if result == "void" else "  %w = "
    body += f"{head}call {result} @__nv_{name}{letter}({spelled} %x, {slots})\n"
    for n, t in enumerate(stored):
        body += f"  %v{n} = load {t}, ptr %slot{n}\n  store {t} %v{n}, ptr %out{n}\n"
    if result != "void":
        body += f"  store {result} %w, ptr %out1\n"
    outside = f"declare {result} @__nv_{name}{letter}({spelled}{', ptr' * len(stored)})\n"
    outs = [np.zeros(1, DTYPES[t]) for t in (*stored, result)[:2]]
    run(kernel(f"{spelled} %x, ptr %out0, ptr %out1", body + "  ret void", outside), 1, 1, 0.3, *outs)
    np.testing.assert_allclose([out[0] for out in outs], POINTERS[name][1](0.3), rtol=1e-6 if letter else 1e-15)


def test_remquo():
    body = """
  %slot = alloca i32, align 4
  %r = call double @__nv_remquo(double %x, double %z, ptr %slot)
  %q = load i32, ptr %slot
  store double %r, ptr %out
  store i32 %q, ptr %quotient
  ret void"""
    out, quotient = np.zeros(1), np.zeros(1, np.int32)
    text = kernel(
        "double %x, double %z, ptr %out, ptr %quotient", body, "declare double @__nv_remquo(double, double, ptr)\n"
    )
    run(text, 1, 1, 7.0, 2.5, out, quotient)
    assert (out[0], quotient[0]) == (math.remainder(7.0, 2.5), 3)


def test_double_to_half_is_rounded_once():
    x = np.concatenate(
        [
            np.random.default_rng(0).normal(size=500),
            [1 + 2.0**-11 + 2.0**-40, 1 + 2.0**-11, 65519.99, 65520.0, 1e-8, -3e-8, np.nan, np.inf, 0.0, -0.0],
        ]
    )
    body = """
  %from = getelementptr double, ptr %x, i64 %i
  %v = load double, ptr %from
  %h = fptrunc double %v to half
  %to = getelementptr half, ptr %y, i64 %i
  store half %h, ptr %to
  ret void"""
    y = np.zeros(len(x), np.float16)
    run(kernel("ptr %x, ptr %y", body), 1, len(x), x, y)
    with np.errstate(over="ignore"):
        assert np.array_equal(y.view(np.uint16)[:-4], x.astype(np.float16).view(np.uint16)[:-4])
    assert np.array_equal(y[-4:], x[-4:].astype(np.float16), equal_nan=True)


@pytest.mark.parametrize("suffix", ["f64", "f32"])
def test_powers_by_the_intrinsic(suffix: str):
    spelled = "double" if suffix == "f64" else "float"
    body = f"""
  %w = call {spelled} @llvm.powi.{suffix}.i32({spelled} %x, i32 %n)
  store {spelled} %w, ptr %y
  ret void"""
    y = np.zeros(1, DTYPES[spelled])
    outside = f"declare {spelled} @llvm.powi.{suffix}.i32({spelled}, i32)\n"
    run(kernel(f"{spelled} %x, i32 %n, ptr %y", body, outside), 1, 1, 3.0, 5, y)
    assert y[0] == 243


def test_every_function_of_numba_is_known_or_rounds_in_another_direction():
    unknown = {name.removeprefix("__nv_") for name in functions if not is_known(name)}
    arithmetic = {name for name in unknown if name.rpartition("_")[2] in DIRECTED}
    assert unknown == arithmetic
    assert "dadd_rz" in unknown
