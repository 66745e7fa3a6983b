"""Real functions of Numba whose code takes shortcuts, at special points and beside them: all orders, all forms.

All functions are compiled together, once for each order; a row of weights, given at run time, picks one.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from functools import cache
from typing import Any, Final

import mpmath
import numpy as np
import pytest
from numba import float32, float64, njit, prange, vectorize

import irad
from irad.frontend.numba import shortcuts

mp: Any = mpmath.mp


def _mod(x: Any, y: Any) -> Any:
    return x - y * mp.floor(x / y)


def _fmod(x: Any, y: Any) -> Any:
    return x - y * mp.sign(x / y) * mp.floor(abs(x / y))


# What Numba compiles, and the function.
FUNCTIONS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "np.logaddexp(x, y)": lambda x, y: mp.log(mp.exp(x) + mp.exp(y)),
    "np.logaddexp2(x, y)": lambda x, y: mp.log(mp.mpf(2) ** x + mp.mpf(2) ** y, 2),
    "np.sinc(x)": lambda x, y: mp.sincpi(x),
    "np.sinc(x - y)": lambda x, y: mp.sincpi(x - y),
    "x ** 2": lambda x, y: x * x,
    "x ** (3 if y > -100.0 else 2)": lambda x, y: x**3,
    "np.square(x)": lambda x, y: x * x,
    "np.float_power(x, 3)": lambda x, y: x**3,
    "np.cbrt(x + 5.0)": lambda x, y: mp.cbrt(x + 5),
    "math.ldexp(x, 3) + np.degrees(y)": lambda x, y: 8 * x + 180 / mp.pi * y,
    # powers of roots
    "np.cbrt(x - y) ** 3": lambda x, y: x - y,
    "np.abs(x) ** (2.0 if y > -100.0 else 3.0)": lambda x, y: x * x,
    "abs(complex(x, y)) ** 2": lambda x, y: x * x + y * y,
    "y * (math.hypot(x, y) / 3.0) * (math.hypot(x, y) / 3.0)": lambda x, y: y * (x * x + y * y) / 9,
    "((y - 2.0) * ((x - y) * (x - y)) ** 0.5) ** 2": lambda x, y: ((y - 2) * (x - y)) ** 2,
}
# At a jump what holds is the side where the remainder is zero: that of larger x for a positive divisor.
REMAINDERS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "x % (y + 1.5)": lambda x, y: _mod(x, y + 1.5),
    "divmod(x, y + 1.5)[1]": lambda x, y: _mod(x, y + 1.5),
    "x % (y - 9.0)": lambda x, y: _mod(x, y - 9),
    "np.mod(x, y + 1.5)": lambda x, y: _mod(x, y + 1.5),
    "np.fmod(x, y + 1.5)": lambda x, y: _fmod(x, y + 1.5),
    "np.divmod(x, y + 1.5)[1]": lambda x, y: _mod(x, y + 1.5),
}
ALL: Final = {**FUNCTIONS, **REMAINDERS}
CENTRES: Final = ((0.0, 0.0), (-0.0, 0.0), (1.0, 1.0), (-1.0, -1.0), (0.0, 1.0), (2.0, -1.0), (30.0, 30.0), (0.5, -0.5))
STEPS: Final = (0.0, 1e-9, -1e-9, 1e-5, -1e-5)
POINTS: Final = (*((x + step, y) for (x, y), step in itertools.product(CENTRES, STEPS)), (0.3, 0.7), (50.0, -50.0))


@cache
def compiled(type_: Any = float64) -> Any:
    """`total(x, y, weights, along)`."""
    lines = ["def total(x, y, weights, along):", "    s = 0.0"]
    lines += [f"    s += weights[{i}] * ({expression})" for i, expression in enumerate(ALL)]
    scope: dict[str, Any] = {"np": np, "math": math}
    exec("\n".join((*lines, "    return s")), scope)
    return njit(scope["total"])


@cache
def gradients(order: int) -> Any:
    """`f(x, y, weights, along)`: the gradient of the derivative along the directions before it."""
    function = compiled()
    for level in range(order):
        gradient = irad.grad(function, argnums=(0, 1))
        function = njit(_along(gradient, level))
    return gradient


def _along(gradient: Any, level: int) -> Any:
    def function(x, y, weights, along):
        dx, dy = gradient(x, y, weights, along)
        return dx * along[level, 0] + dy * along[level, 1]

    return function


def exact(function: Callable[[Any, Any], Any], x: float, y: float, ways: tuple[int, ...]) -> float:
    """A partial derivative; of a remainder that of the side of larger quotients."""
    aside = mp.mpf(10) ** -60
    if function in REMAINDERS.values():
        downwards = function is REMAINDERS["x % (y - 9.0)"] or (
            function is REMAINDERS["np.fmod(x, y + 1.5)"] and x < 0.0
        )
        at = mp.mpf(x) + (-aside if downwards else aside)
    else:
        at = mp.mpf(x)
    counts = ways.count(0), ways.count(1)
    return float(mp.diff(function, (at, mp.mpf(y)), counts, h=mp.mpf(10) ** -75))


def differentiated(order: int, mode: str) -> Any:
    """`f(x, y, weights, ways)`: both partial derivatives of the derivative along the first ways."""
    function = gradients(order)

    def at(x: float, y: float, weights: Any, before: tuple[int, ...]) -> tuple[float, float]:
        along = np.zeros((3, 2))
        for level, way in enumerate(before):
            along[level, way] = 1.0
        if mode == "reverse":
            found: tuple[float, float] = function(x, y, weights, along)
            return found
        lower = compiled() if order == 1 else _lower(order)
        first, second = (
            irad.jvp(lower, (x, y, weights, along), (*unit, None, None))[1] for unit in ((1.0, 0.0), (0.0, 1.0))
        )
        return first, second

    return at


@cache
def _lower(order: int) -> Any:
    return njit(_along(gradients(order - 1), order - 2))


def check(order: int, mode: str, rtol: float) -> None:
    """Compares all partial derivatives of an order of all functions at all points."""
    function, wrong = differentiated(order, mode), []
    mp.dps, before_digits = 250, mp.dps
    try:
        for (i, (expression, truth)), (x, y) in itertools.product(enumerate(ALL.items()), POINTS):
            if abs(y) > 2.0 and truth in REMAINDERS.values():
                continue  # the divisor passes zero
            weights = np.zeros(len(ALL))
            weights[i] = 1.0
            for before in itertools.combinations_with_replacement(range(2), order - 1):
                for way, got in enumerate(function(x, y, weights, before)):
                    want = exact(truth, x, y, (*before, way))
                    size = 1.0 if "sinc" not in expression else math.pi**order
                    if not abs(got - want) <= rtol * max(abs(want), 1e-3 * size if order == 1 else size):
                        wrong.append(f"{expression} at {x, y} by {(*before, way)}: {got}, not {want}")
    finally:
        mp.dps = before_digits
    assert wrong == []


def test_no_function_is_missing():
    assert {f.__name__ for f in shortcuts.REAL if not any(f"np.{f.__name__}(x" in each for each in ALL)} == set()


@pytest.mark.parametrize("mode", ["reverse", "forward"])
def test_first_derivatives(mode: str):
    check(1, mode, 1e-12)


@pytest.mark.parametrize("mode", ["reverse", "forward"])
def test_second_derivatives(mode: str):
    check(2, mode, 1e-12)


@pytest.mark.parametrize("mode", ["reverse", "forward"])
def test_third_derivatives(mode: str):
    check(3, mode, 1e-12)


# ------------------------------------------------------------------------------------------------ infinities


def test_shares_of_infinite_summands():
    gradient, inf = irad.grad(njit(lambda x, y: np.logaddexp(x, y)), argnums=(0, 1)), math.inf
    assert gradient(-inf, -inf) == (0.5, 0.5)
    assert gradient(inf, inf) == (0.5, 0.5)
    assert gradient(-inf, 1.0) == (0.0, 1.0)
    assert gradient(inf, 1.0) == (1.0, 0.0)
    assert gradient(700.0, -700.0) == (1.0, 0.0)
    assert all(map(math.isnan, gradient(math.nan, 1.0)))


# ------------------------------------------------------------------------------------------------ forms


@vectorize([float64(float64, float64), float32(float32, float32)])
def _added(x: Any, y: Any) -> Any:
    return np.logaddexp(x, y)


@njit
def _ufunc(x, y):
    return np.logaddexp(x, y).sum()


@njit
def _of_expression(x, y):
    return (2.0 * np.logaddexp(x, y) + np.logaddexp2(x, y)).sum()


@njit(parallel=True)
def _parallel(x, y):
    s = 0.0
    for i in prange(x.size):
        s += np.logaddexp(x[i], y[i])
    return s


@njit(parallel=True)
def _parallel_expression(x, y):
    return np.logaddexp(x, y + 0.0).sum()


@njit(fastmath=True)
def _fast(x, y):
    return np.logaddexp(x, y).sum()


@njit
def _vectorized(x, y):
    return _added(x, y).sum()


@pytest.mark.parametrize(
    "function", [_ufunc, _parallel, _parallel_expression, _fast, _vectorized], ids=lambda f: f.__name__
)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_ties_in_arrays(function: Any, dtype: Any):
    x = np.array([0.0, 1.0, -2.0, 3.0], dtype)
    by_x, by_y = irad.grad(function, argnums=(0, 1))(x, x.copy())
    np.testing.assert_array_equal(by_x, np.full(4, 0.5, dtype))
    np.testing.assert_array_equal(by_y, np.full(4, 0.5, dtype))


def test_broadcasting():
    by_x, by_y = irad.grad(_of_expression, argnums=(0, 1))(np.zeros((3, 1)), np.zeros(2))
    np.testing.assert_array_equal(by_x, np.full((3, 1), 3.0))
    np.testing.assert_array_equal(by_y, np.full(2, 4.5))


def test_a_logistic_regression_started_at_zero():
    @njit
    def loss(w, samples, labels):
        return np.logaddexp(0.0, -labels * (samples @ w)).sum()

    generator = np.random.default_rng(5)
    samples, labels = generator.normal(size=(20, 3)), generator.choice([-1.0, 1.0], 20)
    gradient = irad.grad(loss)(np.zeros(3), samples, labels)
    np.testing.assert_allclose(gradient, -0.5 * (labels @ samples), rtol=1e-14)
    np.testing.assert_allclose(irad.hessian(loss)(np.zeros(3), samples, labels), 0.25 * samples.T @ samples, rtol=1e-13)


def test_sinc_of_arrays_and_single_precision():
    function = njit(lambda x: np.sinc(x).sum())
    x = np.array([0.0, 1e-3, 0.5, 1.0], np.float32)
    expected = [float(mpmath.diff(mpmath.sincpi, float(each))) for each in x]
    np.testing.assert_allclose(irad.grad(function)(x), expected, rtol=2e-6, atol=1e-7)
    np.testing.assert_allclose(irad.hessian(function)(np.zeros(2)), -(np.pi**2) / 3 * np.eye(2), rtol=1e-14)


def test_a_taylor_series_of_sinc():
    derivatives = [float(mpmath.diff(mpmath.sincpi, 0.0, n)) for n in range(5)]
    value, series = irad.taylor(njit(lambda x: np.sinc(x)), 4)(0.0, (1.0, 0.0, 0.0, 0.0))
    found = [c * math.factorial(n) for n, c in enumerate((value, *series))]
    np.testing.assert_allclose(found, derivatives, atol=1e-13)


def test_mantissas_of_subnormal_numbers():
    @njit
    def taken_apart(x):
        mantissa, exponent = math.frexp(x)
        return math.ldexp(mantissa, exponent)

    gradient = irad.grad(taken_apart)
    assert [gradient(x) for x in (5e-324, 3e-310, 1e-308, 1.0, 8e307)] == [1.0] * 5


# ------------------------------------------------------------------------------------------------ values


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_values_are_those_of_numba_to_the_bit(dtype: Any):
    lines = ["def values(x, y, out):"]
    lines += [f"    out[{i}] = {expression}" for i, expression in enumerate(ALL)]
    scope: dict[str, Any] = {"np": np, "math": math}
    exec("\n".join((*lines, "    return out.sum()")), scope)
    function = njit(scope["values"])
    differentiated = irad.grad(function)
    special = (-0.0, math.inf, -math.inf, math.nan, 1e30)
    for x, y in (*POINTS, *((x, 1.0) for x in special), *((x, x) for x in special[1:3])):
        plain, kept = np.empty(len(ALL), dtype), np.empty(len(ALL), dtype)
        given = dtype(x), dtype(y)
        function(*given, plain)
        differentiated(*given, kept)
        bits = f"u{plain.itemsize}"
        assert ((plain.view(bits) == kept.view(bits)) | (np.isnan(plain) & np.isnan(kept))).all(), (x, y, plain, kept)


# ------------------------------------------------------------------------------------------------ squares of roots


@njit
def _of_complex_arrays(x):
    z = x[::2] + 1j * x[1::2]
    return 0.5 * np.sum(np.abs(z) ** 2) + np.square(np.abs(z)).sum()


@njit(parallel=True)
def _in_parallel(x):
    s = 0.0
    for i in prange(x.size // 2):
        s += 1.5 * np.hypot(x[2 * i], x[2 * i + 1]) ** 2
    return s


@pytest.mark.parametrize("function", [_of_complex_arrays, _in_parallel], ids=lambda f: f.__name__)
def test_squares_of_lengths_in_arrays(function: Any):
    """The length has no second derivative at zero, its square has: in forward over reverse and reverse over reverse."""
    x, v = np.array([0.0, 0.0, 3.0, 4.0, -0.0, 1e-200]), np.arange(1.0, 7.0)
    np.testing.assert_allclose(irad.hessian(function)(x), 3.0 * np.eye(6), atol=1e-15)
    gradient = irad.grad(function)

    @njit
    def along(x, v):
        return (gradient(x) * v).sum()

    np.testing.assert_allclose(irad.grad(along)(x, v), 3.0 * v, atol=1e-15)


def test_squares_of_norms_and_deviations():
    """Of vectors, a matrix, complex numbers."""

    @njit
    def squares(x):
        z = x[:2] + 1j * x[2:]
        norms = np.linalg.norm(x) ** 2 + 2.0 * np.linalg.norm(z) ** 2 + np.linalg.norm(x.reshape(2, 2)) ** 2
        return norms + 4.0 * np.std(x) ** 2

    wanted = 10.0 * np.eye(4) - 0.5
    for x in (np.zeros(4), np.array([1.0, -2.0, 0.5, 3.0])):
        np.testing.assert_allclose(irad.hessian(squares)(x), wanted, atol=1e-14)
        np.testing.assert_allclose(irad.grad(squares)(x), wanted @ x, atol=1e-14)


def test_squares_of_lengths_in_single_precision():
    function = njit(lambda z: abs(z) ** 2 + math.sqrt(z.real) ** 2)
    (by_z,) = (irad.grad(function)(np.complex64(0)),)
    assert by_z == 1.0


def test_the_square_of_a_root_is_not_defined_below_zero():
    gradient = irad.grad(njit(lambda s: math.sqrt(s) ** 2))
    assert [gradient(s) for s in (0.0, 5e-324, 2.0, math.inf)] == [1.0] * 4
    assert np.isnan([gradient(s) for s in (-1.0, math.nan)]).all()
