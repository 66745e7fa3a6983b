"""Second derivatives of functions with containers: those of the formula that they compute, in every order of modes."""

from __future__ import annotations

from collections import namedtuple

import numpy as np
import pytest
from numba import float64, njit
from numba.experimental import jitclass
from numba.typed import Dict, List

import irad
from irad.testing.allocations import allocations

X, V, W = np.array([1.2, 0.7, 2.1, 0.4]), np.array([1.0, -0.5, 0.3, 2.0]), np.array([0.3, 1.5, -0.7, 0.9])


@njit
def product(x):
    """What all functions here compute."""
    return x[0] ** 2 * x[1] ** 3 * x[2] + x[3] ** 3 * x[0]


@njit
def reflected_list(x):
    items = [x[0] ** 2]
    for _ in range(3):
        items.append(x[1])
    items.append(x[2])
    first, last = items.pop(0), items.pop()
    items.insert(1, last)
    items.extend([first, x[3]])
    found = items[0] * items[1] * items[2] * items[3] * items[4]
    return found + items[-1] ** 3 * x[0]


@njit
def typed_list(x):
    items = List()
    for value in x:
        items.append(value * x[0])
    for _ in range(9):
        items.append(items[1] / x[0])
    items[2] = items[2] / x[0]
    del items[4]
    last = items.pop()
    items.insert(0, items[4] * items[5])
    return items[1] * items[0] * last * items[3] + (items[4] / x[0]) ** 3 * x[0]


@njit
def lists_of_arrays(x):
    items, typed = [x * x, x], List()
    typed.append(x * x[0])
    typed.append(items[0])
    typed.append(typed[0] * typed[1])
    items.append(typed[2] / x)
    return items[2][1] * x[0] * items[1][1] * x[2] + typed[1][3] * x[3] * x[0]


@njit
def dictionary(x):
    table = {}
    for i in range(x.size):
        table[3 * i] = x[i] ** 2
    for i in range(9):
        table[100 + i] = x[1]
    table[0] = table[0] * table[100]
    del table[101]
    total = table.pop(3) * table.get(5, 1.0) * table.setdefault(7, x[2])
    for key, value in table.items():
        if key == 0:
            total *= value
    return total + x[3] * table[9] * table.get(3, x[0])


@njit
def dictionary_of_arrays(x):
    table = {"squares": x * x}
    table["cubes"] = table["squares"] * x
    return table["squares"][0] * table["cubes"][1] * x[2] + table["cubes"][3] * x[0]


@njit
def tuples_in_lists(x):
    items = [(i, x[i] ** 2, x[i]) for i in range(x.size)]
    total = 0.0
    for i, square, value in items:
        if i == 1:
            total += square * value * items[0][1] * x[2]
    return total + items[3][1] * items[3][2] * x[0]


@jitclass([("first", float64), ("rest", float64[:])])
class Parts:
    def __init__(self, first, rest):
        self.first, self.rest = first, rest

    def value(self):
        return self.first**2 * self.rest[1] ** 3 * self.rest[2] + self.rest[3] ** 3 * self.rest[0]


Pair = namedtuple("Pair", "first rest")
record = np.dtype([("first", np.float64), ("rest", np.float64)])


@njit
def structures(x):
    parts, pair, records = Parts(1.0, x * x), Pair(x[0], x * 2.0), np.zeros(2, record)
    parts.first *= pair.first
    parts.rest = x
    records[0].first = parts.value() * pair.rest[0]
    records[1].rest = records[0].first / 2.0
    return records[1].rest / x[0]


MAKING = [
    reflected_list,
    typed_list,
    lists_of_arrays,
    dictionary,
    dictionary_of_arrays,
    tuples_in_lists,
    structures,
]


@pytest.fixture(scope="module")
def hessian():
    a, b, c, d = X
    mixed = np.array(
        [
            [2 * b**3 * c, 6 * a * b**2 * c, 2 * a * b**3, 3 * d**2],
            [0.0, 6 * a**2 * b * c, 3 * a**2 * b**2, 0.0],
            [0.0, 0.0, 0.0, 0.0],
            [0.0, 0.0, 0.0, 6 * a * d],
        ]
    )
    return np.triu(mixed) + np.triu(mixed, 1).T


@pytest.mark.parametrize("f", MAKING)
def test_every_order_of_the_modes(f, hessian):
    assert f(X) == pytest.approx(product(X))
    gradient, pushed = irad.grad(f), irad.pushforward(f)

    @njit
    def directional(v, x):
        return pushed(x, v)[1]

    close = {"rtol": 1e-11, "atol": 1e-12}
    np.testing.assert_allclose(irad.hvp(f)(X, V), hessian @ V, **close)
    np.testing.assert_allclose(irad.vjp(gradient, X)[1](V)[0], hessian @ V, **close)
    np.testing.assert_allclose(irad.jvp(directional, (W, X), (None, V))[1], W @ hessian @ V, **close)
    np.testing.assert_allclose(irad.grad(directional, 1)(V, X), hessian @ V, **close)


def test_what_containers_hold_is_freed():
    product = irad.hvp(typed_list), irad.hvp(dictionary), irad.hvp(reflected_list)
    for each in product:
        each(V, X)
    with allocations() as count:
        for each in product:
            each(V, X)
        counted = count()
    assert (counted.kept, counted.kept_headers) == (0, 0)


@njit
def overwriting(items, x):
    items[0] = items[1] * x
    items.append(items[0] * items[1])
    return items[2] ** 2


@pytest.mark.parametrize("make", [List, list])
def test_lists_as_arguments(make):
    """(v² x)² with the second item v: differentiated with respect to the list and the number, and the number alone."""
    v, x = -0.25, 2.0
    gradient = irad.grad(overwriting, (0, 1))
    (by_items, by_x), (items_changed, x_changed) = irad.jvp(gradient, (make([1.5, v]), x), (make([3.0, 1.0]), 1.0))
    assert (list(by_items), by_x) == ([0.0, 4 * v**3 * x**2], 2 * v**4 * x)
    assert list(items_changed) == pytest.approx([0.0, 12 * v**2 * x**2 + 8 * v**3 * x])
    assert x_changed == pytest.approx(8 * v**3 * x + 2 * v**4)
    alone = irad.grad(overwriting, 1)
    assert irad.jvp(alone, (make([1.5, v]), x), (None, 1.0))[1] == pytest.approx(2 * v**4)
    items_pulled, x_pulled = irad.vjp(alone, make([1.5, v]), x)[1](1.0)
    assert (list(items_pulled), x_pulled) == (pytest.approx([0.0, 8 * v**3 * x]), pytest.approx(2 * v**4))


@njit
def by_key(x):
    made = Dict()
    made[7] = List([x**4])
    made[2] = List([x, 2.0 * x])
    return made, [x * x * np.ones(2), x**3 * np.ones(1)]


@njit
def weighted_by_key(x, c):
    weights = Dict()
    weights[2] = List([3.0, c * c])
    weights[7] = List([c * x])
    return irad.autodiff(irad.Reverse, by_key, irad.Active(x), seed=(weights, [c * x * np.ones(2), np.ones(1)]))[0]


@njit
def pulled_by_key(x, c):
    weights = Dict()
    weights[2] = List([3.0, c * c])
    weights[7] = List([c * x])
    _, pullback = irad.vjp(by_key, x)
    return pullback((weights, [c * x * np.ones(2), np.ones(1)]))[0]


@pytest.mark.parametrize("function", [weighted_by_key, pulled_by_key])
def test_cotangents_of_what_is_returned(function):
    """Each entry of a dictionary has its own cotangent: iterators are set to the entry."""
    x, c = 2.0, 3.0
    assert function(x, c) == 4 * c * x**4 + 3 + 2 * c * c + 4 * c * x * x + 3 * x * x
    expected = 16 * c * x**3 + 8 * c * x + 6 * x, 4 * x**4 + 4 * c + 4 * x * x
    assert irad.grad(function, (0, 1))(x, c) == pytest.approx(expected, rel=1e-14)
    assert irad.jvp(function, (x, c), (1.0, 2.0))[1] == pytest.approx(expected[0] + 2.0 * expected[1], rel=1e-14)


@njit
def along_entries(x, c):
    given, tangents = Dict(), Dict()
    given[1], given[2] = List([1.0]), List([x])
    tangents[2], tangents[1] = List([3.0]), List([c * x])
    return irad.jvp(two_entries, (given, x), (tangents, 1.0))[1]


@njit
def two_entries(given, x):
    return given[1][0] * x + given[2][0] * x * x


def test_tangents_of_entries():
    x, c = 2.0, 3.0
    assert along_entries(x, c) == c * x * x + 3 * x * x + 1 + 2 * x * x
    assert irad.grad(along_entries, (0, 1))(x, c) == pytest.approx((2 * c * x + 10 * x, x * x), rel=1e-14)
