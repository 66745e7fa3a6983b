"""Typed lists made inside the function: growth, mutation, aliasing, and what they hold."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit, types
from numba.typed import List

import irad
from tests.tools.catalogue import Case, Catalogue, floats

PROGRAMS = Catalogue()
MORE = Catalogue()  # run with the slow tests
VECTOR = types.float64[::1]
PAIR = types.Tuple((types.float64, VECTOR))
INNER = types.ListType(types.float64)
TWO = types.UniTuple(types.float64, 2)


@PROGRAMS.at(floats(4))
@njit
def read_between_growth(a):
    items = List.empty_list(types.float64)
    items.append(a[0])
    s = 0.0
    for i in range(30):
        items.append(items[-1] * a[i % a.size])
        s += items[i // 2] * items[0]
    return s


@PROGRAMS.at(floats(4))
@njit
def overwritten(a):
    items = List([a[0], a[1]])
    first = items[0] * items[1]
    items[0] = items[1] * a[2]
    items[1] = items[0] * items[0]
    items[-1] = items[-1] * a[3]
    return first * items[0] + items[1]


@MORE.at(floats(7), 2)
@MORE.at(floats(7), 0)
@MORE.at(floats(7), -1)
@njit
def pop_from_within(a, k):
    items = List.empty_list(types.float64)
    for v in a:
        items.append(v * a[0])
    s = items.pop(k)
    for i in range(len(items)):
        s += items[i] ** (i + 1)
    return s * items.pop(k)


@PROGRAMS.at(floats(5))
@njit
def stack_machine(a):
    stack = List.empty_list(types.float64)
    for i in range(a.size):
        stack.append(a[i])
        if i % 2 == 1:
            y = stack.pop()
            x = stack.pop()
            stack.append(x * y + np.sin(x))
    s = 0.0
    for x in stack:
        s += x * x
    return s


@PROGRAMS.at(floats(4))
@njit
def inserted(a):
    items = List.empty_list(types.float64)
    for v in a:
        items.insert(0, v * v)
    items.insert(2, items[1] * a[0])
    items.insert(-1, a[1])
    items.insert(100, a[2])
    s = 0.0
    for i, x in enumerate(items):
        s += (i + 1) * x * x
    return s


@MORE.at(floats(3))
@njit
def extended(a):
    items = List([a[0], a[1]])
    items.extend(List([a[2] * a[2], items[0]]))
    items.extend(a * 2.0)
    items.extend((a[0], a[1]))
    items.extend(items)
    s = 0.0
    for i in range(len(items)):
        s += items[i] * items[len(items) - 1 - i] * (i + 1)
    return s


@PROGRAMS.at(floats(9), 1, 8, 3)
@PROGRAMS.at(floats(9), 1, 8, 1)
@PROGRAMS.at(floats(9), 7, 1, -2)
@PROGRAMS.at(floats(9), 3, 3, 1)
@PROGRAMS.at(floats(9), 0, 9, 1)
@PROGRAMS.at(floats(9), 8, -20, -3)
@njit
def slice_deleted(a, start, stop, step):
    items = List.empty_list(types.float64)
    for v in a:
        items.append(v * v)
    before = items[4] * items[8] * items[0]
    del items[start:stop:step]
    s = before
    for i in range(len(items)):
        s += items[i] ** 2 * (i + 1) * a[i]
    items.append(a[0])
    items.append(a[1])
    return s + items[-1] * items[-2]


@MORE.at(floats(4))
@njit
def cleared_and_refilled(a):
    items = List([a[0], a[1]])
    s = items[0] * items[1]
    items.clear()
    for v in a:
        items.append(v * v)
    for x in items:
        s += x * a[0]
    items.clear()
    return s + len(items)


@MORE.at(floats(6))
@njit
def sliced_and_copied(a):
    items = List.empty_list(types.float64)
    for v in a:
        items.append(v)
    part = items[1:5:2]
    whole = items.copy()
    whole[0] = part[0] * part[1]
    items[3] = 0.0
    return whole[0] * whole[3] * part[1] + items[3] * a[0] + items[0]


@MORE.at(floats(6))
@njit
def slices_assigned(a):
    items = List.empty_list(types.float64)
    for v in a:
        items.append(v)
    items[1:3] = List([a[5] * a[4], a[0] * a[0]])
    items[0:2] = List([a[1]])
    items[1:2] = List([a[2], a[3] * a[3], a[4]])
    s = 0.0
    for i in range(len(items)):
        s += items[i] * items[i] * (i + 1)
    return s


@MORE.at(np.array([2.0, 0.5, 1.5, 3.0, 1.0]))
@njit
def sorted_list(a):
    items = List.empty_list(types.float64)
    for v in a:
        items.append(v * v)
    items.sort()
    s = 0.0
    for i in range(len(items)):
        s += (i + 1) * items[i] ** 2
    items.sort(reverse=True)
    return s + items[0] * items[1] ** 3


@MORE.at(floats(4))
@njit
def comparisons(a):
    items = List([a[0], a[1], a[2]])
    s = items[0]
    if a[1] in items:
        s *= items[items.index(a[1])]
    if items == List([a[0], a[1], a[2]]):
        s *= a[3]
    return s * items.count(a[2])


@PROGRAMS.at(floats(4))
@njit
def two_names(a):
    items = List([a[0], a[1]])
    other = items
    other.append(a[2] * a[2])
    items[0] = other[2] * a[3]
    return other[0] * items[1]


@MORE.at(floats(4), True)
@MORE.at(floats(4), False)
@njit
def one_of_two(a, first):
    one = List([a[0], a[1]])
    two = List([a[2]])
    chosen = one if first else two
    chosen.append(a[3])
    chosen[0] = chosen[0] * chosen[len(chosen) - 1]
    return one[0] * two[0] + one[len(one) - 1] * two[len(two) - 1]


@MORE.at(np.float32(1.5), floats(3, dtype=np.float32))
@njit
def single_precision(x, a):
    items = List([x])
    for v in a:
        items.append(v * x)
    del items[1]
    items[0] = items[0] * items[1]
    return items[0] * items[1]


# ------------------------------------------------------------------------------------------------ what lists hold


@MORE.at(floats(3))
@njit
def of_tuples(a):
    items = List.empty_list(TWO)
    for v in a:
        items.append((v, v * v))
    items[0] = (items[1][1], a[0])
    s = 0.0
    for x, y in items:
        s += x * y
    x, y = items.pop(1)
    return s + x * y * items[1][0]


@PROGRAMS.at(floats(3))
@njit
def of_arrays(a):
    items = List.empty_list(VECTOR)
    items.append(a * 2.0)
    for _ in range(6):
        items.append(items[-1] * a)
    items[1] = items[0] + items[2]
    items[3][1] = items[2][0] * a[2]
    s = 0.0
    for x in items:
        s += np.sum(x)
    return s * items[1][0]


@MORE.at(floats(3))
@njit
def arrays_move_in_the_list(a):
    items = List([a, a * a, a + 1.0, a * 3.0])
    items.pop(1)
    items.insert(0, items[1] * a)
    items.reverse()
    last = items.pop()
    items[0][0] = last[1]
    return items[0][0] * items[1][1] * items[2][2] + last.sum()


@MORE.at(floats(3))
@njit
def the_argument_in_a_list(a):
    items = List([a, a])
    items[0][0] = items[1][1] * a[2]
    return items[1][0] * a[0]


@PROGRAMS.at(floats(3))
@njit
def of_pairs_with_arrays(a):
    items = List.empty_list(PAIR)
    for v in a:
        items.append((v * v, a * v))
    del items[1]
    items.append((items[0][0] * items[1][0], items[0][1]))
    s = 0.0
    for x, y in items:
        s += x * y[0] * y[2]
    return s


@PROGRAMS.at(floats(3))
@njit
def of_lists(a):
    rows = List.empty_list(INNER)
    for i in range(a.size):
        row = List.empty_list(types.float64)
        for j in range(i + 2):
            row.append(a[i] * a[j % a.size])
        rows.append(row)
    rows[0].append(rows[2][3])
    rows[1][0] = rows[0][2] * rows[1][1]
    s = 0.0
    for row in rows:
        for x in row:
            s += x * x
    return s


@MORE.at(floats(3))
@njit
def of_complex_numbers(a):
    items = List.empty_list(types.complex128)
    for v in a:
        items.append(complex(v, v * v))
    items[0] = items[1] * items[2]
    z = items[0] * items[1]
    return z.real + z.imag


# ------------------------------------------------------------------------------------------------ callees


@njit
def fill(items, a):
    for v in a:
        items.append(v * v)


@njit
def made(a):
    items = List.empty_list(types.float64)
    fill(items, a)
    return items


@MORE.at(floats(4))
@njit
def through_callees(a):
    items = made(a)
    fill(items, a)
    return items[0] * items[5] + items[3]


@njit
def collect(items, x, depth):
    if depth == 0:
        items.append(x)
        return 0.0
    collect(items, x * 0.5, depth - 1)
    items.append(x * items[len(items) - 1])
    collect(items, x * x, depth - 1)
    return items.pop()


@MORE.at(floats(2))
@njit
def through_recursion(a):
    items = List.empty_list(types.float64)
    s = collect(items, a[0], 3) * a[1]
    for x in items:
        s += x * x
    return s


@njit
def grown(a, depth):
    items = grown(a, depth - 1) if depth > 0 else List.empty_list(types.float64)
    items.append(a[depth] * (items[0] if len(items) else 1.0))
    return items


@PROGRAMS.at(floats(4))
@njit
def returned_from_recursion(a):
    items = grown(a, 3)
    return items[0] * items[1] * items[2] + items[3]


@PROGRAMS.at(floats(3), 2.0)
@njit
def items_of_nine_words(a, x):
    values = List()
    values.append((1.5, a, 2))
    values[0] = (x, a * x, 1)
    return values[0][1][0] * values[0][0]


@pytest.mark.parametrize("case", PROGRAMS, ids=str)
def test_gradient(case: Case) -> None:
    case.check()


@pytest.mark.slow
@pytest.mark.parametrize("case", MORE, ids=str)
def test_gradient_of_more(case: Case) -> None:
    case.check()


def test_an_index_out_of_range_raises() -> None:
    @njit
    def beyond(a):
        return List([a[0]])[1]

    with pytest.raises(IndexError):
        irad.grad(beyond)(np.ones(2))
