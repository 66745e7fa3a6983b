"""Objects as differentiated arguments that are handed to recursive functions: what the request states of an argument's
memory meets what the signatures of callees state of it."""

from __future__ import annotations

import numpy as np
import pytest
from numba import float64, njit
from numba.experimental import jitclass
from numba.typed import Dict, List

import irad
from tests.tools.catalogue import Case, Catalogue, later

PROGRAMS = Catalogue()

# Numba announces that it will type lists differently one day.
pytestmark = pytest.mark.filterwarnings("ignore::numba.NumbaPendingDeprecationWarning")

ARRAYS = [np.array([1.0, 2.0]), np.array([3.0, 4.0])]


def dictionary(*values):
    result = Dict()
    for key, value in enumerate(values):
        result[key] = value
    return result


@njit
def sum_of_products(values, i):
    if i == len(values):
        return 0.0
    return values[i][0] * values[i][1] + sum_of_products(values, i + 1)


@PROGRAMS.at(ARRAYS)
@PROGRAMS.at(later(List, ARRAYS))
@PROGRAMS.at([(1.0, 2.0), (3.0, 4.0)])
@njit
def items_read(values):
    return sum_of_products(values, 0)


@njit
def double_all(values, i):
    if i == len(values):
        return 0.0
    values[i] = values[i] * 2.0
    rest = double_all(values, i + 1)
    return values[i][0] * values[i][1] + rest


@PROGRAMS.at(ARRAYS)
@PROGRAMS.at(later(List, ARRAYS))
@njit
def arrays_replaced(values):
    return double_all(values, 0)


@njit
def chain(values, n):
    if n == 0:
        return values[0] * 1.0
    values[n] = values[n] * values[n - 1]
    return values[n] + chain(values, n - 1)


@PROGRAMS.at(later(dictionary, 1.5, 2.0, 3.0))
@njit
def entries_written(values):
    return chain(values, 2)


@PROGRAMS.at(later(dictionary, np.array([1.5]), np.array([2.0]), np.array([3.0])))
@njit
def entries_replaced(values):
    return chain(values, 2)[0]


@pytest.mark.parametrize("case", PROGRAMS, ids=str)
def test_gradient(case: Case):
    case.check()


@jitclass([("x", float64[::1]), ("k", float64)])
class Box:
    def __init__(self, x, k):
        self.x = x
        self.k = k


def test_fields_of_an_instance_written_and_replaced():
    @njit
    def scale(box, n):
        if n == 0:
            return 0.0
        box.k = box.k * 2.0
        box.x = box.x * box.k
        return box.x[0] + scale(box, n - 1)

    @njit
    def f(box):
        return scale(box, 2)

    gradient = irad.grad(f)(Box(np.array([1.5, 2.0]), 0.75))  # 2 k x + 8 k² x
    np.testing.assert_allclose(gradient.x, [2 * 0.75 + 8 * 0.75**2, 0.0])
    np.testing.assert_allclose(gradient.k, 2 * 1.5 + 16 * 0.75 * 1.5)


@pytest.mark.parametrize("make", [list, List])
def test_an_array_stored_in_a_list_is_found_by_another_name_of_the_list(make):
    @njit
    def f(a, b):
        stored = a[0] * 2.0
        a[0] = stored
        found = b[0]
        result = found[0] * found[1]
        stored[0] = 5.0  # what the product was computed from must be kept
        stored[1] = 7.0
        return result

    values = make([np.array([1.5, 2.0])])
    for gradient in irad.grad(f, (0, 1))(values, values):
        np.testing.assert_array_equal(gradient[0], [8.0, 6.0])
