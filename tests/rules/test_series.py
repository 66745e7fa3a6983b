"""Taylor series of every scalar function of the catalogue, against series in arbitrary precision."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import llvmlite.binding as llvm
import mpmath
import numpy as np
import pytest

from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.instructions import Call
from irad.ir.module import Module
from irad.ir.text.printer import print_module
from irad.ir.values import Value, const_int
from irad.ir.verifier import verify
from irad.passes.forward.taylor import Series
from irad.rules.elementwise import RULES
from irad.ruleset.interface import Elementwise
from irad.ruleset.registry import Registry
from irad.ruleset.symbols import TABLE
from tests.rules.test_elementwise import CALLABLE, exact, points

ORDER = 6
POINTS = 3
# The curve in each argument, beside its value.
CURVES = ([1.0, -0.5, 0.25, 0.0, 0.125, -0.0625], [-0.75, 0.5, 0.0, 0.25, 0.5, 0.0], [0.5, 0.0, 1.0, 0.0, 0.0, -0.25])
REGISTRY = Registry.of(*RULES)


@dataclass
class Lanes:
    """Stands for the visitor of a call: coefficients of the arguments are parameters, those of the value emitted."""

    after: Builder
    values: dict[Value, Value]
    known: dict[Value, list[Value]]
    zero_wins: bool = False
    registry: Registry = REGISTRY

    def value(self, primal: Value) -> Value:
        return self.values[primal]

    def coefficient(self, primal: Value, order: int) -> Value | None:
        found = self.known.get(primal)
        return found and found[order - 1]


def call_of(rule: Elementwise, type_: types.FloatType) -> Call:
    """A call of the function; its arguments are parameters."""
    integers = TABLE[rule.name].integers
    signature = types.function_type(type_, [types.I32 if i in integers else type_ for i in range(rule.arity)])
    function = Module().define("caller", signature, [f"x{i}" for i in range(rule.arity)])
    made = Builder(function.add_block("entry")).call(function, function.params)
    assert isinstance(made, Call)
    return made


def varying(rule: Elementwise) -> list[int]:
    return [i for i, partial in enumerate(rule.partials) if partial is not None]


def emitted(rules: Sequence[Elementwise], type_: types.FloatType) -> Module:
    """Functions `void (value, arguments, coefficients of the arguments, ptr out)`."""
    module = Module()
    for rule in rules:
        call = call_of(rule, type_)
        count = ORDER * len(varying(rule))
        signature = [type_, *(argument.type for argument in call.arguments), *[type_] * count, types.PTR]
        names = [f"p{i}" for i in range(len(signature))]
        function = module.define(f"series_{rule.name}", types.function_type(types.VOID, signature), names)
        build, (y, *given, out) = Builder(function.add_block("entry")), function.params
        known: dict[Value, list[Value]] = {call: []}
        for number, i in enumerate(varying(rule)):
            first = rule.arity + number * ORDER
            known[call.arguments[i]] = list(given[first : first + ORDER])
        lanes: Any = Lanes(build, dict(zip((call, *call.arguments), (y, *given), strict=False)), known)
        series, size = Series(lanes, call, rule), type_.bits // 8
        for order in range(1, ORDER + 1):
            found = series.of_call(order)
            assert found is not None
            known[call].append(found)
            build.store(found, build.byte_offset(out, const_int(types.I64, size * (order - 1))))
        build.ret()
    verify(module)
    return module


@pytest.fixture(scope="module")
def run() -> Callable[..., list[float]]:
    """Computes the coefficients of a function, in double precision."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    compiled = llvm.parse_assembly(print_module(emitted(CALLABLE, types.DOUBLE)))
    engine = llvm.create_mcjit_compiler(compiled, llvm.Target.from_default_triple().create_target_machine())
    engine.finalize_object()

    def computed(rule: Elementwise, point: Sequence[float], curves: Sequence[Sequence[float]]) -> list[float]:
        integers, out = TABLE[rule.name].integers, (ctypes.c_double * ORDER)()
        given = [ctypes.c_int32(int(x)) if i in integers else ctypes.c_double(x) for i, x in enumerate(point)]
        moving = [ctypes.c_double(c) for i in varying(rule) for c in curves[i]]
        y = ctypes.c_double(reference_value(rule, point))
        arguments = [y, *given, *moving, ctypes.byref(out)]
        ctypes.CFUNCTYPE(None, *map(type, arguments[:-1]), ctypes.c_void_p)(
            engine.get_function_address(f"series_{rule.name}")
        )(*arguments)
        return list(out)

    computed.engine = engine  # type: ignore[attr-defined]  # which has to live as long
    return computed


def reference_value(rule: Elementwise, point: Sequence[float]) -> float:
    with mpmath.workdps(30):
        return float(exact(rule.name)(*map(mpmath.mpf, point)))


def truth(rule: Elementwise, point: Sequence[float]) -> list[float]:
    """The coefficients by differences in arbitrary precision."""

    def along(t: Any) -> Any:
        moved = [
            x + sum(c * t ** (k + 1) for k, c in enumerate(curve)) for x, curve in zip(point, CURVES, strict=False)
        ]
        fixed = [x if i in varying(rule) else mpmath.mpf(point[i]) for i, x in enumerate(moved)]
        return exact(rule.name)(*fixed)

    with mpmath.workdps(40):
        return [float(c) for c in mpmath.taylor(along, mpmath.mpf(0), ORDER)[1:]]


def test_a_slope_for_one_point_only_is_no_series_unless_the_argument_stays_there(run: Callable[..., list[float]]):
    [rule] = [rule for rule in CALLABLE if rule.name == "pow"]
    first, *others = run(rule, (0.0, 3.0), CURVES)  # the exponent moves, too, and the slope with respect to it is 0
    assert first == 0.0
    assert np.isnan(others).all()
    still = [0.0] * ORDER
    assert run(rule, (0.0, 3.0), [still, CURVES[1]])[:3] == still[:3]


def test_a_slope_that_is_a_series_at_a_point(run: Callable[..., list[float]]):
    [rule] = [rule for rule in CALLABLE if rule.name == "j1"]
    np.testing.assert_allclose(run(rule, (0.0,), CURVES), truth(rule, (0.0,)), rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("rule", CALLABLE, ids=lambda rule: rule.name)
def test_series_of_every_function(run: Callable[..., list[float]], rule: Elementwise):
    for point in points(rule, POINTS):
        found, expected = run(rule, point, CURVES), truth(rule, point)
        # Coefficients grow like the powers of one over the distance to the nearest singularity, and so do errors.
        scale = max(map(abs, expected))
        assert found == pytest.approx(expected, rel=1e-11, abs=1e-13 * scale), point
