"""Taylor series of whole functions, against closed forms, nested forward mode and series in arbitrary precision."""

from __future__ import annotations

import math
import pickle
from typing import Any

import mpmath
import numpy as np
import pytest
from numba import njit, prange

import irad


@njit
def scaled(values, factor):
    made = np.empty(values.size)
    for i in range(values.size):
        made[i] = values[i] * factor
    return made


@njit
def power(x, n):
    return 1.0 if n == 0 else x * power(x, n - 1)


@njit
def program(x, a):
    """Calls, recursion, memory, branches, loops, a fused product, every kind of arithmetic."""
    work = scaled(x, a)
    work[1] = math.sin(work[0]) / (2.0 + math.tanh(a))
    copied = work.copy()
    work[:] = 0.0
    total, n = 0.0, 0
    while total < 4.0 and n < 50:
        total += copied[n % copied.size] ** 2 + math.sqrt(a) + (7.0 * a) % 2.0
        n += 1
    if total > 4.0:
        total = -total * power(a, 3) + max(copied[1], copied[2]) + abs(a - 5.0)
    parts = [total, math.pow(a, 2.5), math.hypot(x[1], a)]
    return parts[0] + work.sum() - parts[1] ** a + math.atan2(parts[2], x[2]), copied


X, V = np.array([0.7, 1.1, 0.4]), np.array([1.0, -0.5, 0.25])


@njit
def along(t):
    """The program on a line, a function of a number."""
    return program(X + t * V, 1.3 + 0.5 * t)[0]


first = irad.pushforward(along)


@njit
def slope(t):
    return first(t, 1.0)[1]


second = irad.pushforward(slope)


@njit
def curvature(t):
    return second(t, 1.0)[1]


third = irad.pushforward(curvature)


def test_a_program_agrees_with_nested_forward_mode_and_its_first_coefficient_is_the_tangent():
    (value, copied), series = irad.jet(program, (X, 1.3), ((V,), (0.5,)), order=3)
    assert value == along(0.0)
    expected = slope(0.0), curvature(0.0) / 2.0, third(0.0, 1.0)[1] / 6.0
    assert [number for number, _ in series] == pytest.approx(expected, rel=1e-12)
    _, (number, array) = irad.jvp(program, (X, 1.3), (V, 0.5))
    assert series[0][0] == number
    np.testing.assert_array_equal(series[0][1], array)
    assert copied[0] == X[0] * 1.3
    np.testing.assert_allclose([array[0] for _, array in series], [1.65, 0.5, 0.0], rtol=1e-14, atol=1e-16)
    assert irad.jet(along, (0.0,), ((),), order=0) == (value, ())


def test_closed_forms():
    @njit
    def several(x, y):
        return math.exp(x), 1.0 / (1.0 - x), math.log1p(x), y * np.sin(x), x**y, y / (x - 2.0)

    order = 8
    values, series = irad.jet(several, (0.0, 3.0), ((1.0,), None), order=order)
    assert values == (1.0, 1.0, 0.0, 0.0, 0.0, -1.5)
    inverse = [1.0 / math.factorial(k) for k in range(order + 1)]
    for k, (exponential, geometric, logarithm, sine, cube, quotient) in enumerate(series, 1):
        assert exponential == pytest.approx(inverse[k], rel=1e-14)
        assert geometric == 1.0
        assert logarithm == pytest.approx((-1) ** (k + 1) / k, rel=1e-14)
        assert sine == pytest.approx(3.0 * inverse[k] * (0, 1, 0, -1)[k % 4], rel=1e-14)
        assert cube == (k == 3)
        assert quotient == pytest.approx(-1.5 * 0.5**k, rel=1e-14)


@njit
def products(t, a, x, c):
    """Products by BLAS, with one operand active or both, on a curve through matrices and vectors."""
    a, x = a + t * c - t * t * a, x - t * x[::-1] + t * t * t * x
    x = a @ (a @ x)
    square = a @ c.T @ a
    return np.vdot(x, x) + np.dot(x, c[0]) + square.sum(), x * square[0]


once = irad.pushforward(products)


@njit
def products_slope(t, a, x, c):
    return once(t, 1.0, a, x, c)[1]


twice = irad.pushforward(products_slope)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_products_by_blas(dtype):
    rng = np.random.default_rng(1)
    a, x, c = (rng.standard_normal(shape).astype(dtype) for shape in ((3, 3), (3,), (3, 3)))
    if dtype is np.complex128:
        a, x, c = (each * (1.0 + 0.5j) + 0.2j for each in (a, x, c))
    (first_number, first_array), (number, array) = irad.taylor(products, 2)(0.0, (1.0, None), a, x, c)[1]
    slope, curvature = twice(0.0, 1.0, a, x, c)
    np.testing.assert_array_equal(first_array, slope[1])
    assert first_number == slope[0]
    assert number == pytest.approx(curvature[0] / 2.0, rel=1e-13)
    np.testing.assert_allclose(array, curvature[1] / 2.0, rtol=1e-13)


def test_curves_in_several_arguments():
    @njit
    def f(a, b):
        return math.erf(a * b) + a**b

    a, b = (0.8, 0.3, -0.2, 0.1, 0.0), (1.7, -0.4, 0.0, 0.5, 0.25)
    found = irad.taylor(f, 4, (0, 1))(a[0], b[0], (a[1:], b[1:]))
    with mpmath.workdps(40):
        curves = [lambda t, c=c: sum(mpmath.mpf(each) * t**k for k, each in enumerate(c)) for c in (a, b)]
        expected = mpmath.taylor(lambda t: mpmath.erf(curves[0](t) * curves[1](t)) + curves[0](t) ** curves[1](t), 0, 4)
    assert [found[0], *found[1]] == pytest.approx([float(c) for c in expected], rel=1e-13)


def test_the_series_of_a_differential_equation_in_compiled_code():
    @njit
    def field(u):
        return np.array([u[1], -u[0], u[2] * u[2]])

    @njit
    def solution(start):
        """Of u' = field(u): the coefficient of order k + 1 is that of order k of the right-hand side over k + 1."""
        u1, u2, u3, u4 = np.zeros(3), np.zeros(3), np.zeros(3), np.zeros(3)
        u1[:] = field(start)
        for k in range(1, 4):
            _, f = irad.taylor(field, 3)(start, (u1, u2, u3))
            if k == 1:
                u2[:] = f[0] / 2.0
            elif k == 2:
                u3[:] = f[1] / 3.0
            else:
                u4[:] = f[2] / 4.0
        return u1, u2, u3, u4

    found = np.array(solution(np.array([1.0, 0.0, 1.0])))
    expected = [[0.0, -1.0, 1.0], [-0.5, 0.0, 1.0], [0.0, 1.0 / 6.0, 1.0], [1.0 / 24.0, 0.0, 1.0]]
    np.testing.assert_allclose(found, expected, rtol=1e-15, atol=1e-16)


def test_arrays_in_place_in_single_precision_and_in_parallel_loops():
    @njit
    def recur(u):
        for i in range(1, u.size):
            u[i] = u[i] * np.exp(u[i - 1])

    @njit(parallel=True)
    def spread(x):
        y = np.empty_like(x)
        for i in prange(x.size):
            y[i] = x[i] * x[0] * x[i]
        return y

    u = np.array([0.0, 2.0], np.float32)
    series = tuple(np.array([float(k == 1), 0.0], np.float32) for k in (1, 2, 3))
    assert irad.taylor(recur, 3)(u, series) == (None, (None, None, None))
    np.testing.assert_array_equal(u, [0.0, 2.0])
    np.testing.assert_allclose(np.array(series)[:, 1], [2.0, 1.0, 1.0 / 3.0], rtol=1e-6)
    x = np.arange(1.0, 5.0)
    _, cubes = irad.jet(spread, (x,), ((np.ones(4),),), order=4)
    np.testing.assert_allclose(cubes, [x * x + 2.0 * x, 2.0 * x + 1.0, np.ones(4), np.zeros(4)], rtol=1e-15)


def test_derivatives_of_series_and_series_of_derivatives():
    @njit
    def energy(x):
        total = 0.0
        for i in range(x.size):
            total += math.sin(x[i]) * x[i] ** 3 + x[0] * x[i] * x[i]
        return total

    gradient, series = irad.grad(energy), irad.taylor(energy, 3)

    @njit
    def force(x):
        return gradient(x)

    @njit
    def cubic(x, v):
        return series(x, (v, np.zeros_like(v), np.zeros_like(v)))[1][2]

    x, v = np.array([0.0, 0.5]), np.array([1.0, -1.0])
    _, (once, twice, thrice) = irad.jet(force, (x,), ((v,),), order=3)
    np.testing.assert_allclose(once, irad.hvp(energy)(x, v), rtol=1e-14)
    # d/dx of the k-th coefficient of f(x + t v) is that of the gradient; d/dv the one before
    np.testing.assert_allclose(irad.grad(cubic)(x, v), thrice, rtol=1e-13)
    np.testing.assert_allclose(irad.grad(cubic, argnums=1)(x, v), twice, rtol=1e-13)


@pytest.mark.parametrize(
    ("f", "x", "series", "expected"),
    [
        (njit(lambda x: abs(x)), 0.0, (1.0, 2.0), (0.0, 0.0)),  # the slope at 0 counts as zero, on both sides
        (njit(lambda x: math.atan2(x, 0.0)), 0.0, (1.0, 2.0), (0.0, 0.0)),
        (njit(lambda x: math.atan2(x, 0.0)), 0.0, (0.0, 0.0), (0.0, 0.0)),
        (njit(lambda x: math.sqrt(x)), 0.0, (0.0, 0.0), (0.0, 0.0)),
        (njit(lambda x: math.sqrt(x)), 0.0, (0.0, 1.0), (0.0, math.nan)),
        (njit(lambda x: x**2.0), 0.0, (1.0, 2.0), (0.0, 1.0)),
        (njit(lambda x: x**1.5), 0.0, (1.0, 2.0), (0.0, math.inf)),
        (njit(lambda x: np.floor(x) + np.trunc(x)), 2.5, (1.0, 2.0), (0.0, 0.0)),
        (njit(lambda x: 1.0 if x == 2.0 else x), 2.0, (1.0, 2.0), (0.0, 0.0)),
    ],
    ids=[f"case{i}" for i in range(9)],
)
def test_singular_points(f: Any, x: float, series: tuple[float, float], expected: tuple[float, float]):
    found = irad.taylor(f, 2)(x, series)[1]
    assert found == pytest.approx(expected, nan_ok=True)
    assert found[0] == irad.jvp(f, (x,), (series[0],))[1]


@irad.custom_jvp
def special(x):
    return x * x


@special.defjvp
def special_tangent(primals, tangents):
    return primals[0] ** 2, 2.0 * primals[0] * tangents[0]


def test_what_has_no_series_is_refused_by_name():
    @njit
    def norm(x):
        return np.linalg.norm(x) * 2.0

    @njit
    def own(x):
        return special(x[0])

    for f, name in ((norm, "np.linalg.norm"), (own, "special")):
        with pytest.raises(irad.NoRuleError, match=rf"(?s){name}.*test_taylor\.py.*irad\.pushforward"):
            irad.jet(f, (X,), ((X,),), order=2)


def test_ways_to_name_what_has_a_series():
    @njit
    def volume(radius, height):
        return (radius**2 * height, radius), height

    whole = irad.jet(volume, (2.0, 3.0), (None, (1.0, 0.5)), has_aux=True)
    assert whole == ((12.0, 2.0), ((4.0, 0.0), (2.0, 0.0)), 3.0)
    assert irad.jet(volume, (2.0, 3.0), (1.0, 0.5), has_aux=True, argnames="height") == whole
    both = ((1.0,), (0.0, 0.5))
    assert irad.jet(volume, (2.0, 3.0), both, True, argnums=(0, -1))[1] == ((12.0, 1.0), (5.0, 0.0))
    made = pickle.loads(pickle.dumps(irad.taylor(volume, 2, 1, True)))
    assert made(2.0, 3.0, (1.0, 0.5)) == whole
    assert irad.jet(volume, (2.0, 3.0), (), has_aux=True, argnums=0) == ((12.0, 2.0), (), 3.0)


def test_bad_orders_and_series():
    with pytest.raises(irad.SignatureError, match="order=0"):
        irad.taylor(along, 0)
    with pytest.raises(irad.SignatureError, match="2 coefficients"):
        irad.taylor(along, 2)(0.0, (1.0,))
    with pytest.raises(irad.SignatureError, match="2 coefficients, and order=1"):
        irad.jet(along, (0.0,), ((1.0, 2.0),), order=1)
    assert irad.taylor(along, 2)(0.0, (None, 1.0))[1][0] == 0.0
