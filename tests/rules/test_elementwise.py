"""Elementwise rules: formulas against high-precision derivatives, code against formulas."""

from __future__ import annotations

import ctypes
import math
import random
from collections.abc import Callable
from itertools import product

import llvmlite.binding as llvm
import mpmath
import numpy as np
import pytest

from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.module import Module
from irad.ir.text.printer import print_module
from irad.ir.verifier import verify
from irad.rules.elementwise import RULES
from irad.ruleset import reference
from irad.ruleset.expr import emit, evaluate, symbols_of
from irad.ruleset.interface import Elementwise
from irad.ruleset.symbols import TABLE
from irad.testing.check_rule import check_rule

NAMED = {rule.name: rule for rule in RULES if isinstance(rule, Elementwise)}
SMOOTH = [rule for rule in NAMED.values() if any(p is not None for p in rule.partials)]
SQRT2 = mpmath.sqrt(2)


def fmod(a, b):
    return a - b * int(a / b)


def remainder(a, b):
    return a - b * mpmath.nint(a / b)


# The functions in arbitrary precision; what mpmath has under the same name is taken from there.
EXACT = {
    "exp2": lambda x: mpmath.power(2, x),
    "exp10": lambda x: mpmath.power(10, x),
    "log2": lambda x: mpmath.log(x, 2),
    "pow": mpmath.power,
    "powi": mpmath.power,
    "rsqrt": lambda x: 1 / mpmath.sqrt(x),
    "rcbrt": lambda x: mpmath.sign(x) / mpmath.cbrt(abs(x)),
    "cbrt": lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)),
    "erfcx": lambda x: mpmath.exp(x * x) * mpmath.erfc(x),
    "erfcinv": lambda x: mpmath.erfinv(1 - x),
    "normcdf": mpmath.ncdf,
    "normcdfinv": lambda p: SQRT2 * mpmath.erfinv(2 * p - 1),
    "tgamma": mpmath.gamma,
    "lgamma": lambda x: mpmath.log(abs(mpmath.gamma(x))),
    "jn": mpmath.besselj,
    "y0": lambda x: mpmath.bessely(0, x),
    "y1": lambda x: mpmath.bessely(1, x),
    "yn": mpmath.bessely,
    "fabs": abs,
    "copysign": lambda a, b: abs(a) * mpmath.sign(b),
    "fmax": max,
    "fmin": min,
    "maximum": max,
    "minimum": min,
    "fdim": lambda a, b: max(a - b, 0),
    "saturate": lambda x: min(max(x, 0), 1),
    "fmod": fmod,
    "remainder": remainder,
    "nextafter": lambda a, b: a,
    "ldexp": lambda x, n: x * mpmath.power(2, n),
    "identity": lambda x: x,
    "fma": lambda a, b, c: a * b + c,
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "reciprocal": lambda x: 1 / x,
    "digamma": mpmath.digamma,
    "trigamma": lambda x: mpmath.psi(1, x),
}
# Names that partials call and Python's math lacks.
FUNCTIONS = dict(reference.FUNCTIONS) | {
    name: (lambda f: lambda *args: float(f(*args)))(EXACT.get(name) or getattr(mpmath, name))
    for name in ("j0", "j1", "y0", "y1", "jn", "yn")
}


def exact(name: str) -> Callable[..., mpmath.mpf]:
    return EXACT.get(name) or getattr(mpmath, name)


def points(rule: Elementwise, count: int = 12) -> list[tuple[float, ...]]:
    generator = random.Random(rule.name)
    drawn = [[generator.uniform(d.low, d.high) for d in rule.domains] for _ in range(count)]
    whole = TABLE[rule.name].integers
    return [tuple(float(round(x)) if i in whole else x for i, x in enumerate(point)) for point in drawn]


def values_at(rule: Elementwise, point: tuple[float, ...]) -> dict[str, float]:
    with mpmath.workdps(30):
        y = float(exact(rule.name)(*map(mpmath.mpf, point)))
    return {"y": y} | {f"x{i}": x for i, x in enumerate(point)}


@pytest.mark.parametrize("rule", SMOOTH, ids=lambda rule: rule.name)
def test_partials_are_the_derivatives(rule: Elementwise):
    for point, argument in product(points(rule), range(rule.arity)):
        partial = rule.partials[argument]
        if argument in TABLE[rule.name].integers or (rule.name, argument) in {("copysign", 1), ("nextafter", 1)}:
            assert partial is None
            continue
        assert partial is not None
        with mpmath.workdps(30):
            order = tuple(int(i == argument) for i in range(rule.arity))
            expected = float(mpmath.diff(exact(rule.name), tuple(map(mpmath.mpf, point)), order))
        given = evaluate(partial, values_at(rule, point), FUNCTIONS)
        # The result that a partial starts from is rounded; 1 - y² amplifies that towards the ends.
        assert given == pytest.approx(expected, rel=2e-13, abs=2e-15), point


@pytest.mark.parametrize("rule", [r for r in NAMED.values() if r.name in FUNCTIONS], ids=lambda rule: rule.name)
def test_the_public_check_accepts_every_rule(rule: Elementwise):
    check_rule(rule, functions=FUNCTIONS)


STEPS = ("floor", "ceil", "trunc", "rint", "round", "logb")


@pytest.mark.parametrize("name", STEPS)
def test_steps_carry_no_derivative(name: str):
    assert NAMED[name].partials == (None,)


def test_every_other_rule_carries_one():
    assert set(NAMED) - {rule.name for rule in SMOOTH} == set(STEPS)


inf = math.inf
POLICY = [
    # name, argument, point, partial
    ("fabs", 0, (0.0,), 0.0),
    ("fabs", 0, (-0.0,), 0.0),
    ("fabs", 0, (inf,), 1.0),
    ("sqrt", 0, (0.0,), inf),
    ("cbrt", 0, (0.0,), inf),
    ("log", 0, (0.0,), inf),
    ("log1p", 0, (-1.0,), inf),
    ("asin", 0, (1.0,), inf),
    ("acos", 0, (-1.0,), -inf),
    ("acosh", 0, (1.0,), inf),
    ("atanh", 0, (1.0,), inf),
    ("hypot", 0, (0.0, 0.0), 0.0),
    ("hypot", 1, (0.0, 0.0), 0.0),
    ("atan2", 0, (0.0, 0.0), 0.0),
    ("atan2", 1, (0.0, 0.0), 0.0),
    ("atan2", 0, (1e-200, 1e-200), 0.5e200),
    ("atan2", 1, (1e200, 1e200), -0.5e-200),
    ("pow", 0, (0.0, 0.0), 0.0),
    ("pow", 0, (0.0, 1.0), 1.0),
    ("pow", 0, (0.0, 2.0), 0.0),
    ("pow", 0, (0.0, 0.5), inf),
    ("pow", 0, (-2.0, 3.0), 12.0),
    ("pow", 0, (-2.0, -1.0), -0.25),
    ("pow", 0, (1e-200, 2.0), 2e-200),
    ("pow", 1, (0.0, 2.0), 0.0),
    ("pow", 1, (0.0, 0.0), 0.0),
    ("pow", 1, (-2.0, 2.0), math.nan),
    ("powi", 0, (0.0, 0.0), 0.0),
    ("powi", 0, (0.0, 1.0), 1.0),
    ("powi", 0, (-3.0, 2.0), -6.0),
    ("copysign", 0, (0.0, -1.0), 0.0),
    ("copysign", 0, (-2.0, 3.0), -1.0),
    ("copysign", 0, (2.0, -0.0), -1.0),
    ("maximum", 0, (1.0, 1.0), 1.0),
    ("maximum", 1, (1.0, 1.0), 0.0),
    ("minimum", 0, (1.0, 1.0), 1.0),
    ("minimum", 1, (1.0, 1.0), 0.0),
    ("fmax", 0, (math.nan, 1.0), 0.0),
    ("fmax", 1, (math.nan, 1.0), 1.0),
    ("fmin", 0, (1.0, math.nan), 1.0),
    ("fmin", 1, (1.0, math.nan), 0.0),
    ("fdim", 0, (1.0, 1.0), 0.0),
    ("fmod", 1, (1e17, 3.0), -33333333333333332.0),
    ("fmod", 0, (7.0, 2.0), 1.0),
    ("remainder", 1, (7.0, 2.0), -4.0),
    ("nextafter", 0, (1.0, 2.0), 1.0),
    ("ldexp", 0, (3.0, 5.0), 32.0),
    ("tgamma", 0, (1.4616321449683623,), 0.0),
    ("lgamma", 0, (-0.5,), 0.03648997397857652),
    ("erf", 0, (30.0,), 0.0),
    ("exp", 0, (-inf,), 0.0),
]


@pytest.mark.parametrize(("name", "argument", "point", "expected"), POLICY)
def test_policy_at_kinks_and_poles(name: str, argument: int, point: tuple[float, ...], expected: float):
    partial = NAMED[name].partials[argument]
    assert partial is not None
    values = {"y": reference.call(name, point, FUNCTIONS)} | {f"x{i}": x for i, x in enumerate(point)}
    given = evaluate(partial, values, FUNCTIONS)
    assert given == pytest.approx(expected, rel=1e-13, abs=1e-15, nan_ok=True)


@pytest.mark.parametrize(("name", "weights"), [("maximum", 1.0), ("minimum", 1.0), ("fmax", 1.0), ("fmin", 1.0)])
def test_weights_of_a_choice_sum_to_one(name: str, weights: float):
    special = (0.0, -0.0, 1.0, -inf, inf, math.nan)
    for a, b in product(special, special):
        values = {"x0": a, "x1": b, "y": reference.call(name, (a, b), FUNCTIONS)}
        given = [evaluate(p, values) for p in NAMED[name].partials if p is not None]
        assert sum(given) == weights, (a, b)


def test_what_must_be_at_hand_is_read_off_the_formula():
    reads = {
        name: [p and symbols_of(p) for p in NAMED[name].partials] for name in ("sin", "tanh", "exp", "pow", "fmod")
    }
    assert reads["sin"] == [{"x0"}]
    assert reads["tanh"] == [{"y"}]
    assert reads["exp"] == [{"y"}]
    assert reads["pow"] == [{"x0", "x1"}, {"x0", "x1", "y"}]
    assert reads["fmod"] == [frozenset(), {"x0", "x1", "y"}]


# ------------------------------------------------------------------------------------------------ code

CTYPE = {types.DOUBLE: ctypes.c_double, types.FLOAT: ctypes.c_float}
# llvm.powi becomes a call of the compiler's own library, which this process need not have.
CALLABLE = [rule for rule in SMOOTH if rule.name not in {"powi"}]


def symbol_of(rule: Elementwise, argument: int, type_: types.FloatType) -> str:
    return f"partial_{rule.name}_{argument}_{type_}"


def partials_of(rules: list[Elementwise]) -> Module:
    module = Module()
    for rule, type_ in product(rules, (types.DOUBLE, types.FLOAT)):
        integers = TABLE[rule.name].integers
        parameters = [types.I32 if i in integers else type_ for i in range(rule.arity)]
        names = [f"x{i}" for i in range(rule.arity)] + ["y"]
        for argument, partial in enumerate(rule.partials):
            if partial is None:
                continue
            signature = types.function_type(type_, [*parameters, type_])
            function = module.define(symbol_of(rule, argument, type_), signature, names)
            builder = Builder(function.add_block("entry"))
            builder.ret(emit(partial, builder, dict(zip(names, function.params, strict=True)), type_))
    verify(module)
    return module


@pytest.fixture(scope="module")
def engine() -> llvm.ExecutionEngine:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    compiled = llvm.parse_assembly(print_module(partials_of(CALLABLE)))
    compiled.verify()
    machine = llvm.Target.from_default_triple().create_target_machine()
    engine = llvm.create_mcjit_compiler(compiled, machine)
    engine.finalize_object()
    return engine


@pytest.mark.parametrize("type_", [types.DOUBLE, types.FLOAT], ids=str)
@pytest.mark.parametrize("rule", CALLABLE, ids=lambda rule: rule.name)
def test_code_computes_the_formula(engine: llvm.ExecutionEngine, rule: Elementwise, type_: types.FloatType):
    real = CTYPE[type_]
    kinds = [ctypes.c_int32 if i in TABLE[rule.name].integers else real for i in range(rule.arity)]
    for point, (argument, partial) in product(points(rule), enumerate(rule.partials)):
        if partial is None:
            continue
        rounded = tuple(real(x).value if kind is real else int(x) for kind, x in zip(kinds, point, strict=True))
        values = values_at(rule, rounded)
        values["y"] = real(values["y"]).value
        address = engine.get_function_address(symbol_of(rule, argument, type_))
        given = ctypes.CFUNCTYPE(real, *kinds, real)(address)(*rounded, values["y"])
        expected = evaluate(partial, values, FUNCTIONS)
        tolerance = 1e-14 if type_ is types.DOUBLE else 4e-6
        assert given == pytest.approx(expected, rel=tolerance, abs=tolerance * 1e-1), point


@pytest.mark.parametrize(
    ("x", "expected"), [(1.4616321449683623, 0.0), (1e-3, mpmath.digamma(1e-3)), (-7.5, None), (1e8, None)]
)
def test_digamma_in_code(engine: llvm.ExecutionEngine, x: float, expected: float | None):
    call = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double, ctypes.c_double)
    given = call(engine.get_function_address("partial_lgamma_0_double"))(x, 0.0)
    with mpmath.workdps(30):
        truth = float(mpmath.digamma(mpmath.mpf(x)))
    assert given == pytest.approx(truth, rel=1e-14)
    assert expected is None or given == pytest.approx(float(expected), rel=1e-14, abs=1e-15)


def test_digamma_keeps_relative_accuracy_around_its_root():
    partial = NAMED["lgamma"].partials[0]
    assert partial is not None
    for x in np.linspace(1.2, 1.9, 141):
        with mpmath.workdps(30):
            expected = float(mpmath.digamma(mpmath.mpf(float(x))))
        assert evaluate(partial, {"x0": float(x)}) == pytest.approx(expected, rel=1e-14)


def test_a_helper_is_defined_once_and_only_where_it_is_used():
    module = partials_of([NAMED["lgamma"], NAMED["tgamma"]])
    defined = [f.name for f in module.defined_functions() if not (f.name or "").startswith("partial_")]
    assert defined == ["irad_digamma_f64", "irad_digamma_f32"]
    assert "irad_digamma_f64" not in partials_of([NAMED["sin"]]).functions


def test_constants_and_calls_take_the_precision():
    text = print_module(partials_of([NAMED["erf"], NAMED["sinh"]]))
    single = text[text.index("@partial_sinh_0_float") :]
    assert "call float @coshf(float" in single
    assert "declare double @cosh(double) nounwind willreturn memory(none)" in text
    assert "call float @llvm.exp.f32(float" in text


def test_integer_arguments_stay_integers():
    text = print_module(partials_of([NAMED["powi"]]))
    assert "call double @llvm.powi.f64.i32(double %x0, i32" in text


def test_on_a_gpu_maths_goes_to_libdevice():
    module = Module(triple="nvptx64-nvidia-cuda")
    function = module.define("f", types.function_type(types.FLOAT, [types.FLOAT]), ["x0"])
    builder = Builder(function.add_block("entry"))
    partial = NAMED["sin"].partials[0]
    assert partial is not None
    builder.ret(emit(partial, builder, {"x0": function.params[0]}, types.FLOAT))
    assert "__nv_cosf" in module.functions
