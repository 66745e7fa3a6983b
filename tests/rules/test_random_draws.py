"""Derivatives of draws by their parameters, against differences of the quantile function in high precision."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import llvmlite.binding as llvm
import mpmath
import pytest

from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.module import Module
from irad.ir.text.printer import print_module
from irad.ir.values import Value
from irad.ir.verifier import verify
from irad.rules import random_draws
from irad.ruleset.interface import CallRule

DOUBLE = types.DOUBLE


def compiled(name: str, arity: int, emit: Callable[[Builder, Sequence[Value]], Value]) -> Callable[..., float]:
    """A partial derivative as machine code."""
    module = Module()
    function = module.define(name, types.function_type(DOUBLE, [DOUBLE] * arity))
    build = Builder(function.add_block("entry"))
    build.ret(emit(build, function.params))
    verify(module)
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(jit=True)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(print_module(module)), machine)
    engine.finalize_object()
    call = ctypes.CFUNCTYPE(ctypes.c_double, *[ctypes.c_double] * arity)(engine.get_function_address(name))
    keep = engine
    return lambda *args: (keep, call(*args))[1]


@cache
def partials(distribution: str) -> tuple[Callable[..., float], ...]:
    found = (r for r in random_draws.RULES if isinstance(r, CallRule) and f"irad.drawn.{distribution}" in r.symbols)
    reverse: Any = next(found).reverse
    emitters = reverse.args[0]
    return tuple(compiled(f"{distribution}{i}", len(emitters) + 1, e) for i, e in enumerate(emitters))


def implicit(distribution: Any, density: Any, point: Sequence[float], index: int) -> float:
    """-(∂F/∂θ) / p with 60 digits, and as many more as there are nines in front of a tail."""
    with mpmath.workdps(20):
        tail = density(*map(mpmath.mpf, point))
    with mpmath.workdps(60 + max(0, int(-mpmath.log10(tail)))):
        z, *parameters = map(mpmath.mpf, point)

        def at(value: mpmath.mpf) -> mpmath.mpf:
            return distribution(z, *parameters[:index], value, *parameters[index + 1 :])

        step = parameters[index] * mpmath.mpf("1e-15")
        slope = (at(parameters[index] + step) - at(parameters[index] - step)) / (2 * step)
        return float(-slope / density(z, *parameters))


def gamma_distribution(z: Any, a: Any) -> Any:
    return mpmath.gammainc(a, 0, z, regularized=True)


def gamma_density(z: Any, a: Any) -> Any:
    return z ** (a - 1) * mpmath.exp(-z) / mpmath.gamma(a)


GAMMA = [
    (shape * factor, shape)
    for shape in (0.05, 0.5, 1.0, 1.4616321449683623, 3.0, 40.0, 700.0)
    for factor in (1e-3, 0.3, 0.97, 1.02, 1.5, 4.0)
] + [(1e-30, 0.05), (1e-3, 1e-3), (60.0, 0.5), (40.0, 1.0)]


@pytest.mark.parametrize(("z", "shape"), GAMMA)
def test_gamma(z: float, shape: float):
    expected = implicit(gamma_distribution, gamma_density, (z, shape), 0)
    [slope] = partials("standard_gamma")
    assert slope(z, shape) == pytest.approx(expected, rel=1e-12)
    by_shape, by_scale = partials("gamma")
    assert by_shape(2.5 * z, shape, 2.5) == pytest.approx(2.5 * expected, rel=1e-11)
    assert by_scale(2.5 * z, shape, 2.5) == pytest.approx(z)


def beta_distribution(z: Any, a: Any, b: Any) -> Any:
    return mpmath.betainc(a, b, 0, z, regularized=True)


def beta_density(z: Any, a: Any, b: Any) -> Any:
    return z ** (a - 1) * (1 - z) ** (b - 1) / mpmath.beta(a, b)


BETA = [
    (z, a, b)
    for a, b in ((0.1, 0.2), (0.5, 0.5), (1.0, 1.0), (1.0, 3.0), (2.5, 0.3), (8.0, 20.0), (300.0, 5.0), (50.0, 400.0))
    for z in (1e-3, 0.1, 0.3, a / (a + b), 0.6, 0.9, 0.999)
    if 1e-30 < beta_density(z, a, b)
]


@pytest.mark.parametrize("point", BETA)
@pytest.mark.parametrize("index", [0, 1])
def test_beta(point: tuple[float, float, float], index: int):
    expected = implicit(beta_distribution, beta_density, point, index)
    # The complement of a draw near 1 has lost digits before.
    assert partials("beta")[index](*point) == pytest.approx(expected, rel=1e-11)


def wald_distribution(x: Any, mean: Any, scale: Any) -> Any:
    root = mpmath.sqrt(scale / x)
    tail = mpmath.exp(2 * scale / mean) * mpmath.ncdf(-root * (x / mean + 1))
    return mpmath.ncdf(root * (x / mean - 1)) + tail


def wald_density(x: Any, mean: Any, scale: Any) -> Any:
    exponent = -scale * (x - mean) ** 2 / (2 * mean**2 * x)
    return mpmath.sqrt(scale / (2 * mpmath.pi * x**3)) * mpmath.exp(exponent)


@pytest.mark.parametrize("mean", [0.2, 1.0, 30.0])
@pytest.mark.parametrize("scale", [0.1, 1.0, 50.0, 1000.0])
@pytest.mark.parametrize("factor", [0.3, 0.9, 1.2, 4.0])
@pytest.mark.parametrize("index", [0, 1])
def test_wald(mean: float, scale: float, factor: float, index: int):
    point = factor * mean, mean, scale
    expected = implicit(wald_distribution, wald_density, point, index)
    # By the scale, near the mean, two terms cancel.
    assert partials("wald")[index](*point) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("shape", [0.001, 1.0, 30.0])
def test_a_draw_that_has_underflowed_does_not_move(shape: float):
    assert partials("standard_gamma")[0](0.0, shape) == 0.0


@pytest.mark.parametrize("z", [0.0, 1.0])
@pytest.mark.parametrize("index", [0, 1])
def test_a_beta_draw_at_an_end_does_not_move(z: float, index: int):
    assert partials("beta")[index](z, 0.01, 0.02) == 0.0


@pytest.mark.parametrize("distribution", ["gamma", "standard_gamma", "beta", "wald"])
def test_the_derivative_of_nan_is_nan(distribution: str):
    """And the series come to an end."""
    parameters = {"standard_gamma": (2.5,)}.get(distribution, (2.5, 1.5))
    for slope in partials(distribution):
        assert math.isnan(slope(math.nan, *parameters))


def test_an_infinite_draw_comes_to_an_end():
    assert not math.isfinite(partials("standard_gamma")[0](math.inf, 2.5))
