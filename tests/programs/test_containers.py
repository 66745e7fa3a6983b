"""Containers together: sets, constants from outside, exceptions, pullbacks, and what they leave behind."""

from __future__ import annotations

from typing import Any

import numba.typed
import numpy as np
import pytest
from numba import njit, types
from numba.experimental import jitclass
from numba.typed import Dict, List

import irad
from irad.errors import ActivityError, IradError
from irad.options import Options
from irad.testing.allocations import allocations
from irad.testing.check_gradient import check_quickly
from tests.tools.catalogue import Case, Catalogue, Later, floats, later

PROGRAMS = Catalogue()
Set = getattr(numba.typed, "Set", None)
MORE = Catalogue()  # run with the slow tests
VECTOR = types.float64[::1]
ITEMS = types.ListType(types.float64)

NAMES = later(List, ["a", "b", "a", "c"])
TABLES = later(List, [np.ones(2), np.array([2.0, 3.0])])


@Later
def WEIGHTS():
    found = Dict.empty(types.unicode_type, types.float64)
    for name, weight in (("a", 2.5), ("b", 1.5), ("c", 3.5)):
        found[name] = weight
    return found


# ------------------------------------------------------------------------------------------------ sets


@PROGRAMS.at(floats(12))
@njit
def set_of_floats(a):
    found = set()
    for v in a:
        found.add(v * v)
    found.add(a[0] * a[0])
    found.discard(a[1] * a[1])
    s = 0.0
    for v in found:
        s += v * v
    return s * len(found)


@MORE.at(floats(4), floats(4, seed=1))
@njit
def sets_combined(a, b):
    one, two = set(a), set(b * b)
    both = one | two
    both.add(a[0] * b[0])
    both -= {a[1]}
    s = 0.0
    for v in both:
        s += v**3
    return s


@PROGRAMS.at(floats(4), floats(3, seed=1))
@njit
def setdiff1d(a, b):
    return np.sum(np.setdiff1d(a, b) ** 2)


@MORE.at(floats(3))
@njit
def reflected_list_of_arrays(a):
    items = [a * 2]
    for _ in range(3):
        items.append(items[-1] * a)
    return items[3].sum() * items[1][0]


# ------------------------------------------------------------------------------------------------ constants


@PROGRAMS.at(NAMES, WEIGHTS, floats(4))
@njit
def constant_tables(names, weights, a):
    sums = {"none": 0.0}
    for i in range(len(names)):
        name = names[i]
        sums[name] = sums.get(name, 0.0) + a[i] ** 2 * weights[name]
    return sums["a"] * sums["b"] + sums["c"] * weights.get("z", 2.0)


@MORE.at(TABLES, floats(2), argnums=(1,))
@njit
def constant_list_of_arrays(tables, a):
    s = 0.0
    for table in tables:
        s += table[0] * a[0] * a[1] + table[1] * a[1]
    return s * len(tables)


def test_a_constant_list_takes_no_active_value() -> None:
    @njit
    def appended(items, a):
        items.append(a[0])
        return a[1]

    with pytest.raises(ActivityError, match="passed as constant"):
        irad.autodiff(irad.Reverse, appended, irad.Const(List([1.0])), irad.Duplicated(np.ones(2), np.zeros(2)))
    assert irad.grad(appended, 1)(List([1.0]), np.ones(2)).tolist() == [0.0, 1.0]


def test_a_constant_dictionary_takes_no_active_value() -> None:
    @njit
    def inserted(table, a):
        table[0] = a[0]
        return a[1]

    with pytest.raises(ActivityError, match="passed as constant"):
        irad.autodiff(
            irad.Reverse,
            inserted,
            irad.Const(Dict.empty(types.int64, types.float64)),
            irad.Duplicated(np.ones(2), np.zeros(2)),
        )
    assert irad.grad(inserted, 1)(Dict.empty(types.int64, types.float64), np.ones(2)).tolist() == [0.0, 1.0]


@PROGRAMS.at(TABLES, WEIGHTS, floats(2), True, argnums=(2,))
@PROGRAMS.at(TABLES, WEIGHTS, floats(2), False, argnums=(2,))
@njit
def constants_of_two_origins(tables, weights, a, first):
    own, named = List([np.ones(2)]), {"a": 2.5}
    table = tables if first else own
    s = table[0][1] * a[0]
    for key, value in (weights if first else named).items():
        s += value * a[1] * len(key)
    return s


def test_a_constant_list_or_an_active_one() -> None:
    @njit
    def chosen(items, a, first):
        own = List([a[0]])
        one = items if first else own
        return one[0] * a[1]

    items, gradient, a = List([5.0]), irad.grad(chosen, 1), np.array([2.0, 3.0])
    np.testing.assert_array_equal(gradient(items, a, True), [0.0, 5.0])
    np.testing.assert_array_equal(gradient(items, a, False), [3.0, 2.0])
    assert list(items) == [5.0]


def test_a_constant_dictionary_or_an_active_one() -> None:
    @njit
    def chosen(table, a, first):
        own = {1: a[0]}
        s = 0.0
        for value in (table if first else own).values():
            s += value * a[1]
        return s

    table = Dict.empty(types.int64, types.float64)
    table[3], table[4] = 5.0, 2.0
    gradient, a = irad.grad(chosen, 1), np.array([2.0, 3.0])
    np.testing.assert_array_equal(gradient(table, a, True), [0.0, 7.0])
    np.testing.assert_array_equal(gradient(table, a, False), [3.0, 2.0])
    assert dict(table) == {3: 5.0, 4: 2.0}


# ------------------------------------------------------------------------------------------------ together


@jitclass([("items", ITEMS), ("sums", types.DictType(types.int64, types.float64))])
class Recorder:
    def __init__(self):
        self.items = List.empty_list(types.float64)
        self.sums = Dict.empty(types.int64, types.float64)

    def record(self, key, x):
        self.items.append(x)
        self.sums[key] = self.sums.get(key, 0.0) + x * x


@PROGRAMS.at(floats(6))
@njit
def in_an_object(a):
    recorder = Recorder()
    for i in range(a.size):
        recorder.record(i % 2, a[i] * a[0])
    return recorder.sums[0] * recorder.sums[1] + recorder.items[2] * recorder.items.pop()


@PROGRAMS.at(floats(3))
@njit
def missing_key_caught(a):  # one try block a function: of two, Numba forgets the second on Python 3.12 and later
    table, items = {1: a[0]}, List([a[1]])
    s = table[1]
    try:
        items.append(a[2] * s)
        s *= table[2]
    except Exception:
        s *= items[1]
    return s * table[1]


@PROGRAMS.at(floats(3))
@njit
def index_out_of_range_caught(a):
    items = List([a[1]])
    s = a[0] * a[2]
    try:
        s += items[7]
    except Exception:
        s += items[0] * s
    return s * a[0]


@MORE.at(floats(8))
@njit
def queue_of_tuples(a):
    queue = List([(0, a[0])])
    best = Dict.empty(types.int64, types.float64)
    while len(queue):
        node, cost = queue.pop(0)
        if node in best and best[node] <= cost:
            continue
        best[node] = cost
        for child in (2 * node + 1, 2 * node + 2):
            if child < a.size:
                queue.append((child, cost * a[child] + a[child]))
    s = 0.0
    for node, cost in best.items():
        s += cost * (node + 1)
    return s


@pytest.mark.parametrize("case", PROGRAMS, ids=str)
def test_gradient(case: Case) -> None:
    case.check()


@pytest.mark.slow
@pytest.mark.parametrize("case", MORE, ids=str)
def test_gradient_of_more(case: Case) -> None:
    case.check()


@njit
def machine(a, code):
    """Runs a program of numbers on a list and a dictionary."""
    items, table = List.empty_list(types.float64), Dict.empty(types.int64, types.float64)
    acc = 0.5
    for k in range(code.shape[0]):
        op, i, j = code[k]
        n = len(items)
        if op == 0 or n == 0:
            items.append(a[i % a.size] * acc)
        elif op == 1:
            items[i % n] = items[j % n] * a[i % a.size]
        elif op == 2:
            acc += items.pop(i % n)
        elif op == 3:
            items.insert(i % n, acc)
        elif op == 4:
            del items[i % n : j % (n + 1) : 1 + (i + j) % 3]
        elif op == 5:
            acc = acc * items[i % n] + items[j % n]
        elif op == 6:
            items.extend(items[i % n :: 2])
        elif op == 7:
            table[i % 12] = table.get(j % 12, a[j % a.size]) * acc
        elif op == 8:
            acc += table.pop(i % 12, a[0])
        elif op == 9 and len(table):
            key, value = table.popitem()
            acc += value * key
        elif op == 10:
            for key, value in table.items():
                acc = 0.5 * acc + value * key
        else:
            table[12 + k] = items[i % n] * acc
        acc = np.tanh(acc)
    for x in items:
        acc += x * x
    for value in table.values():
        acc += value * value
    return acc


@pytest.mark.parametrize("seed", range(30))
def test_random_steps(seed: int) -> None:
    code = np.random.default_rng(seed).integers(0, 12, (50, 3))
    code[:, 1:] *= 7
    check_quickly(machine, floats(4, seed=seed), code)


@pytest.mark.skipif(Set is None, reason="this Numba has no typed sets")
def test_a_typed_set_is_refused_by_name() -> None:
    @njit
    def collected(a):
        found = Set.empty(types.float64)
        for v in a:
            found.add(v * v)
        s = 0.0
        for v in found:
            s += v * v
        return s

    with pytest.raises(IradError, match=r"no derivative rule for a call to numba\.typed\.Set"):
        irad.grad(collected)(np.ones(2))


@njit
def busy(a):
    items = List.empty_list(VECTOR)
    table = {1: a * 2.0}
    for i in range(20):
        items.append(a * i)
        table[i % 7] = items[i] + table[1]
        if i % 3 == 1:
            items[i - 1] = table[i % 7] * a
        if i % 5 == 4:
            table.pop(i % 7)
    del items[2:14:3]
    items.pop(1)
    s = 0.0
    for x in items:
        s += x.sum()
    for x in table.values():
        s += x[0] * x[1]
    return s


@pytest.mark.parametrize("plan", ["default", "save_all"])
def test_references_balance(plan: Any) -> None:
    gradient = irad.grad(busy, options=Options(plan=plan))
    a = floats(3)
    gradient(a)
    with allocations() as count:
        for _ in range(20):
            gradient(a)
        counted = count()
    assert counted.headers_made > 20 * 40
    assert counted.kept_headers == 0
    assert counted.kept == 0


def test_a_pullback_may_be_called_again() -> None:
    a = floats(3)
    value, pullback = irad.vjp(busy, a)
    expected = irad.grad(busy)(a)
    (first,) = pullback(1.0)
    (second,) = pullback(1.0)
    assert value == busy(a)
    np.testing.assert_allclose(first, expected)
    np.testing.assert_array_equal(first, second)
