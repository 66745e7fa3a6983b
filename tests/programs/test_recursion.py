"""Recursive functions on arrays and containers of arrays: what their parameters hold is known from their types."""

from __future__ import annotations

from collections import namedtuple

import numpy as np
import pytest
from numba import carray, njit, types
from numba.extending import intrinsic
from numba.typed import List

import irad
from irad.errors import UnsupportedError
from irad.testing.check_gradient import check_quickly
from tests.tools.catalogue import Case, Catalogue, floats

PROGRAMS = Catalogue()
MORE = Catalogue()  # run with the slow tests
VECTOR = types.float64[::1]
RECORD = np.dtype([("x", np.float64), ("n", np.int64), ("y", np.float32)], align=True)
Params = namedtuple("Params", "q m k")


def records(count):
    made = np.zeros(count, RECORD)
    made["x"], made["y"], made["n"] = floats(count), floats(count, seed=1), np.arange(1, count + 1)
    return made


@njit
def quicksort(a):
    if a.size <= 1:
        return a.copy()
    pivot = a[0]
    below, above = a[1:][a[1:] < pivot], a[1:][a[1:] >= pivot]
    out = np.empty(a.size)
    out[: below.size] = quicksort(below)
    out[below.size] = pivot
    out[below.size + 1 :] = quicksort(above)
    return out


@MORE.at(floats(9))
@njit
def sorted_with_copies(a):
    s = quicksort(a)
    return (s * s * np.arange(1.0, s.size + 1)).sum()


@njit
def argsort(v, index):
    if index.size <= 1:
        return index.copy(), v[index]
    p = index[0]
    below = np.array([i for i in index[1:] if v[i] < v[p]], dtype=np.int64)
    above = np.array([i for i in index[1:] if v[i] >= v[p]], dtype=np.int64)
    i, x = argsort(v, below)
    j, y = argsort(v, above)
    order, values = np.empty(index.size, np.int64), np.empty(index.size)
    order[: i.size], order[i.size], order[i.size + 1 :] = i, p, j
    values[: x.size], values[x.size], values[x.size + 1 :] = x, v[p] * v[p], y
    for k in range(order.size):
        order[k] = order[k] + 0
    return order, values


@PROGRAMS.at(floats(7))
@njit
def integers_beside_numbers(v):
    order, values = argsort(v, np.arange(v.size))
    total = 0.0
    for k in range(values.size):
        total += values[k] * (k + 1) * v[order[k]]
    return total


@njit
def merge_sort(a):
    if a.size <= 1:
        return a.copy()
    left, right = merge_sort(a[: a.size // 2]), merge_sort(a[a.size // 2 :])
    out = np.empty(a.size)
    i = j = 0
    for k in range(a.size):
        if j >= right.size or (i < left.size and left[i] <= right[j]):
            out[k] = left[i]
            i += 1
        else:
            out[k] = right[j]
            j += 1
    return out


@MORE.at(floats(9))
@njit
def merged(a):
    s = merge_sort(a)
    return (s * s * np.arange(1.0, s.size + 1)).sum()


@njit
def shrink(a, low, high):
    if low < high:
        b = a[low:high].copy()
        a[low:high] = b * a[low:high] * 1.5
        shrink(a, low + 1, high - 1)


@PROGRAMS.at(floats(5))
@njit
def slices_in_place(a):
    b = a * 0.5
    shrink(b, 0, b.size)
    return b.sum()


@njit
def strassen(a, b):
    n = a.shape[0]
    if n == 1:
        return a * b
    h = n // 2
    a11, a12, a21, a22 = a[:h, :h].copy(), a[:h, h:].copy(), a[h:, :h].copy(), a[h:, h:].copy()
    b11, b12, b21, b22 = b[:h, :h].copy(), b[:h, h:].copy(), b[h:, :h].copy(), b[h:, h:].copy()
    m1 = strassen(a11 + a22, b11 + b22)
    m2, m3 = strassen(a21 + a22, b11), strassen(a11, b12 - b22)
    m4, m5 = strassen(a22, b21 - b11), strassen(a11 + a12, b22)
    m6, m7 = strassen(a21 - a11, b11 + b12), strassen(a12 - a22, b21 + b22)
    c = np.empty((n, n))
    c[:h, :h], c[:h, h:] = m1 + m4 - m5 + m7, m3 + m5
    c[h:, :h], c[h:, h:] = m2 + m4, m1 - m2 + m3 + m6
    return c


@MORE.at(floats(2, 2), floats(2, 2, seed=1), plans=("default",))
@njit
def product_by_strassen(a, b):
    c = strassen(a, b)
    return (c * c).sum()


@njit
def fft(x):
    if x.size == 1:
        return x.copy()
    even, odd = fft(x[::2].copy()), fft(x[1::2].copy())
    out = np.empty(x.size, np.complex128)
    for k in range(even.size):
        w = np.exp(-2j * np.pi * k / x.size)
        out[k] = even[k] + w * odd[k]
        out[k + even.size] = even[k] - w * odd[k]
    return out


@PROGRAMS.at(floats(8))
@njit
def spectrum(x):
    y = fft(x.astype(np.complex128))
    total = 0.0
    for k in range(y.size):
        total += (k + 1) * (y[k].real ** 2 + 0.5 * y[k].imag ** 2 * y[k].real)
    return total


@njit
def quadrature(p, low, high, depth):
    y = np.exp(np.sin(np.linspace(low, high, 5) * p[0])) * p[1]
    coarse = (high - low) * (y[0] + 4 * y[2] + y[4]) / 6
    fine = (high - low) * (y[0] + 4 * y[1] + 2 * y[2] + 4 * y[3] + y[4]) / 12
    if abs(coarse - fine) < 1e-3 or depth > 6:
        return fine
    middle = 0.5 * (low + high)
    return quadrature(p, low, middle, depth + 1) + quadrature(p, middle, high, depth + 1)


@MORE.at(np.array([2.0, 1.1, 3.0]))
@njit
def integral(p):
    return quadrature(p, 0.0, p[2], 0)


@njit
def in_single_precision(a, d):
    b = a.copy()
    b[d] *= a[d + 1]
    return in_single_precision(b, d - 1) if d else b


@MORE.at(floats(5).astype(np.float32))
@njit
def single_precision(a):
    return in_single_precision(a, 2).sum() * a[0]


@njit
def change_records(r, d):
    s = r.copy()
    for i in range(s.size):
        s[i].x = s[i].x * r[i].x * s[i].n
        s[i].y = s[i].y * np.float32(2)
    return change_records(s[:-1], d - 1) if d else s


@PROGRAMS.at(records(4))
@njit
def array_of_records(r):
    total = 0.0
    for s in change_records(r, 1):
        total += s.x * s.y * s.n
    return total


@njit
def change_column(x, d):
    y = x.copy()
    x[d] *= y[d + 1]
    if d:
        change_column(x, d - 1)


@MORE.at(records(4))
@njit
def one_field_of_records(r):
    q = r.copy()
    change_column(q["x"], 1)
    total = 0.0
    for s in q.copy():
        total += s.x * s.y * s.n
    return total


@njit
def double(x, d):
    y = x.copy()
    y[d] *= x[d] * 2.0
    return double(y, d - 1) if d else y


@MORE.at(floats(3))
@njit
def parts_of_complex_numbers(a):
    z = a + 1j * a * a
    real, imaginary, both = double(z.real, 2), double(z.imag, 1), double(z, 1)
    return (real * imaginary).sum() + (both.real * both.imag).sum()


@njit
def pass_params(p, d):
    q = p.q.copy()
    q[d] *= p.m[d, 0] * p.k
    if d:
        return pass_params(Params(q, p.m * 1.5, p.k * 2.0), d - 1)
    return Params(q, p.m.copy(), p.k)


@MORE.at(floats(3))
@njit
def named_tuple(a):
    p = pass_params(Params(a * 1.1, np.outer(a, a), a[0]), 2)
    return p.q.sum() * p.m.sum() * p.k


@njit
def maybe(a, d):
    if d == 0:
        return None
    r = maybe(a * a, d - 1)
    return a.copy() if r is None else r * a


@PROGRAMS.at(floats(3))
@njit
def array_or_none(a):
    r = maybe(a, 3)
    return 0.0 if r is None else r.sum()


@njit
def one_of(a, w, d):
    if d == 0:
        return w
    return one_of(a, w * 2.0, d - 1) if a[d] > 0 else a


@njit
def one_of_both(a, w):
    x = one_of(a, w, 2)
    y = one_of(x, a, 1)
    return (x * a).sum() + y[0] * y[1]


PROGRAMS.at(np.abs(floats(3)), floats(3))(one_of_both)
PROGRAMS.at(-np.abs(floats(3)), floats(3))(one_of_both)


@njit
def tree(a, depth):
    items = [a * 1.5]
    if depth > 0:
        below = tree(a[1:], depth - 1)
        items.append(below[0] * a[0])
        items.extend(below)
    return items


@PROGRAMS.at(floats(5))
@njit
def list_of_arrays_returned(a):
    total = 0.0
    for x in tree(a, 2):
        total += (x * x).sum()
    return total


@njit
def collect(a, depth, into):
    into.append(a * a[0])
    if depth > 0:
        collect(a[1:].copy(), depth - 1, into)
        collect(a[:-1].copy(), depth - 1, into)


@PROGRAMS.at(floats(5))
@njit
def list_of_arrays_passed(a):
    into = [a]
    collect(a, 2, into)
    total = 0.0
    for x in into:
        total += x.sum() * x[-1]
    return total


@njit
def into_both(xs, ys, a, d):
    xs.append(a * a[0])
    ys[-1][0] = ys[-1][0] * 3.0
    total = ys[-1][0] * xs[-1][1]
    ys[-1][0] = 7.0 * a[1]
    return total + into_both(xs, ys, a * 0.5, d - 1) if d else total


@PROGRAMS.at(floats(3))
@njit
def one_list_passed_twice(a):
    xs = [a * 2.0]
    total = into_both(xs, xs, a, 2)
    for x in xs:
        total += x[0] * x[1]
    return total


@njit
def numbers(a, d):
    xs = [v * 1.0 for v in a]
    if d:
        ys = numbers(a[:-1] * a[-1], d - 1)
        xs.extend(ys)
        xs.append(ys[0] * xs[0])
    return xs


@PROGRAMS.at(floats(5))
@njit
def list_of_numbers(a):
    total = 0.0
    for v in numbers(a, 2):
        total += v * v
    return total


@njit
def of_both(a, b, out, d):
    out.append((a * d, b * np.float32(2), d))
    if d:
        of_both(a * a[0], b + np.float32(1), out, d - 1)


@PROGRAMS.at(floats(3), floats(3).astype(np.float32))
@njit
def list_of_tuples_of_arrays(a, b):
    out = [(a, b, 3)]
    of_both(a, b, out, 2)
    total = 0.0
    for x, y, n in out:
        total += x.sum() * n * y[0]
    return total


@njit
def rows(a, d):
    out = [[a * 1.0]]
    if d:
        for row in rows(a[1:] * a[0], d - 1):
            row.append(row[0] * 2.0)
            out.append(row)
    return out


@PROGRAMS.at(floats(5))
@njit
def list_of_lists(a):
    total = 0.0
    for row in rows(a, 2):
        for x in row:
            total += x.sum() * x[0]
    return total


@njit
def lists_beside_arrays(out, a, b, d):
    if d:
        out.append(([a * d, a + 1.0], b * np.float32(d)))
        lists_beside_arrays(out, a * a[0], b, d - 1)
        out[0][0].append(a * 5.0)
        out[-1][0][0][1] *= 2.0


@MORE.at(floats(3), floats(3).astype(np.float32))
@njit
def list_of_tuples_of_lists(a, b):
    out = [([a], b)]
    lists_beside_arrays(out, a.copy(), b, 2)
    total = 0.0
    for items, y in out:
        for x in items:
            total += x.sum() * y[0] * x[1]
    return total


@njit
def both_returned(a, b, d):
    out = [(b, a, 1.5 * d), (b * np.float32(3), a * 2.0, a[0])]
    if d:
        for y, x, s in both_returned(a * a[1], b, d - 1):
            out.append((y * np.float32(1.5), x + a, s * a[2]))
            out[0] = y, x, s
    return out


@MORE.at(floats(3), floats(3).astype(np.float32))
@njit
def returned_list_of_tuples(a, b):
    total = 0.0
    for y, x, s in both_returned(a, b, 2):
        total += x.sum() * y[0] * s
    return total


@njit
def arrays_of(a, depth):
    items = arrays_of(a, depth - 1) if depth else List.empty_list(VECTOR)
    items.append(a * depth)
    return items


@MORE.at(floats(3))
@njit
def typed_list_returned(a):
    items = arrays_of(a, 2)
    return items[1].sum() * items[2][0]


@njit
def add_arrays(items, a, depth):
    items.append(a * depth)
    if depth:
        add_arrays(items, items[-1] * a, depth - 1)


@PROGRAMS.at(floats(3))
@njit
def typed_list_passed(a):
    items = List.empty_list(VECTOR)
    add_arrays(items, a, 2)
    return items[1].sum() * items[0][0]


@njit
def fill_table(table, a, d):
    table[d] = a * (d + 1.0)
    if d:
        fill_table(table, table[d] * a, d - 1)
        table[d + 10] = table[d - 1] * table[d]


@PROGRAMS.at(floats(3))
@njit
def dictionary_of_arrays(a):
    table = {5: a}
    fill_table(table, a, 3)
    total = 0.0
    for key, value in table.items():
        total += value.sum() * key
    return total


@pytest.mark.parametrize("case", PROGRAMS, ids=str)
def test_gradient(case: Case):
    case.check()


@pytest.mark.slow
@pytest.mark.parametrize("case", MORE, ids=str)
def test_gradient_of_more(case: Case):
    case.check()


@njit
def as_integers(a, d):
    return a.view(np.int64) if d == 0 else as_integers(a, d - 1)


@njit
def overwritten_through_integers(a):
    b = a * 2.0
    bits = as_integers(b, a.size)  # a depth that LLVM does not know: it would inline the calls
    bits[0] = 0
    return (b * b).sum()


@njit
def halves(a, d):
    total = a.view(np.float32)[1] * 2.0 + a[0]
    return total + halves(a, d - 1) if d else total


@njit
def read_as_halves(a):
    return halves(a * 2.0, a.size)  # a depth that LLVM does not know: it would inline the calls


@intrinsic
def to_pointer(context, address):
    def emit(target, builder, signature, arguments):
        return builder.inttoptr(arguments[0], target.get_value_type(signature.return_type))

    return types.CPointer(types.float64)(address), emit


@njit
def at_address(address, size, d):
    x = carray(to_pointer(address), (size,))
    s = x[d] * x[0]
    return s + at_address(address, size, d - 1) * at_address(address, size, d - 2) if d > 0 else s


@njit
def address_passed(a):
    b = a * 2.0
    return at_address(b.ctypes.data, b.size, a.size - 1)


@njit
def put_halves(out, a, d):
    out.append(a.view(np.float32))
    if d:
        put_halves(out, a * a[0], d - 1)


@njit
def halves_in_a_list(a):
    out = [np.ones(2, np.float32)]
    put_halves(out, a, a.size)
    return out[1][1] * out[2][1]


@njit
def put_both(out, a, d):
    out.append((a, a.view(np.float32)))
    if d:
        put_both(out, a * a[0], d - 1)


@njit
def halves_beside_the_whole(a):
    out = [(a, np.ones(2, np.float32))]
    put_both(out, a, a.size)
    return out[1][0].sum() * out[2][1][1]


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (halves_in_a_list, "returns an array viewed as another number type"),
        (halves_beside_the_whole, "returns an array viewed as another number type"),
        (overwritten_through_integers, "returns an array viewed as another number type"),
        (address_passed, "address of active memory is passed to a function as an integer"),
        (read_as_halves, "is accessed as float32, but holds numbers of another type"),
    ],
)
def test_refused(function, reason):
    with pytest.raises(UnsupportedError, match=reason):
        irad.grad(function)(floats(5))


def test_weights_that_may_be_returned_are_constant():
    w = floats(3, seed=1)

    @njit
    def by_first(a):
        return one_of_both(a, w)

    a = np.abs(floats(3))
    np.testing.assert_allclose(irad.grad(one_of_both)(a, w), irad.grad(by_first)(a))
    check_quickly(by_first, a)


@njit
def _number_of(a, bits, depth):
    if depth > 0:
        return _number_of(a, bits, depth - 1) + _number_of(a, bits, depth - 2)
    a[0] += 1.0
    return np.int64(bits).view(np.float64)


@njit
def bits_through_a_recursion(a, x, depth):
    return 2.0 * _number_of(a, np.float64(x).view(np.int64), depth)


def test_bits_of_a_number_that_go_through_a_recursion_are_refused():
    assert bits_through_a_recursion(np.zeros(1), 1.5, 3) == 15.0
    with pytest.raises(irad.UnsupportedError, match="an active number is manipulated as an integer"):
        irad.grad(bits_through_a_recursion, argnums=1)(np.zeros(1), 1.5, 3)
