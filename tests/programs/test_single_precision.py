"""float32: arguments, arithmetic that Numba widens or not, arrays, mixtures with float64 and integers."""

from __future__ import annotations

import math
from collections import namedtuple

import numpy as np
import pytest
from numba import njit

from tests.tools.catalogue import Case, Catalogue, floats

PROGRAMS = Catalogue()

SINGLE = np.float32
State = namedtuple("State", ["x", "v"])


def singles(*shape: int, seed: int = 0, **options) -> np.ndarray:
    return floats(*shape, seed=seed, dtype=SINGLE, **options)


@PROGRAMS.at(SINGLE(1.3))
@PROGRAMS.at(1.3)
@njit
def scalar(x):
    return x * x + x


@PROGRAMS.at(SINGLE(1.3), SINGLE(0.4))
@PROGRAMS.at(SINGLE(1.3), 0.4)
@PROGRAMS.at(1.3, SINGLE(0.4))
@njit
def two_scalars(x, y):
    return math.sin(x) * y + x / y


@PROGRAMS.at(SINGLE(1.3), 3)
@njit
def scalar_and_integer(x, n):
    s = x
    for i in range(n):
        s = s * x + i
    return s


@PROGRAMS.at(SINGLE(1.3))
@njit
def scalar_functions(x):
    return math.exp(-x) * math.log(x) + math.sqrt(x) * math.tanh(x) + x**3 + math.atan2(x, 2.0) + abs(x)


@PROGRAMS.at(singles(5))
@PROGRAMS.at(singles(0))
@PROGRAMS.at(singles(10)[::2])
@PROGRAMS.at(singles(10)[::-1])
@njit
def array_loop(x):
    s = 0.0
    for i in range(x.size):
        s += x[i] * x[i]
    return s


@PROGRAMS.at(singles(5))
@njit
def array_loop_in_single(x):
    s = np.float32(0.0)
    for i in range(x.size):
        s += x[i] * x[i]
    return s


@PROGRAMS.at(singles(5), singles(5, seed=1))
@PROGRAMS.at(singles(5), floats(5, seed=1))
@njit
def array_expression(x, y):
    return np.sum(np.exp(-x) * y + x / (1 + y * y))


@PROGRAMS.at(singles(3, 4))
@PROGRAMS.at(singles(3, 4, order="F"))
@njit
def matrix_reductions(x):
    return x.mean() * np.prod(x) + np.var(x) + x.sum(axis=0)[1] ** 2 + x.max()


@PROGRAMS.at(singles(3, 4), singles(4, seed=1))
@njit
def matrix_times_vector(a, x):
    y = a @ x
    return y @ y


@PROGRAMS.at(singles(3, 4), singles(4, 2, seed=1))
@njit
def matrix_times_matrix(a, b):
    c = np.dot(a, b)
    return np.sum(c * c)


@PROGRAMS.at(singles(5))
@njit
def in_place(x):
    for i in range(1, x.size):
        x[i] = x[i] * x[i - 1]
    return x[-1] * x[1]


@PROGRAMS.at(singles(5))
@njit
def widened_buffer(x):
    y = np.zeros(5)
    for i in range(5):
        y[i] = x[i] * x[i]
    return np.sum(y * y)


@PROGRAMS.at(singles(5))
@njit
def like_buffer(x):
    y = np.zeros_like(x)
    for i in range(5):
        y[i] += x[i] * x[4 - i]
    return np.sum(y * y)


@PROGRAMS.at(singles(4))
@njit
def cumulative(x):
    c = np.cumsum(x)
    return np.sum(c * c) + np.sort(x)[1] + np.diff(x)[0] ** 2


@PROGRAMS.at((SINGLE(1.5), 2.5))
@PROGRAMS.at((SINGLE(1.5), SINGLE(2.5)))
@njit
def tuple_of_both(t):
    return t[0] * t[0] * t[1]


@PROGRAMS.at(State(singles(3), SINGLE(0.5)))
@njit
def namedtuple_of_singles(s):
    return np.sum(s.x * s.x) * s.v


@PROGRAMS.at(SINGLE(0.5), SINGLE(0.25))
@njit
def recurrence(x, y):
    for _ in range(10):
        x, y = y * x + y, x * np.float32(0.5)
    return x + y


@PROGRAMS.at(singles(4), np.array([2, 0, 0, 3]))
@njit
def gather_and_scatter(x, k):
    y = np.zeros_like(x)
    for i in range(4):
        y[k[i]] += x[i] * x[i]
    return np.sum(y * y) + np.sum(x[k] * x)


@njit
def _helper(x, y):
    return x * y + math.cos(x)


@PROGRAMS.at(SINGLE(0.7), 1.1)
@njit
def callee_with_both(x, y):
    return _helper(x, x) + _helper(x, y) * _helper(y, x)


@PROGRAMS.at(singles(4))
@njit
def returned_array(x):
    return x * x


@PROGRAMS.at(SINGLE(0.7))
@njit
def returned_pair(x):
    return x * x, math.sin(x)


@PROGRAMS.at(singles(3), SINGLE(2.0))
@njit
def returned_mixture(x, a):
    return x * a, 3, a * a


@PROGRAMS.at(SINGLE(0.7))
@njit
def cast_up(x):
    y = np.float64(x)
    return y * y * x


@pytest.mark.parametrize("case", PROGRAMS, ids=str)
def test_gradient(case: Case):
    case.check()
