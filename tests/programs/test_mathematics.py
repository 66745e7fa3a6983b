"""Functions of ``math`` and NumPy ufuncs, as scalars and in array expressions, and formulas made of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba import njit

from tests.tools.catalogue import Case, Catalogue, floats

PROGRAMS = Catalogue()

MATH_OF_ONE = {
    math.acos: (-0.6, 0.3),
    math.acosh: (1.4, 9.0),
    math.asin: (-0.6, 0.3),
    math.asinh: (-2.0, 0.3),
    math.atan: (-2.0, 0.3),
    math.atanh: (-0.6, 0.3),
    math.ceil: (0.3,),
    math.cos: (-2.0, 9.0),
    math.cosh: (-2.0, 0.3),
    math.degrees: (20.0,),
    math.erf: (-0.6, 1.3),
    math.erfc: (-0.6, 1.3),
    math.exp: (-3.0, 2.0),
    math.expm1: (-1e-3, 2.0),
    math.fabs: (-0.6, 1.3),
    math.floor: (0.3,),
    math.gamma: (0.4, 3.3),
    math.lgamma: (0.4, 3.3),
    math.log: (0.01, 7.0),
    math.log10: (0.2, 7.0),
    math.log1p: (-0.3, 7.0),
    math.log2: (0.2, 7.0),
    math.radians: (20.0,),
    math.sin: (-2.0, 9.0),
    math.sinh: (-2.0, 0.3),
    math.sqrt: (0.02, 7.0),
    math.tan: (-1.0, 0.3),
    math.tanh: (-2.0, 0.3),
    math.trunc: (-2.7,),
}

MATH_OF_TWO = {
    math.atan2: ((0.4, -1.3), (-0.4, 1.3), (2.0, 0.1)),
    math.copysign: ((1.5, -2.0), (-1.5, -2.0)),
    math.hypot: ((0.4, -1.3),),
    math.pow: ((1.4, 2.3), (0.3, -1.2)),
}

UFUNCS_OF_ONE = (
    np.abs, np.arccos, np.arcsin, np.arcsinh, np.arctan, np.arctanh, np.cbrt, np.ceil, np.cos, np.cosh, np.deg2rad,
    np.degrees, np.exp, np.exp2, np.expm1, np.fabs, np.floor, np.log, np.log10, np.log1p, np.log2, np.negative,
    np.positive, np.rad2deg, np.radians, np.reciprocal, np.rint, np.sign, np.sin, np.sinh, np.sqrt, np.square, np.tan,
    np.tanh, np.trunc,
)  # fmt: skip

UFUNCS_OF_TWO = (
    np.add, np.arctan2, np.copysign, np.divide, np.float_power, np.fmax, np.fmin, np.fmod, np.hypot, np.logaddexp,
    np.logaddexp2, np.maximum, np.minimum, np.mod, np.multiply, np.power, np.remainder, np.subtract, np.true_divide,
)  # fmt: skip


def add(name: str, program: Callable[..., Any], *points: tuple[Any, ...]) -> None:
    program.__name__ = name
    compiled = njit(program)
    for point in points:
        PROGRAMS.at(*point)(compiled)


def add_scalar(function: Callable[..., float]) -> None:
    def of_one(x):
        return function(x) * x

    def of_two(x, y):
        return function(x, y) * x

    name = f"math_{function.__name__}"
    if function in MATH_OF_ONE:
        add(name, of_one, *[(x,) for x in MATH_OF_ONE[function]])
    else:
        add(name, of_two, *MATH_OF_TWO[function])


def add_ufunc(function: Callable[..., Any], operands: int) -> None:
    def of_one(x):
        return np.sum(function(x) * x * x)  # times x alone, a reciprocal has the slope 0, of which rounding is left

    def of_two(x, y):
        return np.sum(function(x, y) * x)

    name = f"ufunc_{function.__name__}"
    x = np.array([0.31, 0.83, 0.57])
    if operands == 1:
        add(name, of_one, (x + 1.0,) if function is np.arccosh else (x,))
    else:
        add(name, of_two, (x, np.array([0.47, 0.29, 0.91])))


for scalar in (*MATH_OF_ONE, *MATH_OF_TWO):
    add_scalar(scalar)
for ufunc in (*UFUNCS_OF_ONE, np.arccosh):
    add_ufunc(ufunc, 1)
for ufunc in UFUNCS_OF_TWO:
    add_ufunc(ufunc, 2)


@PROGRAMS.at(1.7)
@PROGRAMS.at(-1.7)
@njit
def integer_powers(x):
    return x**2 + x**3 - x**-2 + x**7 + x**0


@PROGRAMS.at(1.7, 3)
@PROGRAMS.at(-1.7, 4)
@PROGRAMS.at(1.7, 0)
@PROGRAMS.at(1.7, -3)
@njit
def integer_power_of_a_variable(x, n):
    return x**n


@PROGRAMS.at(1.7, 2.5)
@njit
def float_power(x, y):
    return x**y + 2.0**x + y**0.5


@PROGRAMS.at(7.3, 2.2)
@PROGRAMS.at(-7.3, 2.2)
@njit
def modulo_and_floor_division(x, y):
    return (x % y) * x + (x // y) * y


@PROGRAMS.at(-1.7, 2.2)
@njit
def builtins(x, y):
    return abs(x) * max(x, y) + min(x, y, 0.5) + round(y) * x + divmod(y, 0.7)[1] + pow(y, 3) + float(x)


@PROGRAMS.at(1.7, 2.2, 0.3)
@njit
def division_chain(x, y, z):
    return x / y / z + 1 / (x + 1 / (y + 1 / z))


@PROGRAMS.at(2.5, 4)
@njit
def mixed_integer_arithmetic(x, n):
    return (n * x + n // 3 - x / n) * (n % 3) - -x + (n << 2) * x


@PROGRAMS.at(2.5)
@njit
def frexp_and_ldexp(x):
    m, e = math.frexp(x)
    return m * e + math.ldexp(x, 3)


@PROGRAMS.at(2.7)
@njit
def fractional_part(x):
    return (x - math.floor(x)) ** 2 + (x - int(x)) * x


@PROGRAMS.at(0.3, 1.2, -0.7)
@njit
def log_sum_exp(a, b, c):
    m = max(a, max(b, c))
    return m + math.log(math.exp(a - m) + math.exp(b - m) + math.exp(c - m))


@PROGRAMS.at(100.0, 105.0, 0.75, 0.02, 0.3)
@njit
def black_scholes(s, k, t, r, v):
    d1 = (math.log(s / k) + (r + 0.5 * v * v) * t) / (v * math.sqrt(t))
    d2 = d1 - v * math.sqrt(t)
    n1 = 0.5 * (1.0 + math.erf(d1 / math.sqrt(2.0)))
    n2 = 0.5 * (1.0 + math.erf(d2 / math.sqrt(2.0)))
    return s * n1 - k * math.exp(-r * t) * n2


@PROGRAMS.at(0.6)
@njit
def continued_fraction(x):
    s = 0.0
    for k in range(20, 0, -1):
        s = k * x / (1.0 + k + s)
    return s


@PROGRAMS.at(0.6, 0.9)
@njit
def cancelling_terms(x, y):
    return math.sin(x) ** 2 + math.cos(x) ** 2 + (x - x) * y + y * y / y


@PROGRAMS.at(0.6)
@njit
def series(x):
    term, total, k = 1.0, 1.0, 0
    while abs(term) > 1e-17:
        k += 1
        term *= x / k
        total += term
    return total


@PROGRAMS.at(3.0, 4.0)
@njit
def complex_modulus_by_hand(a, b):
    real, imaginary = a * a - b * b, 2 * a * b
    return math.sqrt(real * real + imaginary * imaginary) + real


@PROGRAMS.at(floats(5))
@njit
def fused_expression(x):
    return np.sum(np.log1p(np.exp(-np.abs(x))) + np.maximum(x, 0) * np.sqrt(1 + x**2) - x ** (-1.5))


@PROGRAMS.at(floats(5), 3)
@njit
def integer_array_in_expression(x, n):
    k = np.arange(5) * n
    return np.sum(x**2 * k + k / x + (k // 2) * x)


@pytest.mark.parametrize("case", PROGRAMS, ids=str)
def test_gradient(case: Case):
    case.check()
