"""Expressions: what they read, evaluate to, and emit."""

from __future__ import annotations

import math

import pytest

from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.module import Module
from irad.ir.text.printer import print_module
from irad.ir.values import Value
from irad.ir.verifier import verify
from irad.ruleset.expr import (
    Expr,
    Numeral,
    Symbol,
    apply,
    call_function,
    emit,
    equal,
    evaluate,
    expression,
    is_nan,
    sign,
    symbols_of,
    where,
)

X, Z, Y = Symbol("x0"), Symbol("x1"), Symbol("y")


def code(expr: Expr, type_: types.FloatType = types.DOUBLE, integer: bool = False) -> str:
    module = Module()
    parameters = [type_, types.I32 if integer else type_, type_]
    function = module.define("f", types.function_type(type_, parameters), ["x0", "x1", "y"])
    builder = Builder(function.add_block("entry"))
    values: dict[str, Value] = dict(zip(("x0", "x1", "y"), function.params, strict=True))
    builder.ret(emit(expr, builder, values, type_))
    verify(module)
    return print_module(module)


def test_equality_is_structural():
    assert X * X + 1.0 == Symbol("x0") * Symbol("x0") + 1.0
    assert X + 1.0 != X + 2.0
    assert hash(X / 2.0) == hash(X / 2.0)


def test_numbers_become_constants():
    assert expression(2) == Numeral(2.0)
    assert 1.0 - X == Numeral(1.0) - X
    assert 2 * X == Numeral(2) * X


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        (Numeral(1.0), set()),
        (X, {"x0"}),
        (1.0 - Y * Y, {"y"}),
        (-apply("cos", X / Z), {"x0", "x1"}),
        (where(X > Z, Y, 0.0), {"x0", "x1", "y"}),
        (where(is_nan(X), 1.0, 0.0), {"x0"}),
    ],
)
def test_symbols_of(expr: Expr, expected: set[str]):
    assert symbols_of(expr) == expected


VALUES = {"x0": 3.0, "x1": -2.0, "y": 0.5}


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        (X + Z, 1.0),
        (1 + X, 4.0),
        (X - Z, 5.0),
        (1 - X, -2.0),
        (X * Z, -6.0),
        (2 * X, 6.0),
        (X / Z, -1.5),
        (6 / X, 2.0),
        (-X, -3.0),
        (where(X < Z, 1, 2), 2.0),
        (where(X <= 3.0, 1, 2), 1.0),
        (where(X > Z, 1, 2), 1.0),
        (where(X >= Z, 1, 2), 1.0),
        (where(equal(X, 3.0), 1, 2), 1.0),
        (where(is_nan(X), 1, 2), 2.0),
        (apply("hypot", X, 4.0), 5.0),
        (sign(X), 1.0),
        (sign(Z), -1.0),
        (sign(X - 3.0), 0.0),
    ],
)
def test_evaluate(expr: Expr, expected: float):
    assert evaluate(expr, VALUES) == expected


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        (X / 0.0, math.inf),
        (Z / 0.0, -math.inf),
        (X / -0.0, -math.inf),
        (Numeral(0.0) / 0.0, math.nan),
        (Numeral(math.nan) / 0.0, math.nan),
        (apply("log", 0.0), -math.inf),
        (apply("log", Z), math.nan),
        (apply("exp", 1e4), math.inf),
        (apply("pow", 0.0, -1.0), math.inf),
        (apply("pow", -0.0, -3.0), -math.inf),
        (apply("pow", -10.0, 401.0), -math.inf),
        (apply("pow", -10.0, 400.0), math.inf),
        (apply("pow", -2.0, 0.5), math.nan),
        (apply("sinh", -1e4), -math.inf),
        (apply("log1p", -1.0), -math.inf),
        (apply("atanh", 1.0), math.inf),
        (apply("lgamma", 0.0), math.inf),
        (apply("tgamma", -0.0), -math.inf),
        (apply("tgamma", -1.0), math.nan),
        (apply("fmax", math.nan, 1.0), 1.0),
        (apply("maximum", math.nan, 1.0), math.nan),
        (apply("rint", 2.5), 2.0),
        (apply("round", 2.5), 3.0),
        (apply("round", 0.49999999999999994), 0.0),
        (apply("floor", math.inf), math.inf),
        (sign(Numeral(math.nan)), math.nan),
    ],
)
def test_evaluate_follows_ieee(expr: Expr, expected: float):
    given = evaluate(expr, VALUES)
    assert given == pytest.approx(expected, nan_ok=True)
    assert math.copysign(1.0, given) == math.copysign(1.0, expected) or math.isnan(expected)


def test_evaluate_with_functions_of_ones_own():
    assert evaluate(apply("double", X), {"x0": 2.0}, {"double": lambda x: 2 * x}) == 4.0


def test_emits_arithmetic():
    text = code(-(X + Z) * (X - 1.0) / Y)
    assert [line.split(" = ")[1].split()[0] for line in text.splitlines() if " = f" in line] == [
        "fadd",
        "fneg",
        "fsub",
        "fmul",
        "fdiv",
    ]


def test_emits_a_choice():
    text = code(where(X >= 2.0, Z, Y))
    assert "fcmp oge double %x0, 0x4000000000000000" in text or "fcmp oge double %x0, 2.0" in text
    assert "select i1" in text


def test_a_shared_part_is_emitted_once():
    square = X * X
    assert code(square + square).count("fmul") == 1


def test_a_deeply_shared_expression_takes_linear_time():
    expr: Expr = X
    for _ in range(200):
        expr = expr + expr
    assert symbols_of(expr) == {"x0"}
    assert evaluate(expr, {"x0": 1.0}) == 2.0**200
    assert code(expr).count("fadd") == 200


def test_single_precision_rounds_constants_and_picks_functions():
    text = code(apply("cosh", X) * 0.1, types.FLOAT)
    assert "call float @coshf(float %x0)" in text
    assert "0x3FB99999A0000000" in text  # 0.1 as a float, in LLVM's spelling


def test_an_integer_argument_is_converted_where_a_number_is_wanted():
    text = code(X * Z, integer=True)
    assert "sitofp i32 %x1 to double" in text


def test_an_integer_argument_stays_one_for_an_integer_parameter():
    text = code(apply("ldexp", X, Z - 1.0), integer=True)
    assert "add i32 %x1, -1" in text
    assert "@llvm.ldexp.f64.i32(double %x0, i32" in text
    assert "sitofp" not in text


def test_other_integer_arithmetic_is_refused():
    with pytest.raises(TypeError, match="is not an integer expression"):
        code(apply("ldexp", X, Z * 2.0), integer=True)


def test_library_calls_are_pure():
    assert "declare double @tanh(double) nounwind willreturn memory(none)" in code(apply("tanh", X))


def test_unknown_functions_are_refused():
    with pytest.raises(KeyError):
        code(apply("frobnicate", X))
    with pytest.raises(KeyError):
        evaluate(apply("frobnicate", X), {"x0": 1.0})


def test_call_function_uses_what_the_module_declares():
    module = Module()
    declared = module.declare("tanhf", types.function_type(types.FLOAT, [types.FLOAT]))
    function = module.define("f", types.function_type(types.FLOAT, [types.FLOAT]))
    builder = Builder(function.add_block())
    builder.ret(call_function("tanh", builder, function.params, types.FLOAT))
    assert module.functions["tanhf"] is declared
    assert len(declared.users) == 1
