"""Forward mode through typed lists and dictionaries, against closed forms, reverse mode and differences."""

from __future__ import annotations

import resource

import numpy as np
import pytest
from numba import njit
from numba.core import types
from numba.typed import Dict, List

import irad

VALUES = types.float64[::1]


@njit
def appended_and_popped(x, n):
    found, total = List(), 0.0
    for i in range(n):
        found.append(x * i)
        found.append(x * x)
        total += found.pop(0) * found[0]
        found[0] = 2.0
    return total


@njit
def inserted_and_removed(x, n):
    found = List()
    for i in range(n):
        found.insert(0, x**i)
    del found[1:5:2]
    del found[-1]
    found.reverse()
    found.extend(found[::-1])
    total = 0.0
    for i in range(len(found)):
        total += (i + 1) * found[i]
    return total


@njit
def sorted_items(x, n):
    found = List()
    for i in range(n):
        found.append(np.sin(7.0 * x + i * i))
    found.sort()
    total = 0.0
    for i in range(n):
        total += i * found[i]
    return total


@njit
def nested(x, n):
    outer = List()
    for i in range(n):
        inner = List()
        for j in range(i + 1):
            inner.append(x * j)
        outer.append(inner)
    outer[0] = outer[n - 1]
    outer[0][1] = x * x
    total = 0.0
    for inner in outer:
        for value in inner:
            total += value * value
    return total


@njit
def list_of_arrays(x, n):
    found = List()
    for i in range(n):
        found.append(np.full(3, x * i))
    found[1][0] = x * x
    found.append(found.pop(1))
    return found[-1].sum() * found[1].sum() + found[0].sum()


@njit
def cleared(x, n):
    found = List()
    found.append(x)
    found.clear()
    found.append(3.0)
    return x * found[0] + len(found)


@njit
def replaced_by_constants(x, n):
    found = List()
    for _ in range(n):
        found.append(x)
    for i in range(n):
        found[i] = 1.0 * i
    return found[n - 1] * x


@njit
def entries(x, n):
    table, total = Dict.empty(types.int64, types.float64), 0.0
    for i in range(n):
        table[i] = x * i
        table[i] = table[i] * x
        table[i + 100] = 3.0 * i
        if i % 3 == 1:
            total += table.pop(i - 1)
    _, value = table.popitem()
    total += value * x
    for value in table.values():
        total += value * value
    return total


@njit
def deleted_entries(x, n):
    table = Dict.empty(types.int64, types.float64)
    for i in range(4 * n):
        table[i] = x * i
        if i % 2:
            del table[i - 1]
    total = table.get(1, 0.0) + table.get(0, x)
    for key in table:
        total += key * table[key] ** 2
    return total + table.setdefault(1000, x**3)


@njit
def entries_of_arrays(x, n):
    table = Dict.empty(types.unicode_type, VALUES)
    table["a"] = np.full(n, x)
    table["b"] = table["a"] * x
    table["a"][0] = 5.0 * x
    table["c"] = table["a"]
    table["a"] = np.ones(n)
    return table["a"].sum() * table["b"].sum() + table["c"].sum() ** 2


@njit
def constant_entries(x, n):
    constants, table = Dict.empty(types.int64, types.float64), Dict.empty(types.int64, types.float64)
    for i in range(n):
        constants[i] = 2.0 * i
        table[i] = x * i
        table[i] = constants[i]
        table[i + n] = x * constants[i]
    total = 0.0
    for i in range(2 * n):
        total += table[i] * x
    return total


PROGRAMS = [
    *(appended_and_popped, inserted_and_removed, sorted_items, nested, list_of_arrays, cleared, replaced_by_constants),
    *(entries, deleted_entries, entries_of_arrays, constant_entries),
]


@pytest.mark.parametrize("plan", ["default", "save_all"])
@pytest.mark.parametrize("function", PROGRAMS, ids=lambda function: function.__name__)
def test_containers_that_are_made_in_the_function(function, plan):
    options, x, n, h = irad.Options(plan=plan), 0.7, 9, 1e-5
    value, tangent = irad.jvp(function, (x, n), (2.0, None), options=options)
    assert value == function(x, n)
    assert tangent == pytest.approx(2.0 * irad.grad(function, options=options)(x, n), rel=1e-12)
    assert tangent == pytest.approx((function(x + h, n) - function(x - h, n)) / h, rel=1e-7)


def test_an_index_that_is_out_of_range_raises_as_in_the_primal():
    @njit
    def fails(x):
        found = List()
        found.append(x)
        found.pop(3)
        return found[0]

    with pytest.raises(IndexError):
        irad.jvp(fails, (1.0,), (1.0,))


def test_a_list_that_grows_and_shrinks_takes_no_more_memory_with_time():
    @njit
    def queue(x, n):
        waiting = List()
        for i in range(10):
            waiting.append(x * i)
        total = 0.0
        for _ in range(n):
            waiting.append(waiting[0] * 0.5)
            total += waiting.pop(0)
        return total

    def highest() -> int:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    irad.jvp(queue, (1.0, 10), (1.0, None))
    before = highest()
    value, tangent = irad.jvp(queue, (1.0, 3_000_000), (1.0, None))
    assert tangent == value  # linear
    assert highest() - before < 10_000  # KiB
