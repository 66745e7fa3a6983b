"""Sets of numbers: `set(…)`, each way in and out; the typed set, which is refused where numbers in it are active."""

from __future__ import annotations

import numba.typed
import numpy as np
import pytest
from numba import njit, types

import irad
from irad.errors import IradError
from tests.tools.catalogue import Case, Catalogue, floats

Set = getattr(numba.typed, "Set", None)  # since Numba 0.68

PROGRAMS = Catalogue()
MORE = Catalogue()  # run with the slow tests


@PROGRAMS.at(floats(4))
@njit
def taken_out_and_asked(a):
    found = {1.5}
    for v in a:
        found.add(v * a[0])
    found.discard(a[1] * a[0])
    found.discard(17.0)
    found.remove(a[2] * a[0])
    total = 3.0 * a[1] if a[3] * a[0] in found else a[2]
    for v in found:
        total += np.sin(v)
    return total


@PROGRAMS.at(floats(4))
@njit
def popped(a):
    found = {1.5}
    for v in a:
        found.add(v * a[0])
    total = 0.0
    while len(found):
        total = total * 0.5 + found.pop()
    return total


@MORE.at(floats(3))
@njit
def algebra(a):
    one, two = {a[0] * 2, a[1]}, {a[1], a[2] * 3}
    total = 0.0
    for v in one | two:
        total += v * v
    for v in one & two:
        total += v * v * v
    for v in one ^ two:
        total += np.cos(v)
    for v in one - two:
        total += 7.0 * v
    one.update(two)
    other = one.copy()
    other.add(a[0])
    for v in other:
        total += v**4
    other.clear()
    return total + len(other) * a[0]


@PROGRAMS.at(floats(3))
@njit
def moved_as_it_grows(a):
    found = {0.0}
    for i in range(60):
        found.add(a[i % a.size] * (i + 1))
    total = 0.0
    for v in found:
        total += np.sin(v)
    return total


@MORE.at(floats(3))
@njit
def pairs_and_order(a):
    total = 0.0
    for key, v in {(1, a[0] * 2.0), (2, a[1])}:
        total += key * v * v
    ordered = sorted(set(a))
    return total + ordered[0] * ordered[1] + ordered[2]


@MORE.at(floats(3).astype(np.float32))
@njit
def in_single_precision(a):
    total = np.float32(0)
    for v in {a[0] * a[1], a[2]}:
        total += v * v
    return total


@njit
def fill(found, a, d):
    found.add(a[d] * a[0])
    if d:
        fill(found, a, d - 1)


@njit
def made(a, d):
    found = {a[d] * a[1]}
    if d:
        for v in made(a, d - 1):
            found.add(v * 2.0)
    return found


@PROGRAMS.at(floats(3))
@njit
def recursion(a):
    found = {a[0]}
    fill(found, a, 2)
    total = 0.0
    for v in found | made(a, 2):
        total += v * v
    return total


@pytest.mark.parametrize("case", PROGRAMS, ids=str)
def test_gradient(case: Case):
    case.check()


@pytest.mark.slow
@pytest.mark.parametrize("case", MORE, ids=str)
def test_gradient_of_more(case: Case):
    case.check()


@njit
def weighted(found, x):
    total = 0.0
    for v in found:
        total += v * x
    return total


@njit
def weighted_and_added(found, x):
    found.add(x)
    return weighted(found, x)


def test_a_set_as_an_argument_is_constant():
    assert irad.grad(weighted, 1)({1.0, 2.5}, 3.0) == 3.5


def test_an_argument_takes_no_active_numbers():
    with pytest.raises(IradError, match=r"'found', which was passed as constant"):
        irad.grad(weighted_and_added, 1)({1.0, 2.5}, 3.0)


@pytest.mark.skipif(Set is None, reason="this Numba has no typed sets")
class TestTypedSet:
    def test_constant_numbers(self):
        @njit
        def program(a):
            found = Set.empty(types.float64)
            found.add(1.5)
            total = a[1] if 1.5 in found else a[2]
            for v in found:
                total += v * a[0]
            return total

        np.testing.assert_allclose(irad.grad(program)(floats(3)), [1.5, 1.0, 0.0])

    def test_active_numbers_that_are_only_counted(self):
        @njit
        def program(a):
            found = Set.empty(types.float64)
            found.add(a[0] * a[1])
            found.add(1.5)
            return a[2] * len(found) if 1.5 in found else a[1]

        np.testing.assert_allclose(irad.grad(program)(floats(3)), [0.0, 0.0, 2.0])

    def test_an_argument(self):
        found = Set.empty(types.float64)
        found.add(1.0)
        found.add(2.5)
        assert irad.grad(weighted, 1)(found, 3.0) == 3.5
        with pytest.raises(IradError, match=r"call to numba\.typed\.Set"):
            irad.grad(weighted_and_added, 1)(found, 3.0)

    def test_in_a_recursion(self):
        @njit
        def program(a):
            found = Set.empty(types.float64)
            fill(found, a, 2)
            return weighted(found, a[0])

        with pytest.raises(IradError, match=r"call to numba\.typed\.Set"):
            irad.grad(program)(np.ones(3))
