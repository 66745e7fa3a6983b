"""Arrays of few elements, of a number that is known: those that become values, and those that must not."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numba import njit

import irad
from irad.testing.allocations import allocations
from tests.tools.catalogue import Case, Catalogue, floats

PROGRAMS = Catalogue()


@PROGRAMS.at(floats(4))
@PROGRAMS.at(np.empty(0))
@njit
def products_of_matrices(x):
    total = 0.0
    for k in range(x.size):
        a, b, c = np.zeros((3, 3)), np.empty((3, 3)), np.zeros((3, 3))
        for i in range(3):
            for j in range(3):
                a[i, j] = math.sin(x[k] * (i + 1)) + j
                b[i, j] = x[k] * j - i * x[0]
        for i in range(3):
            for j in range(3):
                for m in range(3):
                    c[i, j] += a[i, m] * b[m, j]
        total += c[0, 0] * c[1, 2] - c[2, 1] ** 2
    return total


@PROGRAMS.at(floats(3))
@njit
def products_of_larger_matrices(x):
    """Too many elements to be values."""
    total = 0.0
    for k in range(x.size):
        a, c = np.empty((7, 7)), np.zeros((7, 7))
        for i in range(7):
            for j in range(7):
                a[i, j] = x[k] * (i + 1) + j * x[0]
        for i in range(7):
            for j in range(7):
                for m in range(7):
                    c[i, j] += a[i, m] * a[m, j]
        total += c[1, 2] * c[6, 6] * 1e-6
    return total


@PROGRAMS.at(floats(5))
@njit
def array_expressions_and_slices(x):
    total = 0.0
    for k in range(x.size):
        a = np.array([x[k], 2.0, x[0]])
        b = np.array([1.0, x[k] * x[k], 3.0])
        c = a + 2.0 * b
        d = c[1:] * a[:2]
        c[::-1][0] *= x[1]
        e = np.cross(np.sin(c), b)
        total += d.sum() + (e * c)[2] + np.sum(a * b)
    return total


@PROGRAMS.at(floats(6))
@njit
def swapped(x):
    a, b = np.zeros(3), np.zeros(3)
    for i in range(3):
        a[i] = x[i]
    for k in range(x.size):
        for i in range(3):
            b[i] = a[i] * x[k] + a[(i + 1) % 3]
        a, b = b, a
    return a[0] + a[1] * b[2]


@PROGRAMS.at(floats(6))
@njit
def of_the_iteration_before(x):
    before, first, total = np.zeros(2), np.ones(2), 0.0
    for k in range(x.size):
        now = np.empty(2)
        now[0] = x[k] + before[1]
        now[1] = x[k] * before[0]
        if k == 2:
            first = now
        total += now[0] * now[1] * first[0]
        before = now
    return total * first[1]


@PROGRAMS.at(floats(3), 0)
@PROGRAMS.at(floats(3), 9)
@njit
def made_anew_in_each_step(x, n):
    """By a method of second order; the state before the last step is read, too."""
    state, rates = np.array([x[0], x[1], 0.5]), np.array([0.1, x[2], 0.3])
    before = state
    for _ in range(n):
        slope = np.array([state[1], -rates[1] * state[0], state[2] * rates[0]])
        middle = state + 0.05 * slope
        before = state
        state = state + 0.1 * np.array([middle[1], -rates[1] * middle[0], middle[2] * rates[0]])
    return np.sum(state**2) * before[1]


@PROGRAMS.at(floats(5))
@njit
def copied(x):
    kept, last = np.zeros(3), np.ones(3)
    z, total = np.zeros(2, dtype=np.complex128), 0.0
    for k in range(x.size):
        a = np.empty(3)
        a[0], a[1], a[2] = x[k], kept[1], x[0]
        b = a.copy()
        c = b.copy()
        b[2] *= c[0]
        if k != 1:
            kept = b
        w = np.empty(2, dtype=np.complex128)
        w[0], w[1] = b[2] + 1j * z[1], z[0] * x[k]
        z = w
        total += last[0] * c[1]
        last = c
        total += abs(w[0]) ** 2
    return total * kept[2] + z[1].real


@PROGRAMS.at(floats(4))
@njit
def two_names_of_one(x):
    """What is changed by one name is seen by the other."""
    a, b = np.ones(2), np.ones(2)
    for k in range(x.size):
        c = np.empty(2)
        c[0], c[1] = a[0] * x[k], b[1] + x[k]
        if k != 2:
            b = a
            a = c
        else:
            a = b = c
        b[0] += 0.5 * a[1]
    return a[0] * b[0] + a[1] * b[1]


@PROGRAMS.at(floats(7))
@njit
def made_in_some_iterations(x):
    """In others the elements of an earlier one are read; and loops are left early."""
    w, total = np.ones(3), 0.0
    for k in range(x.size):
        if k % 3 == 1:
            w = np.empty(3)
            for i in range(3):
                w[i] = x[k] * (i + 1)
        if k == 4:
            continue
        u = np.zeros(4)
        for i in range(4):
            if x[k] * i > 2.5:
                break
            u[i] = w[i % 3] ** 2
        total += u[0] * u[1] + u[3]
    return total


@PROGRAMS.at(floats(5), 2)
@PROGRAMS.at(floats(5), 5)
@njit
def of_a_size_by_branch(x, n):
    total = 0.0
    for k in range(x.size):
        w = np.zeros(3) if k < n else np.zeros(5)
        for i in range(w.size):
            w[i] += x[k] * x[i]
        total += w[0] * w[w.size - 1]
    return total


@njit
def doubled(w):
    return w * 2.0


@PROGRAMS.at(floats(4))
@njit
def that_leave(x):
    """Into a list, out of a function, into an array of the caller, to a product of a library."""
    kept, total = [np.zeros(2)], 0.0
    for k in range(x.size):
        a = np.empty(2)
        a[0], a[1] = x[k], x[k] ** 2
        kept.append(a)
        b = doubled(a)
        b[1] *= a[0]
        x[k] = b[1] * 0.5 + a[0]
        total += np.dot(a, b) + np.sum(b.reshape((2, 1)) * a)
    return total * kept[1][1] + kept[-1][0] * x[2]


@PROGRAMS.at(floats(4), np.array([0, 7, 3, 3, -1]))
@njit
def at_places_from_an_array(x, places):
    total, table = 0.0, np.zeros(8)
    for j in range(8):
        table[j] = x[j % 4] * (j + 1)
    for k in range(x.size):
        w = np.empty(8)
        for j in range(8):
            w[j] = x[k] * j
        for i in range(places.size):
            w[places[i]] += 1.0
            total += w[places[i]] ** 2 * table[places[i]]
    return total


@PROGRAMS.at(floats(6))
@njit
def with_elements_never_set(x):
    """What is not set is not read, or counts for nothing."""
    total = 0.0
    for k in range(x.size):
        w = np.empty(3)
        if k % 2:
            w[1] = x[k] ** 3
        total += w[1] * x[0] if k % 2 else x[k]
    return total


@pytest.mark.parametrize("case", PROGRAMS, ids=str)
def test_gradient(case: Case):
    case.check()


@njit
def leaving(x, limit):
    total = 0.0
    for k in range(x.size):
        a = np.zeros(3)
        for i in range(3):
            a[i] = x[k] * (i + 1)
        if a[2] > limit:
            raise ValueError("beyond the limit")
        if a[1] > limit:
            return total
        total += a[0] * a[1]
    return total


def test_exceptions_and_returns_in_between():
    x = np.array([1.0, 2.0, 3.0])
    derivative = irad.grad(leaving)
    np.testing.assert_allclose(derivative(x, 20.0), 4.0 * x)
    np.testing.assert_allclose(irad.grad(leaving, options=irad.Options(plan="save_all"))(x, 20.0), 4.0 * x)
    with pytest.raises(ValueError, match="beyond the limit"):
        derivative(x, 5.0)


def test_no_reference_is_left():
    x = np.array([1.0, 2.0, 3.0])
    derivative = irad.grad(that_leave)
    derivative(x.copy())
    with allocations() as count:
        for _ in range(20):
            derivative(x.copy())
        assert count().kept == 0


def test_nothing_is_allocated_for_values():
    @njit
    def run(x):
        return irad.grad(products_of_matrices)(x)

    x = floats(50)
    run(x)
    with allocations() as count:
        run(x)
        made = count().made
    assert made < 10


@njit
def beyond(x, i):
    w = np.zeros(3)
    w[0] = x[0]
    return w[i] * x[1]


def test_indices_are_still_checked():
    checked = irad.grad(beyond, options=irad.Options(boundscheck=True))
    np.testing.assert_allclose(checked(np.array([2.0, 3.0]), 0), [3.0, 2.0])
    with pytest.raises(irad.BoundsError, match="3"):
        checked(np.array([2.0, 3.0]), 3)


def test_second_derivatives():
    x = floats(3)
    of_values = irad.hessian(of_the_iteration_before)(x)
    with_memory = irad.hessian(of_the_iteration_before, options=irad.Options(plan="save_all"))(x)
    np.testing.assert_allclose(of_values, with_memory, rtol=1e-12, atol=1e-12)
