"""Instructions of floating-point numbers, against exact fractions: roundings, NaN, -0, subnormals."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from tests.cuda.ptx_interpreter.programs import evaluate
from tests.cuda.ptx_interpreter.types import ptx_type

TYPES = ("f16", "f32", "f64")
each_type = pytest.mark.parametrize("name", TYPES)


def values(name: str) -> np.ndarray:
    """Numbers at which something is special, and some that are not."""
    limits = np.finfo(ptx_type(name).dtype)
    plain = [0.0, 1.0, 3.0, 0.1, 1 / 3, limits.max, limits.tiny, limits.smallest_subnormal, limits.eps, 1 + limits.eps]
    return np.array([*plain, *(-each for each in plain), np.inf, -np.inf, np.nan], ptx_type(name).dtype)


def rounded(value: Fraction, name: str, mode: str) -> float:
    """The number of a format that is next to a fraction, found by its digits."""
    limits = np.finfo(ptx_type(name).dtype)
    if value == 0:
        return 0.0
    exponent = math.floor(math.log2(abs(value.numerator)) - math.log2(value.denominator))
    exponent += Fraction(2) ** (exponent + 1) <= abs(value)
    exponent -= Fraction(2) ** exponent > abs(value)
    unit = Fraction(2) ** (max(exponent, int(limits.minexp)) - int(limits.nmant))
    steps = value / unit
    whole = {"rn": round, "rz": math.trunc, "rm": math.floor, "rp": math.ceil}[mode](steps)
    largest = Fraction(float(limits.max))
    result = whole * unit
    if abs(result) > largest:
        away = mode == "rn" or ((mode == "rp") == (value > 0) and mode != "rz")
        return math.copysign(math.inf if away else float(largest), 1 if value > 0 else -1)
    return math.copysign(float(result), 1 if value > 0 else -1)


def compare(found: np.ndarray, wanted: list[float], *, signed: bool = True) -> None:
    for each, right in zip(found.tolist(), wanted, strict=True):
        assert (math.isnan(each) and math.isnan(right)) or each == right, (each, right)
        assert not signed or math.isnan(right) or math.copysign(1, each) == math.copysign(1, right), (each, right)


FUNCTIONS = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "fma": lambda a, b, c: a * b + c,
}
FORMS = [
    (op, name, mode)
    for op in FUNCTIONS
    for name in TYPES
    for mode in ("rn", "rz", "rm", "rp")
    if name != "f16" or (mode == "rn" and op != "div")
]


@pytest.mark.parametrize(("opcode", "name", "mode"), FORMS)
def test_roundings(opcode: str, name: str, mode: str):
    finite = values(name)[: -3 if opcode != "fma" else 12]
    count = 3 if opcode == "fma" else 2
    rows = np.array(list(itertools.product(finite, repeat=count)))
    with np.errstate(all="ignore"):
        special = FUNCTIONS[opcode](*rows.T.astype(np.float64))
    operands = {letter: (name, rows[:, column]) for column, letter in enumerate("abc"[:count])}
    listed = ", ".join(f"%{letter}" for letter in operands)
    found = evaluate(f"{opcode}.{mode}.{name} %result, {listed}", name, **operands)
    for row, each, plain in zip(rows.tolist(), found.tolist(), special.tolist(), strict=True):
        if opcode == "div" and row[1] == 0:
            compare(np.array([each]), [plain])
            continue
        exact = FUNCTIONS[opcode](*map(Fraction, row))
        assert each == rounded(exact, name, mode), (row, each)


def test_signs_of_sums_that_are_zero():
    a, b = np.array([0.0, 0.0, -0.0, -0.0, 1.0]), np.array([0.0, -0.0, 0.0, -0.0, -1.0])
    for mode, wanted in (("rn", [0.0, 0.0, 0.0, -0.0, 0.0]), ("rm", [0.0, -0.0, -0.0, -0.0, -0.0])):
        compare(evaluate(f"add.{mode}.f64 %result, %a, %b", "f64", a=("f64", a), b=("f64", b)), wanted)
        compare(
            evaluate(f"fma.{mode}.f64 %result, %a, 0d3FF0000000000000, %b", "f64", a=("f64", a), b=("f64", b)), wanted
        )


@each_type
@pytest.mark.parametrize("opcode", ["add", "sub", "mul", "fma"])
def test_infinities_and_nans(name: str, opcode: str):
    special = [np.inf, -np.inf, np.nan, 0.0, -0.0, 1.0]
    count = 3 if opcode == "fma" else 2
    rows = np.array(list(itertools.product(special, repeat=count)))
    operands = {letter: (name, rows[:, column]) for column, letter in enumerate("abc"[:count])}
    listed = ", ".join(f"%{letter}" for letter in operands)
    with np.errstate(all="ignore"):
        compare(
            evaluate(f"{opcode}.rn.{name} %result, {listed}", name, **operands), FUNCTIONS[opcode](*rows.T).tolist()
        )


def test_a_product_and_a_sum_are_rounded_once():
    tiny = 2.0**-30
    for name in ("f32", "f64"):
        tiny = 2.0 ** (-20 if name == "f32" else -30)
        found = evaluate(f"fma.rn.{name} %result, %a, %a, %b", name, a=(name, [1 + tiny]), b=(name, -1 - 2 * tiny))
        assert found == tiny**2


def test_halves_are_not_rounded_twice():
    rng = np.random.default_rng(1)
    a, b, c = rng.integers(0, 2**16, (3, 400), dtype=np.uint16).view(np.float16)
    keep = np.isfinite(a) & np.isfinite(b) & np.isfinite(c)
    a, b, c = a[keep], b[keep], c[keep]
    found = evaluate("fma.rn.f16 %result, %a, %b, %c", "f16", a=("f16", a), b=("f16", b), c=("f16", c))
    for x, y, z, each in zip(*(part.tolist() for part in (a, b, c, found)), strict=True):
        assert each == rounded(Fraction(x) * Fraction(y) + Fraction(z), "f16", "rn")


@pytest.mark.parametrize("name", ["f32", "f64"])
@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
def test_square_roots_and_reciprocals(name: str, mode: str):
    given = np.array([0.0, -0.0, 1.0, 2.0, 3.0, 0.1, 1e-30, np.finfo(ptx_type(name).dtype).max, np.inf, np.nan, -1.0])
    given = given.astype(ptx_type(name).dtype)
    found = evaluate(f"sqrt.{mode}.{name} %result, %a", name, a=(name, given))
    with mpmath.workdps(400):
        wanted = [
            rounded(Fraction(int(mpmath.floor(mpmath.sqrt(each) * 2**700)), 2**700), name, mode)
            if math.isfinite(each) and each > 0
            else math.nan
            if each < 0 or math.isnan(each)
            else each
            for each in given.tolist()
        ]
    compare(found, wanted)
    found = evaluate(f"rcp.{mode}.{name} %result, %a", name, a=(name, given))
    wanted = [
        rounded(1 / Fraction(each), name, mode)
        if math.isfinite(each) and each
        else math.nan
        if math.isnan(each)
        else math.copysign(0.0 if each else math.inf, each)
        for each in given.tolist()
    ]
    compare(found, wanted)


def test_subnormals_are_flushed_where_asked():
    tiny = float(np.finfo(np.float32).tiny)
    given = {"a": ("f32", [tiny / 2, -tiny / 2, tiny, tiny]), "b": ("f32", [1.0, 1.0, 0.5, -0.5])}
    compare(evaluate("mul.ftz.f32 %result, %a, %b", "f32", **given), [0.0, -0.0, 0.0, -0.0])
    compare(evaluate("mul.f32 %result, %a, %b", "f32", **given), [tiny / 2, -tiny / 2, tiny / 2, -tiny / 2])
    found = evaluate("setp.gt.ftz.f32 %result, %a, %b", "pred", a=("f32", [tiny / 2]), b=("f32", 0.0))
    assert found.tolist() == [False]
    compare(evaluate("abs.ftz.f32 %result, %a", "f32", a=given["a"]), [0.0, 0.0, tiny, tiny])


def test_saturation():
    given = [-1.0, -0.0, 0.25, 1.5, np.nan, np.inf]
    compare(evaluate("add.sat.f32 %result, %a, 0f00000000", "f32", a=("f32", given)), [0.0, 0.0, 0.25, 1.0, 0.0, 1.0])


@each_type
def test_minima_and_maxima(name: str):
    pairs = np.array(
        [(1.0, 2.0), (-0.0, 0.0), (0.0, -0.0), (np.nan, 1.0), (1.0, np.nan), (np.nan, np.nan), (np.inf, 1.0)]
    )
    operands = {"a": (name, pairs[:, 0]), "b": (name, pairs[:, 1])}
    nan = math.nan
    compare(evaluate(f"min.{name} %result, %a, %b", name, **operands), [1.0, -0.0, -0.0, 1.0, 1.0, nan, 1.0])
    compare(evaluate(f"max.{name} %result, %a, %b", name, **operands), [2.0, 0.0, 0.0, 1.0, 1.0, nan, math.inf])
    if name != "f64":
        compare(evaluate(f"min.NaN.{name} %result, %a, %b", name, **operands), [1.0, -0.0, -0.0, nan, nan, nan, 1.0])


@each_type
def test_signs_are_bits(name: str):
    given = np.array([0.0, -0.0, 1.5, -1.5, np.inf, np.nan])
    compare(evaluate(f"neg.{name} %result, %a", name, a=(name, given)), [-0.0, 0.0, -1.5, 1.5, -math.inf, math.nan])
    compare(evaluate(f"abs.{name} %result, %a", name, a=(name, given)), [0.0, 0.0, 1.5, 1.5, math.inf, math.nan])
    if name != "f16":
        found = evaluate(
            f"copysign.{name} %result, %a, %b", name, a=(name, [-1.0, 1.0, -0.0]), b=(name, [3.0, -3.0, 0.0])
        )
        compare(found, [-3.0, 3.0, -0.0])


COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


@each_type
@pytest.mark.parametrize("opcode", COMPARISONS)
def test_comparisons(name: str, opcode: str):
    pairs = np.array(list(itertools.product((0.0, -0.0, 1.0, -np.inf, np.nan), repeat=2)))
    operands = {"a": (name, pairs[:, 0]), "b": (name, pairs[:, 1])}
    holds = [eval(f"a {COMPARISONS[opcode]} b", {"a": a, "b": b}) for a, b in pairs.tolist()]
    missing = np.isnan(pairs).any(axis=1)
    found = evaluate(f"setp.{opcode}.{name} %result, %a, %b", "pred", **operands)
    np.testing.assert_array_equal(found, holds & ~missing)
    found = evaluate(f"setp.{opcode}u.{name} %result, %a, %b", "pred", **operands)
    np.testing.assert_array_equal(found, holds | missing)
    np.testing.assert_array_equal(evaluate(f"setp.nan.{name} %result, %a, %b", "pred", **operands), missing)
    np.testing.assert_array_equal(evaluate(f"setp.num.{name} %result, %a, %b", "pred", **operands), ~missing)


def test_approximations():
    given = np.array([0.25, 1.0, 3.0, 10.0])
    for opcode, function in (
        ("rsqrt", lambda x: x**-0.5),
        ("sin", np.sin),
        ("cos", np.cos),
        ("lg2", np.log2),
        ("ex2", np.exp2),
    ):
        found = evaluate(f"{opcode}.approx.f32 %result, %a", "f32", a=("f32", given))
        np.testing.assert_allclose(found, function(given), rtol=1e-6)
    found = evaluate("rcp.approx.ftz.f64 %result, %a", "f64", a=("f64", given))
    np.testing.assert_allclose(found, 1 / given, rtol=2.0**-20)
    assert not (found.view(np.uint64) & np.uint64(0xFFFFFFFF)).any()
    assert evaluate("rcp.approx.ftz.f64 %result, %a", "f64", a=("f64", [1e-310])) == np.inf


def test_two_halves_in_a_register():
    a, b = (np.array(each, np.float16) for each in ([1.0, -2.0, 3.0, 65504.0], [0.5, 0.25, -1.0, 65504.0]))
    packed = {"a": ("u32", a.view(np.uint32)), "b": ("u32", b.view(np.uint32))}
    found = evaluate("add.rn.f16x2 %result, %a, %b", "u32", **packed)
    assert found.view(np.float16).tolist() == [1.5, -1.75, 2.0, math.inf]
    found = evaluate("fma.rn.f16x2 %result, %a, %b, %b", "u32", **packed)
    assert found.view(np.float16).tolist() == [1.0, -0.25, -4.0, math.inf]


def test_kinds_of_numbers():
    given = [0.0, 1e-310, 1.0, math.inf, math.nan]
    for kind, wanted in (
        ("finite", [True, True, True, False, False]),
        ("infinite", [False, False, False, True, False]),
        ("number", [True, True, True, True, False]),
        ("notanumber", [False, False, False, False, True]),
        ("normal", [False, False, True, False, False]),
        ("subnormal", [False, True, False, False, False]),
    ):
        assert evaluate(f"testp.{kind}.f64 %result, %a", "pred", a=("f64", given)).tolist() == wanted
