"""Floats whose bits are reached as integers, in memory where integers lie beside floats: refused.

Each function doubles a number by adding one to the exponent in its bits. What they have in common is a place that looks
like an integer's in one way and is a float's in another: another name of the buffer, a shifted view, a field that
overlays one, a copy of bytes.
"""

from __future__ import annotations

import numpy as np
import pytest
from numba import deferred_type, float64, int64, njit, optional
from numba.experimental import jitclass
from numba.typed import List

import irad
from irad.errors import UnsupportedError, UnsupportedProgram
from irad.testing import gradcheck

X = np.array([0.7, 0.3, 1.2, 0.45, 0.8, 0.33])
TWICE = 1 << 52
RECORD = np.dtype([("x", np.float64), ("k", np.int64)], align=True)
OVERLAY = np.dtype({"names": ["f", "i", "g"], "formats": ["f8", "i8", "f8"], "offsets": [0, 0, 8], "itemsize": 16})
BEHIND = np.dtype({"names": ["f", "i", "g"], "formats": ["f8", "i8", "f8"], "offsets": [0, 8, 8], "itemsize": 16})


@njit
def columns_of_pairs(x):
    a = x * 1.0
    v = a.view(np.int64)
    for i in range(a.size // 2):
        a[2 * i] *= a[2 * i]
        v[2 * i + 1] += TWICE
    return a[0] * a[1] + a[2] * a[3]


@njit
def columns_of_a_matrix(x):
    a = (x * 1.0).reshape(3, 2)
    v = a.view(np.int64)
    for i in range(3):
        a[i, 0] *= a[i, 0]
        v[i, 1] += TWICE
    return (a[:, 0] * a[:, 1]).sum()


@njit
def backwards(x):
    a = x * 1.0
    p, q = a[::-1], a.view(np.int64)[::-1]
    for i in range(3):
        p[2 * i] *= p[2 * i]
        q[2 * i] += TWICE
    return a.sum()


@njit
def slices_in_a_list(x):
    a = x * 1.0
    slices = [a[1:], a[:2]]
    v = slices.pop(0).view(np.int64)
    v[0] += TWICE
    v[2] += TWICE
    return a[1] * a[1] + a[0] * a[3]


@njit
def slices_in_a_typed_list(x):
    a = x * 1.0
    slices = List()
    slices.append(a[1:])
    slices.append(a[2:])
    v = slices.pop().view(np.int64)
    v[0] += TWICE
    return a[2] * a[2] * a[1]


@njit
def slices_swapped(x):
    a, b = x * 1.0, x * 2.0
    p, q = a[1:], b[2:]
    for _ in range(3):
        p, q = q, p
        v = p.view(np.int64)
        v[0] += TWICE
        b[0] *= a[0]
    return a[1] * a[1] * b[2] + b[0]


@jitclass([("a", float64[::1]), ("k", int64)])
class Holder:
    def __init__(self, a, k):
        self.a = a
        self.k = k


@njit
def slices_in_instances_swapped(x):
    a = x * 1.0
    p, q = Holder(a[1:], 1), Holder(a[2:], 2)
    for _ in range(3):
        p, q = q, p
        v = p.a.view(np.int64)
        v[0] += TWICE
        p.k += 1
    return a[1] * a[2] * p.k


LINK = deferred_type()


@jitclass([("k", int64), ("a", float64[::1]), ("next", optional(LINK))])
class Link:
    def __init__(self, a):
        self.k = 0
        self.a = a
        self.next = None


LINK.define(Link.class_type.instance_type)


@njit
def slices_in_linked_nodes(x):
    a = x * 1.0
    first = Link(a)
    for i in range(1, x.size):
        p = first
        while p.next is not None:
            p.k += 1
            p = p.next
        p.next = Link(a[i:])
    p = first
    while p is not None:
        v = p.a.view(np.int64)
        v[0] += TWICE
        p.k += 1
        p = p.next
    return a[1] * a[2] * first.k


@njit
def _doubled(slices, n):
    if n > 0:
        v = slices[n - 1].view(np.int64)
        v[0] += TWICE
        _doubled(slices, n - 1)


@njit
def slices_in_a_recursive_function(x):
    a = x * 1.0
    _doubled([a[1:], a[2:]], 2)
    return a[1] * a[2]


@njit
def field_over_a_field(x):
    a = np.zeros(3, OVERLAY)
    for i in range(3):
        a[i].f, a[i].g = x[i], x[i + 1]
        a[i].i += TWICE
    return a[0].f * a[0].f * a[1].g + a[2].f


@njit
def field_over_a_field_in_two_buffers(x):
    a, b = np.zeros(3, BEHIND), np.zeros(3, BEHIND)
    for i in range(3):
        a[i].f, a[i].g = x[i], x[i + 1]
    for _ in range(3):
        for i in range(3):
            b[i].f = a[i].f * a[i].g
            b[i].g = a[(i + 1) % 3].f
            b[i].i += TWICE
        a, b = b, a
    return a[0].f * a[0].f * a[1].g + a[2].f


@njit
def bytes_copied_into_a_field(x):
    a, b = np.zeros(3, RECORD), np.zeros(3, RECORD)
    for i in range(3):
        a[i].x, b[i].x, b[i].k = x[i], x[i + 1], i
    from_, to = a.view(np.uint8), b.view(np.uint8)
    to[8:16] = from_[0:8]
    b[0].k += TWICE
    from_[0:8] = to[8:16]
    return a[0].x * a[0].x * b[0].x


@njit
def records_seen_eight_bytes_further(x):
    a = np.zeros(4, RECORD)
    for i in range(4):
        a[i].x, a[i].k = x[i], i
    shifted = a.view(np.uint8)[8:56].view(RECORD)
    shifted[0].k += TWICE
    return a[1].x * a[1].x * a[0].x


@njit
def bits_on_a_stack(x):
    a = x * 1.0
    v = a.view(np.int64)
    stack = [(0, v[0])]
    s = 0.0
    while len(stack) > 0:
        k, bits = stack.pop()
        a[k] = x[k] * x[k]
        v[k] = bits + TWICE
        s += a[k]
        if k < 3:
            stack.append((k + 1, v[k]))
    return s


@njit
def bits_beside_floats_in_a_list(x):
    bits_of = (x * 1.0).view(np.int64)
    items = [(x[i], bits_of[i]) for i in range(3)]
    b = np.zeros(3)
    w = b.view(np.int64)
    for i in range(3):
        f, bits = items.pop()
        w[i] = bits + TWICE
        b[i] *= f
    return b.sum()


@njit
def bits_kept_beside_floats(x):
    a, b = x * 1.0, np.zeros(2 * x.size)
    v, kept = a.view(np.int64), b.view(np.int64)
    for i in range(x.size):
        b[2 * i] = x[i]
        kept[2 * i + 1] = v[i]
    for i in range(x.size):
        kept[2 * i + 1] += TWICE
    for i in range(x.size):
        v[i] = kept[2 * i + 1]
    return (a * a).sum() + b[0]


@njit
def index_that_wraps_around(x):
    """0xAAAA…AB times three is one, so the number that is doubled is the second, not one of every third."""
    a = np.zeros(8)
    v = a.view(np.int64)
    for i in range(6):
        a[i] = x[i]
    for i in range(2):
        a[3 * i] *= x[i]
    v[np.int64(np.uint64(0xAAAAAAAAAAAAAAAB) * np.uint64(3))] += TWICE
    return a[1] * a[1] + a[0]


@njit
def single_precision(x):
    a = x.astype(np.float32)
    v = a.view(np.int32)
    for i in range(3):
        a[2 * i] *= a[2 * i]
        v[2 * i + 1] += 1 << 23
    return a[0] * a[1]


@njit
def two_numbers_in_one_integer(x):
    a = np.zeros(6, np.float32)
    for i in range(6):
        a[i] = x[i]
    v = a.view(np.int64)
    v[0] += (1 << 23) + (1 << 55)
    return a[0] * a[1] * x[0]


@pytest.mark.parametrize(
    "function",
    [
        columns_of_pairs,
        columns_of_a_matrix,
        backwards,
        slices_in_a_list,
        slices_in_a_typed_list,
        slices_swapped,
        slices_in_instances_swapped,
        slices_in_linked_nodes,
        slices_in_a_recursive_function,
        field_over_a_field,
        field_over_a_field_in_two_buffers,
        bytes_copied_into_a_field,
        records_seen_eight_bytes_further,
        bits_on_a_stack,
        bits_beside_floats_in_a_list,
        bits_kept_beside_floats,
        index_that_wraps_around,
        single_precision,
        two_numbers_in_one_integer,
    ],
    ids=lambda function: function.__name__,
)
@pytest.mark.parametrize("plan", ["default", "save_all"])
def test_bits_of_floats_are_no_integers(function, plan) -> None:
    assert np.isfinite(function(X))
    with pytest.raises((UnsupportedError, UnsupportedProgram), match="an active number is manipulated as an integer"):
        irad.grad(function, options=irad.Options(plan=plan))(X)


@njit
def halves_of_doubles(x):
    a = x * 2.0
    return a.view(np.float32)[1] * 2.0 + a[0]


@njit
def doubles_of_halves(x):
    a = x.astype(np.float32) * np.float32(2.0)
    return a.view(np.float64)[0] * 2.0


@njit
def doubled_so_often(x, times):
    return doubled_so_often(2.0 * x[:-1], times - 1) if times else x.copy()


@njit
def halves_of_what_a_callee_made(x):
    a = doubled_so_often(x, 2)
    places = np.array([1, 0, 3])
    total = 0.0
    for k in range(places.size):
        total += a[places[k] // 2] * a.view(np.float32)[places[k]] * x[k]
    return total


@njit
def every_other_half(x):
    a = x * x
    half = a.view(np.float32)
    total = 0.0
    for i in range(0, half.size, 2):
        total += half[i] * x[0]
    return total


@njit
def written_as_halves(x):
    a = x * x
    a.view(np.float32)[1] = np.float32(x[0])
    return a[0] + a[1]


@njit
def written_in_both_ways_by_a_table(x):
    a = np.zeros(6)
    halves = a.view(np.float32)
    table = np.array([3, 2, 5, 4])
    for i in range(4):
        a[table[i] % 4] = x[i]
    for i in range(4):
        halves[table[i]] = x[i] * x[i]
    return (a * a).sum()


@njit
def written_in_both_ways_from_the_middle_on(x):
    a = np.zeros(8)
    halves = a.view(np.float32)[2:]
    table = np.array([3, 2, 5, 4])
    for i in range(4):
        a[2 * i] = x[i]
    for i in range(4):
        halves[table[i]] = x[i] * x[i]
    return a[0] * a[2] + a[4] * a[6]


@njit
def doubles_across_doubles(x):
    space = np.zeros(40, np.int8)
    a, b = space[4:36].view(np.float64), space.view(np.float64)
    for i in range(4):
        a[i] = x[i]
    b[1] = x[1]
    return a[0] * a[1] * a[2]


@pytest.mark.parametrize(
    "function",
    [
        halves_of_doubles,
        doubles_of_halves,
        every_other_half,
        halves_of_what_a_callee_made,
        written_as_halves,
        written_in_both_ways_by_a_table,
        written_in_both_ways_from_the_middle_on,
        doubles_across_doubles,
    ],
)
@pytest.mark.parametrize("plan", ["default", "save_all"])
def test_numbers_of_another_type(function, plan) -> None:
    with pytest.raises(UnsupportedError, match=r"is read as float(32|64)"):
        irad.grad(function, options=irad.Options(plan=plan))(X)


@njit
def looked_at_only(x):
    a = x * x
    return a[0] if a.view(np.float32)[1] > 0.0 else a[1]


_MIXED = np.dtype([("a", np.float32), ("b", np.float64), ("c", np.float32, 2)])


@njit
def fields_of_both(x):
    records = np.zeros(x.size, _MIXED)
    for i in range(x.size):
        records[i].a = x[i]
        records[i].b = x[i] * x[i]
        records[i].c[i % 2] = x[i] * np.float32(2.0)
    total = 0.0
    for i in range(0, x.size, 2):
        total += records[i].a * records[i].b + records[i].c[0]
    return total


MIXED = np.dtype([("x", np.float64), ("v", np.float32, (40,))], align=True)


@njit
def array_in_each_record(x):
    a = np.zeros(x.size, MIXED)
    for i in range(x.size):
        a[i].x = x[i]
        for j in range(40):
            a[i].v[j] = x[j % x.size]
    s = 0.0
    for i in range(x.size):
        s += a[i].x * a[i].x * a[i].v[7]
    return s


@njit
def table_of_its_own(x):
    a, halves = np.zeros(6), np.zeros(12, np.float32)
    table = np.array([3, 2, 5, 4])
    for i in range(4):
        a[table[i] % 4] = x[i]
    for i in range(4):
        halves[table[i]] = x[i] * x[i]
    return (a * a).sum() + halves[3]


@pytest.mark.parametrize("function", [looked_at_only, fields_of_both, array_in_each_record, table_of_its_own])
def test_numbers_of_two_types_apart(function) -> None:
    gradcheck(function, X, rtol=1e-6)  # the records round to single precision


BESIDE_AN_INTEGER = np.dtype([("k", np.int32), ("x", np.float32)])


@njit
def copied_as_one_integer(records):
    copies = np.empty(2, BESIDE_AN_INTEGER)
    copies[0] = records[0]
    copies[1] = records[1]
    return copies[0].x * copies[1].x


@pytest.mark.parametrize("plan", ["default", "save_all"])
def test_a_record_that_is_copied_as_one_integer(plan) -> None:
    """Eight bytes, of which the second half is the number."""
    records = np.array([(1, 3.0), (2, 5.0)], BESIDE_AN_INTEGER)
    with pytest.raises(UnsupportedError, match="an active number is manipulated as an integer"):
        irad.grad(copied_as_one_integer, options=irad.Options(plan=plan))(records)


@njit
def one_of_two(x, content, first):
    numbers = x if first else np.frombuffer(content, dtype=np.float64)
    return numbers[0] * numbers[0] + x[1]


def test_an_array_or_bytes():
    """The bytes have no shadow, and whether they are meant is known only at run time."""
    with pytest.raises(irad.ActivityError, match="argument 'content'"):
        irad.grad(one_of_two)(np.ones(2), np.ones(2).tobytes(), True)
