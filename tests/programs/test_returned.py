"""Functions that return arrays, tuples, views of arguments: checked through ``irad.vjp``."""

from __future__ import annotations

import math
from collections import namedtuple

import numpy as np
import pytest
from numba import njit

from tests.tools.catalogue import Case, Catalogue, floats

PROGRAMS = Catalogue()

Pair = namedtuple("Pair", ["left", "right"])


@PROGRAMS.at(floats(4), 2.0)
@PROGRAMS.at(floats(0), 2.0)
@PROGRAMS.at(floats(8)[::2], 2.0)
@njit
def scaled(x, a):
    return x * a


@PROGRAMS.at(floats(4))
@njit
def filled_by_a_loop(x):
    y = np.empty(x.size)
    for i in range(x.size):
        y[i] = math.sin(x[i]) * x[i - 1]
    return y


@PROGRAMS.at(floats(3, 4))
@PROGRAMS.at(floats(3, 4, order="F"))
@njit
def matrix(x):
    return x * x + x.sum()


@PROGRAMS.at(floats(3, 4))
@njit
def transposed_result(x):
    return (x * x).T


@PROGRAMS.at(floats(6))
@njit
def strided_result(x):
    y = x * x
    return y[::-2]


@PROGRAMS.at(floats(6))
@njit
def the_argument_itself(x):
    return x


@PROGRAMS.at(floats(6))
@njit
def a_view_of_the_argument(x):
    return x[1:4]


@PROGRAMS.at(floats(6))
@njit
def the_argument_after_writing(x):
    x[2] = x[0] * x[1]
    return x


@PROGRAMS.at(floats(2, 3))
@njit
def a_reshaped_argument(x):
    return x.reshape(6)


@PROGRAMS.at(1.5, 2.5)
@njit
def pair_of_floats(x, y):
    return x * y, x / y


@PROGRAMS.at(1.5, 2.5)
@njit
def heterogeneous_result(x, y):
    return x * y, 3, True, np.array([x, y * y])


@PROGRAMS.at(1.5, 2.5)
@njit
def namedtuple_result(x, y):
    return Pair(x * y, np.array([x + y, x]))


@PROGRAMS.at(1.5, 2.5)
@njit
def nested_result(x, y):
    return (x, (x * y, y**2)), x - y


@PROGRAMS.at(floats(4))
@njit
def array_and_its_view(x):
    y = x * x
    return y, y[1:3]


@PROGRAMS.at(floats(4))
@njit
def the_same_array_twice(x):
    y = x * 2.0
    return y, y


@PROGRAMS.at(floats(4), floats(4, seed=1))
@njit
def both_arguments_back(x, y):
    x *= y
    return y, x


@PROGRAMS.at(0.7)
@njit
def zero_dimensional_result(x):
    return np.array(x * x)


@PROGRAMS.at((1.5, floats(3)))
@njit
def tuple_in_tuple_out(t):
    a, x = t
    return a * a, x * a


@PROGRAMS.at(floats(3), 4)
@njit
def trajectory(x, steps):
    out = np.empty((steps + 1, 3))
    out[0] = x
    for k in range(steps):
        for i in range(3):
            out[k + 1, i] = out[k, i] + 0.1 * math.sin(out[k, (i + 1) % 3])
    return out


@PROGRAMS.at(floats(3, 3), floats(3, 2, seed=1))
@njit
def product(a, b):
    return a @ b


@PROGRAMS.at(floats(5))
@njit
def of_data_dependent_size(x):
    return x[x > 1.0] ** 2


@PROGRAMS.at(floats(3))
@njit
def constant_result_array(x):
    return np.ones(3), x * 2


@PROGRAMS.at(floats(4), True)
@PROGRAMS.at(floats(4), False)
@njit
def one_of_two(x, flag):
    if flag:
        return x * x
    return x[::-1].copy()


@PROGRAMS.at(floats(4))
@njit
def jacobian_like(x):
    j = np.zeros((4, 4))
    for i in range(4):
        for k in range(4):
            j[i, k] = x[i] * x[k] if i <= k else x[i] / x[k]
    return j


@njit
def _pieces(x):
    return x[:2] * x[2:], x[0]


@PROGRAMS.at(floats(4))
@njit
def result_of_a_callee(x):
    a, b = _pieces(x)
    return a * b


@pytest.mark.parametrize("case", PROGRAMS, ids=str)
def test_gradient(case: Case):
    case.check()
