"""Conversions: extension, truncation, saturation, roundings, NaN."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from tests.cuda.ptx_interpreter.faults import PtxFault
from tests.cuda.ptx_interpreter.programs import evaluate
from tests.cuda.ptx_interpreter.test_floats import compare, rounded
from tests.cuda.ptx_interpreter.test_integers import values, wrapped
from tests.cuda.ptx_interpreter.types import ptx_type

INTEGERS = ("u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64")
ROUND = {"rni": round, "rzi": math.trunc, "rmi": math.floor, "rpi": math.ceil}


@pytest.mark.parametrize("target", INTEGERS)
@pytest.mark.parametrize("source", INTEGERS)
def test_integers_are_extended_or_cut(source: str, target: str):
    given = values(source)
    found = evaluate(f"cvt.{target}.{source} %result, %a", target, a=(source, given))
    assert found.tolist() == [wrapped(value, target) for value in given]
    if source != target:
        limits = np.iinfo(ptx_type(target).dtype)
        found = evaluate(f"cvt.sat.{target}.{source} %result, %a", target, a=(source, given))
        assert found.tolist() == [max(int(limits.min), min(int(limits.max), value)) for value in given]


@pytest.mark.parametrize("target", ["s16", "u16", "s32", "u32", "s64", "u64"])
@pytest.mark.parametrize("source", ["f16", "f32", "f64"])
@pytest.mark.parametrize("mode", ROUND)
def test_numbers_as_integers_saturate(source: str, target: str, mode: str):
    given = np.array(
        [0.0, -0.0, 0.5, 1.5, 2.5, -0.5, -1.5, -2.7, 100.49, 1e4, -1e4, 1e10, -1e10, 1e30, -1e30, np.inf, -np.inf]
    )
    with np.errstate(over="ignore"):
        given = given.astype(ptx_type(source).dtype)
    limits = np.iinfo(ptx_type(target).dtype)
    low, high = int(limits.min), int(limits.max)
    wanted = [
        max(low, min(high, ROUND[mode](value) if math.isfinite(value) else (high if value > 0 else low)))
        for value in given.tolist()
    ]
    assert evaluate(f"cvt.{mode}.{target}.{source} %result, %a", target, a=(source, given)).tolist() == wanted
    [missing] = evaluate(f"cvt.{mode}.{target}.{source} %result, %a", target, a=(source, [np.nan])).tolist()
    wide = source == "f64" or target.endswith("64")
    assert missing == (wrapped(1 << (ptx_type(target).bits - 1), target) if wide else 0)


@pytest.mark.parametrize("target", ["f16", "f32", "f64"])
@pytest.mark.parametrize("source", ["s32", "u32", "s64", "u64"])
@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
def test_integers_as_numbers(source: str, target: str, mode: str):
    given = [*values(source), 16777217, 2049, 65519, 65521, 70000]
    found = evaluate(f"cvt.{mode}.{target}.{source} %result, %a", target, a=(source, given))
    assert found.tolist() == [rounded(Fraction(value), target, mode) for value in given]


@pytest.mark.parametrize(("target", "source"), [("f16", "f32"), ("f16", "f64"), ("f32", "f64")])
@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
def test_numbers_with_fewer_digits(source: str, target: str, mode: str):
    rng = np.random.default_rng(3)
    given = np.concatenate([rng.normal(size=40), [1e-8, -1e-8, 1e6, -1e6, 1e-41, 0.1, 1 + 2.0**-11, 1 + 3 * 2.0**-11]])
    given = given.astype(ptx_type(source).dtype)
    found = evaluate(f"cvt.{mode}.{target}.{source} %result, %a", target, a=(source, given))
    compare(found, [rounded(Fraction(value), target, mode) for value in given.tolist()])
    special = evaluate(f"cvt.{mode}.{target}.{source} %result, %a", target, a=(source, [np.nan, -np.inf, -0.0]))
    compare(special, [math.nan, -math.inf, -0.0])


def test_numbers_with_more_digits_stay():
    given = [0.1, -0.0, np.inf, np.nan, 1e-40]
    found = evaluate("cvt.f64.f32 %result, %a", "f64", a=("f32", given))
    compare(found, np.array(given, np.float32).astype(float).tolist())
    compare(evaluate("cvt.ftz.f64.f32 %result, %a", "f64", a=("f32", [1e-40, -1e-40])), [0.0, -0.0])


@pytest.mark.parametrize("mode", ROUND)
@pytest.mark.parametrize("name", ["f16", "f32", "f64"])
def test_whole_numbers(name: str, mode: str):
    given = np.array([0.5, 1.5, 2.5, -0.5, -1.5, 3.7, -3.7])
    found = evaluate(f"cvt.{mode}.{name}.{name} %result, %a", name, a=(name, given))
    compare(found, [math.copysign(ROUND[mode](value), value) for value in given.astype(ptx_type(name).dtype).tolist()])


def test_saturation():
    found = evaluate("cvt.sat.f32.f32 %result, %a", "f32", a=("f32", [-1.0, 0.5, 2.0, np.nan]))
    compare(found, [0.0, 0.5, 1.0, 0.0])


@pytest.mark.parametrize("text", ["cvt.f32.f64", "cvt.s32.f64", "cvt.f32.s32", "cvt.rn.s32.f32"])
def test_a_conversion_that_needs_a_rounding_says_which(text: str):
    target, source = text.split(".")[-2:]
    with pytest.raises(PtxFault, match="does not know"):
        evaluate(f"{text} %result, %a", target, a=(source, [1]))
