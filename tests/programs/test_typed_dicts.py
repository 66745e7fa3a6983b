"""Typed dictionaries made inside the function: keys of all kinds, values of all kinds, growth, deletion, iteration."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit, types
from numba.typed import Dict

import irad
from tests.tools.catalogue import Case, Catalogue, floats

PROGRAMS = Catalogue()
MORE = Catalogue()  # run with the slow tests
VECTOR = types.float64[::1]
PAIR = types.Tuple((types.float64, VECTOR))
KEY = types.UniTuple(types.int64, 2)
TWO = types.UniTuple(types.float64, 2)


@PROGRAMS.at(floats(3))
@njit
def string_keys(a):
    table = {"x": a[0] * a[1], "y": a[1], "z": a[2]}
    table["x"] = table["x"] * table["y"]
    table["w"] = table["z"] ** 2
    s = table["x"] * table["w"]
    for name in table:
        s += table[name] * len(name)
    return s + ("x" in table) + ("q" in table)


@MORE.at(floats(6))
@njit
def get_with_default(a):
    table = {1: a[0], 2: a[1] * a[1]}
    s = 0.0
    for i in range(4):
        s += table.get(i, a[2] * i) * a[3]
    found = table.get(9)
    if found is None:
        s *= a[4]
    return s * table.setdefault(2, a[5]) * table.setdefault(7, a[5]) + table[7]


@PROGRAMS.at(floats(8))
@njit
def deleted_and_inserted(a):
    table = Dict.empty(types.int64, types.float64)
    for i in range(a.size):
        table[i] = a[i] ** 2
    s = table[1] * table[2]
    del table[1]
    del table[4]
    table[1] = table[2] * a[0]
    for i in range(20, 40):
        table[i] = table[1] * a[i % 8]
        if i % 3 == 0:
            del table[i - 1]
    k = 0
    for value in table.values():
        k += 1
        s += value * value * k
    return s


@PROGRAMS.at(floats(6))
@njit
def popped(a):
    table = Dict.empty(types.int64, types.float64)
    for i in range(a.size):
        table[i] = a[i] ** 2
    s = table.pop(2) * table.pop(9, a[0])
    del table[4]
    key, value = table.popitem()
    s += key * value * table[0]
    key, value = table.popitem()
    table[7] = value * s
    for key, value in table.items():
        s += key * value
    while len(table):
        key, value = table.popitem()
        s = s * value + a[1]
    return s


@MORE.at(floats(4))
@njit
def updated_and_copied(a):
    table = {1: a[0], 2: a[1]}
    other = {2: a[2] * a[2], 3: a[3]}
    whole = table.copy()
    whole.update(other)
    table[1] = 0.0
    s = whole[1] * whole[2] * whole[3] + table[2]
    whole.clear()
    whole[1] = s * a[0]
    return whole[1] + table[1]


@PROGRAMS.at(floats(4))
@njit
def number_keys(a):
    table = Dict.empty(types.float64, types.float64)
    for v in a:
        table[v * v] = v
    table[a[0] * a[0]] = a[1]
    s = 0.0
    for key, value in table.items():
        s += key * key * value
    key, value = table.popitem()
    return s * key + value


@MORE.at(floats(4))
@njit
def tuple_keys(a):
    table = Dict.empty(KEY, TWO)
    for i in range(2):
        for j in range(2):
            table[(i, j)] = (a[i] * a[j], a[2 * i + j])
    x, y = table[(0, 1)]
    table[(1, 1)] = (y, x * y)
    s = 0.0
    for key, value in table.items():
        s += (key[0] + 2 * key[1] + 1) * value[0] * value[1]
    return s


@MORE.at(floats(3, dtype=np.float32))
@njit
def single_precision(a):
    table = {7: a[0]}
    for i in range(a.size):
        table[i] = a[i] * a[i]
    table[0] = table[1] * table[2]
    return table[0] * table[1]


# ------------------------------------------------------------------------------------------------ what they hold


@PROGRAMS.at(floats(3))
@njit
def arrays_as_values(a):
    table = Dict.empty(types.unicode_type, VECTOR)
    table["a"] = a * 2.0
    table["b"] = table["a"] * a
    table["a"] = table["b"] + a
    table["b"][1] = table["a"][0] * a[2]
    s = 0.0
    for value in table.values():
        s += np.sum(value)
    last = table.pop("b")
    table["c"] = last * s
    return s * table["c"][1] + last[0] + table["a"][2]


@MORE.at(floats(3))
@njit
def pairs_as_values(a):
    table = Dict.empty(types.int64, PAIR)
    for i in range(a.size):
        table[i] = (a[i] ** 2, a * a[i])
    table[1] = (table[0][0] * a[2], table[2][1])
    s = 0.0
    for number, array in table.values():
        s += number * array[0] * array[2]
    return s


@MORE.at(floats(4))
@njit
def dictionaries_in_a_list(a):
    tables = [{0: a[0]}, {1: a[1]}]
    tables[0][1] = a[2]
    tables[1][0] = tables[0][1] * tables[0][0]
    s = 0.0
    for table in tables:
        for key, value in table.items():
            s += value**2 * (key + 1)
    return s * a[3]


# ------------------------------------------------------------------------------------------------ callees


@njit
def memo(table, n, x):
    if n < 2:
        return x * n + 1.0
    if n in table:
        return table[n]
    value = memo(table, n - 1, x) * x + memo(table, n - 2, x)
    table[n] = value
    return value


@PROGRAMS.at(0.7)
@njit
def memoised_recursion(x):
    table = Dict.empty(types.int64, types.float64)
    s = memo(table, 12, x)
    for key, value in table.items():
        s += value * key
    return s


@njit
def counted(a, depth):
    if depth == 0:
        table = Dict.empty(types.int64, types.float64)
    else:
        table = counted(a, depth - 1)
    for i in range(a.size):
        table[i % (depth + 1)] = table.get(i % (depth + 1), a[depth]) * a[i]
    return table


@MORE.at(floats(3))
@njit
def returned_from_recursion(a):
    table = counted(a, 2)
    return table[0] * table[1] + table[2]


@pytest.mark.parametrize("case", PROGRAMS, ids=str)
def test_gradient(case: Case) -> None:
    case.check()


@pytest.mark.slow
@pytest.mark.parametrize("case", MORE, ids=str)
def test_gradient_of_more(case: Case) -> None:
    case.check()


def test_a_missing_key_raises() -> None:
    @njit
    def missing(a):
        return {1: a[0]}[2]

    with pytest.raises(KeyError):
        irad.grad(missing)(np.ones(2))
