"""Tangents of rules that emit code: forward mode against reverse mode, in whose tests the numbers are checked."""

from __future__ import annotations

import ctypes
import math

import llvmlite.binding as ll
import numpy as np
import pytest
from numba import njit
from numba.extending import get_cython_function_address

import irad
from irad.ir.text.parser import parse_module
from irad.ir.text.printer import print_module
from irad.ir.verifier import verify
from irad.passes.mode import FORWARD_MODE, TANGENT
from irad.testing import check_gradient
from tests.passes.units import DOUBLES, POINTERS, canonical, derivative, doubles, gradient, pointer, running


@njit
def complex_power(a, b):
    return a**b


@pytest.mark.parametrize(
    ("base", "exponent"),
    [(1.2 + 0.3j, 0.7 - 0.2j), (-1.0 + 0.1j, 2.1 + 0.0j), (0.5 + 0.0j, -1.5 + 0.4j)],
)
def test_powers_of_complex_numbers(base, exponent):
    check_gradient(complex_power, base, exponent, forward=True)
    for tangents in ((1.0 + 1.0j, None), (None, 1.0 - 0.5j)):
        _, tangent = irad.jvp(complex_power, (base, exponent), tangents)
        h = 1e-6
        moved = [
            complex_power(base + sign * h * (tangents[0] or 0.0), exponent + sign * h * (tangents[1] or 0.0))
            for sign in (1, -1)
        ]
        assert tangent == pytest.approx((moved[0] - moved[1]) / (2 * h), rel=1e-8)


def test_a_power_of_zero():
    for exponent, slope in ((1.0 + 0.0j, 1.0), (2.0 + 0.0j, 0.0)):
        assert irad.jvp(complex_power, (0j, exponent), (1.0 + 0.0j, None))[1] == slope
        assert irad.jvp(complex_power, (0j, exponent), (None, 1.0 + 0.0j))[1] == 0.0


def test_mantissas():
    @njit
    def mantissa(x):
        fraction, _ = math.frexp(x)
        return fraction * fraction

    check_gradient(mantissa, 5.3, forward=True)
    check_gradient(mantissa, -1e-3, forward=True)


ARITHMETIC = """
define i32 @f(ptr noalias %r, ptr noalias %e, ptr %a) {
  %q = getelementptr double, ptr %a, i64 1
  %x = load double, ptr %a
  %y = load double, ptr %q
  %p = call RESULT @FUNCTION(double %x, double %y, double %y, double 3.0)
  %u = TAKE RESULT %p, FIRST
  %v = TAKE RESULT %p, SECOND
  %w = fmul double %u, %v
  store double %w, ptr %r
  ret i32 0
}
declare RESULT @FUNCTION(double, double, double, double)
"""
STRUCTURE = {"RESULT": "{ double, double }", "TAKE": "extractvalue", "FIRST": "0", "SECOND": "1"}
VECTOR = {"RESULT": "<2 x double>", "TAKE": "extractelement", "FIRST": "i32 0", "SECOND": "i32 1"}


def arithmetic(function: str, words: dict[str, str]) -> str:
    text = ARITHMETIC.replace("FUNCTION", function)
    for word, meant in words.items():
        text = text.replace(word, meant)
    return text


@pytest.mark.parametrize("function", ["__muldc3", "__divdc3"])
def test_products_and_quotients_of_complex_numbers_as_compilers_call_them(function):
    try:
        ll.load_library_permanently("libgcc_s.so.1")
    except RuntimeError:
        pytest.skip("needs the library of GCC, in which such products are")
    text, point = arithmetic(function, STRUCTURE), [1.3, -0.4]
    for direction, expected in zip(([1.0, 0.0], [0.0, 1.0]), gradient(text, point), strict=True):
        made = running(text, "scs", [DOUBLES, POINTERS, DOUBLES], mode=FORWARD_MODE)
        value, tangent, a, shadow = doubles(0.0), doubles(0.0), doubles(*point), doubles(*direction)
        given = [pointer(value), ctypes.c_void_p(0), pointer(a), pointer(tangent), pointer(shadow)]
        assert made.call(made.derivative.symbols[TANGENT], *given) == 0
        made.close()
        assert tangent[0] == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("function", ["__muldc3", "__divdc3"])
def test_complex_numbers_in_one_register(function):
    made = derivative(arithmetic(function, VECTOR), "scs", mode=FORWARD_MODE)
    verify(parse_module(canonical(print_module(made.program.module))))


def draw_functions():
    @njit
    def gamma(shape, scale):
        np.random.seed(3)
        return np.random.gamma(shape, scale)

    @njit
    def beta(a, b):
        np.random.seed(5)
        return np.random.beta(a, b)

    @njit
    def wald(mean, scale):
        np.random.seed(7)
        return np.random.wald(mean, scale)

    @njit
    def vonmises(mean, concentration):
        np.random.seed(9)
        return np.random.vonmises(mean, 1.5) * concentration

    return gamma, beta, wald, vonmises


@pytest.mark.parametrize("draw", draw_functions(), ids=lambda f: f.__name__)
def test_random_draws(draw):
    point = 2.5, 1.3
    by_first, by_second = irad.grad(draw, (0, 1))(*point)
    value, tangent = irad.jvp(draw, point, (2.0, -3.0))
    assert value == draw(*point)
    assert tangent == pytest.approx(2.0 * by_first - 3.0 * by_second, rel=1e-13)
    assert irad.jvp(draw, point, (None, 1.0))[1] == pytest.approx(by_second, rel=1e-13)


def test_what_has_no_derivative_is_refused_in_forward_mode_as_well():
    @njit
    def draw(concentration):
        return np.random.vonmises(0.0, concentration)

    with pytest.raises(irad.UnsupportedError, match="concentration"):
        irad.jvp(draw, (1.0,), (1.0,))


@pytest.mark.parametrize(("name", "count"), [("sici", 2), ("shichi", 2), ("fresnel", 2), ("airy", 4)])
def test_special_functions_with_several_results(name, count):
    pytest.importorskip("scipy")
    symbol = f"__pyx_fuse_1{name}"
    address = get_cython_function_address("scipy.special.cython_special", symbol)
    function = ctypes.CFUNCTYPE(None, ctypes.c_double, *[ctypes.c_void_p] * count)(address)

    @njit
    def weighted(x):
        results = np.zeros(4)
        if count == 2:
            function(x, results[0:].ctypes, results[1:].ctypes)
        else:
            function(x, results[0:].ctypes, results[1:].ctypes, results[2:].ctypes, results[3:].ctypes)
        return results[0] + 2.0 * results[1] + 3.0 * results[2] + 4.0 * results[3]

    for x in (0.7, 2.3):
        value, tangent = irad.jvp(weighted, (x,), (2.0,))
        assert value == weighted(x)
        assert tangent == pytest.approx(2.0 * irad.grad(weighted)(x), rel=1e-13)


@pytest.mark.parametrize("size", [1, 2, 7, 8])
def test_fourier_transforms(size):
    pytest.importorskip("rocket_fft", reason="rocket-fft makes np.fft known to Numba: pip install .[fft]")

    @njit
    def spectra(z, x):
        return np.fft.fft(z), np.fft.rfft(x * x), np.fft.irfft(np.fft.rfft(x) * z[0], size), np.fft.rfft(np.ones(size))

    rng = np.random.default_rng(size)
    z, x = rng.random(size) + 1j * rng.random(size), rng.random(size)
    check_gradient(spectra, z, x, forward=True)
