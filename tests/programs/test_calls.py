"""Calls: compiled and not, inlined and not, recursion, closures, functions as arguments, code of other packages."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numba import float64, int64, njit, types, vectorize
from numba.extending import overload, overload_method, register_jitable
from numba.stencils.stencil import stencil

from tests.tools.catalogue import Case, Catalogue, floats

PROGRAMS = Catalogue()


@njit
def square(x):
    return x * x


@njit
def compiled_before(x, y):
    return math.sin(x) * y


compiled_before(0.1, 0.2)


@njit(float64(float64, int64))
def eager(x, n):
    for _ in range(n):
        x = math.cos(x)
    return x


@njit(inline="always")
def inlined(x):
    return x * math.exp(-x)


@njit(cache=False, fastmath=True)
def with_fastmath(x):
    return x * x * x + 2 * x


@njit(error_model="numpy")
def with_numpy_errors(x, y):
    return x / y


@njit(boundscheck=True)
def with_boundscheck(x):
    s = 0.0
    for i in range(x.size):
        s += x[i] ** 2
    return s


@PROGRAMS.at(0.7)
@njit
def one_callee(x):
    return square(x) * square(square(x))


@PROGRAMS.at(0.7, 1.2)
@njit
def callee_compiled_before(x, y):
    return compiled_before(x, y) * compiled_before(y, x)


@PROGRAMS.at(0.7)
@njit
def callee_with_signature(x):
    return eager(x, 3) + eager(x * x, 2)


@PROGRAMS.at(0.7)
@njit
def inlined_callee(x):
    return inlined(x) + inlined(2 * x)


@PROGRAMS.at(0.7)
@njit
def callee_with_other_options(x):
    a = np.array([x, x * x, 3.0])
    return with_fastmath(x) * with_numpy_errors(x, 1 + x) + with_boundscheck(a)


@njit
def _sum_of_squares(x):
    s = 0.0
    for i in range(x.size):
        s += x[i] * x[i]
    return s


@njit
def _normalise(x):
    n = math.sqrt(_sum_of_squares(x))
    for i in range(x.size):
        x[i] /= n
    return n


@PROGRAMS.at(floats(4))
@njit
def callee_that_writes(x):
    n = _normalise(x)
    return n * x[0] + _normalise(x) * x[1] ** 2


@njit
def _scaled_copy(x, a):
    y = np.empty_like(x)
    for i in range(x.size):
        y[i] = x[i] * a
    return y


@PROGRAMS.at(floats(4), 1.3)
@njit
def callee_that_returns_an_array(x, a):
    y = _scaled_copy(x, a)
    z = _scaled_copy(y, y[0])
    return np.sum(z * x)


@njit
def _tail(x):
    return x[1:]


@PROGRAMS.at(floats(5))
@njit
def callee_that_returns_a_view(x):
    y = _tail(_tail(x))
    y[0] = y[0] * x[0]
    return y[0] * x[3] + x[2]


@njit
def _split_step(x, y):
    return x + 0.1 * y, y - 0.1 * math.sin(x)


@PROGRAMS.at(0.7, 0.2)
@njit
def callee_in_a_loop(x, y):
    for _ in range(8):
        x, y = _split_step(x, y)
    return x * y


@njit
def _branching(x, k):
    if k % 3 == 0:
        return x * x
    if k % 3 == 1:
        return math.sin(x)
    return x + k


@PROGRAMS.at(0.7)
@njit
def callee_with_branches_in_a_loop(x):
    for k in range(7):
        x = _branching(x, k) * 0.7
    return x


@njit
def power_recursive(x, n):
    if n == 0:
        return 1.0
    return x * power_recursive(x, n - 1)


@PROGRAMS.at(1.2, 5)
@PROGRAMS.at(1.2, 0)
@njit
def self_recursion(x, n):
    return power_recursive(x, n) * 2.0


PROGRAMS.at(1.2, 4)(power_recursive)


@PROGRAMS.at(0.3, 6)
@njit
def fibonacci_like(x, n):
    if n < 2:
        return x * n + 1.0
    return fibonacci_like(x, n - 1) * 0.5 + fibonacci_like(x, n - 2) * x


@njit
def even_step(x, n):
    if n == 0:
        return x
    return odd_step(x * x, n - 1)


@njit
def odd_step(x, n):
    if n == 0:
        return -x
    return even_step(math.sin(x) + 0.5, n - 1)


@PROGRAMS.at(0.8, 5)
@PROGRAMS.at(0.8, 4)
@njit
def mutual_recursion(x, n):
    return even_step(x, n) * x


@njit
def tree_sum(x, low, high):
    if high - low == 1:
        return x[low] ** 2
    middle = (low + high) // 2
    left = tree_sum(x, low, middle)
    right = tree_sum(x, middle, high)
    return left * 1.1 + right + left * right * 0.01


@PROGRAMS.at(floats(7))
@njit
def recursion_over_an_array(x):
    return tree_sum(x, 0, x.size)


@njit
def fill_recursive(x, i):
    if i < x.size:
        x[i] = x[i] * x[i - 1]
        fill_recursive(x, i + 1)


@PROGRAMS.at(floats(5))
@njit
def recursion_that_writes(x):
    fill_recursive(x, 1)
    return x[-1] + x[2]


def make_polynomial(a, b):
    @njit
    def polynomial(x):
        return a * x * x + b * x

    return polynomial


PROGRAMS.at(1.7)(make_polynomial(2.0, 3.0))
PROGRAMS.at(1.7)(make_polynomial(-2.0, 0.5))


@PROGRAMS.at(1.7, 0.4)
@njit
def closure_inside(x, y):
    def helper(a):
        return a * y + a**2

    return helper(x) * helper(0.5)


@PROGRAMS.at(floats(3))
@njit
def closure_over_an_array(x):
    def weight(i):
        return x[i] * x[0]

    s = 0.0
    for i in range(3):
        s += weight(i) * i
    return s


@njit
def _apply_twice(f, x):
    return f(f(x))


@PROGRAMS.at(0.6)
@njit
def function_as_an_argument(x):
    return _apply_twice(square, x) + _apply_twice(inlined, x)


@PROGRAMS.at(square, 0.6)
@PROGRAMS.at(inlined, 0.6)
@njit
def function_given_by_the_caller(f, x):
    return f(x) * f(x + 1.0)


@njit
def _simpson(f, a, b, n):
    h = (b - a) / n
    s = f(a) + f(b)
    for i in range(1, n):
        s += (4.0 if i % 2 == 1 else 2.0) * f(a + i * h)
    return s * h / 3.0


@PROGRAMS.at(0.2, 1.4)
@njit
def quadrature_with_a_lambda(a, b):
    return _simpson(lambda t: math.exp(-t * t) * t, a, b, 10)


@njit
def _defaults(x, y=2.0, n=3):
    s = x
    for _ in range(n):
        s = s * y + x
    return s


@PROGRAMS.at(0.9, 1.1)
@njit
def defaults_and_keywords(x, y):
    return _defaults(x) + _defaults(x, y) + _defaults(n=2, x=y, y=x)


PROGRAMS.at(0.9)(_defaults)
PROGRAMS.at(0.9, 1.5)(_defaults)


@njit
def _star(first, *rest):
    s = first
    for v in rest:
        s = s * v
    return s


@PROGRAMS.at(0.9, 1.1)
@njit
def star_arguments(x, y):
    return _star(x, y, x, 2.0) + _star(y, x)


def soft_clip(x, limit):
    raise NotImplementedError


@overload(soft_clip)
def _soft_clip(x, limit):
    if isinstance(x, types.Array):

        def clip_array(x, limit):
            out = np.empty_like(x)
            for i in range(x.size):
                out[i] = limit * math.tanh(x[i] / limit)
            return out

        return clip_array

    def clip_scalar(x, limit):
        return limit * math.tanh(x / limit)

    return clip_scalar


@overload_method(types.Array, "energy")
def _energy(array):
    def energy(array):
        s = 0.0
        for v in array.flat:
            s += v * v
        return s

    return energy


@register_jitable
def third_party(x, y):
    if x > y:
        return x * y
    return x / y


@PROGRAMS.at(floats(4), 1.5)
@njit
def overloaded_function(x, limit):
    return np.sum(soft_clip(x, limit)) * soft_clip(x[0], limit)


@PROGRAMS.at(floats(4))
@njit
def overloaded_method(x):
    return x.energy() * x[1:].energy()


@PROGRAMS.at(0.9, 1.1)
@njit
def register_jitable_function(x, y):
    return third_party(x, y) + third_party(y, x)


@vectorize
def smooth_step(x, k):
    return 1.0 / (1.0 + math.exp(-k * x))


@PROGRAMS.at(floats(4), 2.0)
@njit
def vectorized_function(x, k):
    return np.sum(smooth_step(x, k)) * smooth_step(x[0], 3.0)


@stencil("constant")
def laplacian(u):
    return u[-1] - 2 * u[0] + u[1]


@PROGRAMS.at(floats(6))
@njit
def stencil_function(u):
    return np.sum(laplacian(u) ** 2)


@njit
def _unused_callee(x):
    return math.log(x)


@PROGRAMS.at(0.5)
@njit
def result_of_a_call_is_not_used(x):
    _unused_callee(x)
    return x * x


@njit
def _count(k, out):
    out[0] += k
    return k + 1


@PROGRAMS.at(0.5, np.zeros(1, np.int64))
@njit
def callee_without_floats(x, out):
    k = 0
    for _ in range(4):
        k = _count(k, out)
        x = x * 1.1 + k
    return x * out[0]


@njit
def _deep(x, n):
    a = np.empty(n)
    for i in range(n):
        a[i] = x * (i + 1)
    return a


@njit
def _deeper(x, n):
    return _deep(x * x, n)[n - 1] + _deep(x, n + 1)[0]


@PROGRAMS.at(0.5)
@njit
def allocations_in_callees(x):
    s = 0.0
    for n in range(1, 5):
        s += _deeper(x, n) ** 2
    return s


@njit
def _raises_below_zero(x):
    if x < 0:
        raise ValueError("negative")
    return math.sqrt(x)


@PROGRAMS.at(0.5)
@njit
def callee_that_could_raise(x):
    return _raises_below_zero(x) * _raises_below_zero(x + 1)


@PROGRAMS.at(0.5)
@njit
def callee_that_raises_is_caught(x):
    s = x
    try:
        s = s * _raises_below_zero(x)
        s = s * _raises_below_zero(x - 1)
    except Exception:
        s = s + x * x
    return s


@njit
def _twenty(x):
    a, b, c, d, e = x, x * x, x + 1, math.sin(x), math.cos(x)
    for _ in range(4):
        a, b, c, d, e = b, c * 0.9, d + a, e * a, a - d
    return a + b * c + d * e


@PROGRAMS.at(0.5)
@njit
def large_callee_called_often(x):
    return _twenty(x) + _twenty(_twenty(x) * 0.1) - _twenty(x * x)


@PROGRAMS.at(0.4, 0.6)
@njit
def same_callee_with_other_types(x, y):
    return square(x) * square(3) + square(np.array([x, y])).sum()


@pytest.mark.parametrize("case", PROGRAMS, ids=str)
def test_gradient(case: Case):
    case.check()
