"""What callers do with new memory that a function with a rule returns: its type is known from the function's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba import njit, prange

import irad
from irad import rules
from irad.rules import AugmentedReturn, is_active
from irad.testing.check_gradient import check_gradient, check_quickly

X = np.array([0.3, -0.7, 1.9, 0.5, -0.2])


@njit
def wave(x, k):
    return np.sin(x) * k


def _wave_augmented(config, x, k):
    y = np.sin(x.value) * k.value
    return AugmentedReturn(y, np.zeros_like(y), (x.value.copy(), k.value))


def _wave_reverse(config, cotangent, tape, x, k):
    if not is_active(cotangent):
        return None, x.value.dtype.type(0.0)
    if is_active(x):
        x.shadow[...] += np.cos(tape[0]) * tape[1] * cotangent
    return None, (cotangent * np.sin(tape[0])).sum()


@pytest.fixture(autouse=True)
def _with_wave(with_rule: Callable[..., None]) -> None:
    with_rule(wave, _wave_augmented, _wave_reverse)


@njit
def weighted(y):
    total = 0.0
    for i in range(y.size):
        total += y[i] * (i + 1.0) + y[i] * y[i]
    return total


@njit
def sort(x, k):
    y = wave(x, 2.0 * k)
    y.sort()
    return weighted(np.sort(wave(x, k))) * weighted(np.sort(wave(x, k * k).copy())) + weighted(y)


@njit
def by_order(x, k):
    y = wave(x, k)
    return weighted(y[np.argsort(y)])


@njit
def extremes(x, k):
    y = wave(x, k)
    return y.max() * np.min(y) + y[np.argmax(y)] * np.median(y)


@njit
def product(x, k):
    return np.dot(wave(x, k), wave(np.sort(x), k * k))


@njit
def in_a_list(x, k):
    parts = [wave(x, k), wave(x * x, k)]
    parts.append(np.sort(wave(x, 2.0 * k)))
    total = 0.0
    for i in range(len(parts)):
        total += weighted(np.sort(parts[i])) * (i + 1.0)
    return total


@njit
def popped(x, k):
    parts = [wave(x, k * i) for i in range(3)]
    return weighted(np.sort(parts.pop(0)) + np.sort(parts.pop()))


@njit
def sliced(x, k):
    return weighted(np.sort(wave(x, k)[1::2])) + weighted(np.sort(wave(x, k)[::-1]))


@njit
def joined(x, k):
    return weighted(np.concatenate((wave(x, k), np.sort(wave(x, 2.0))))) + weighted(np.append(wave(x, k), k))


@njit
def chosen(x, k):
    y = wave(x, k) if k > 1.0 else np.sort(x)
    return weighted(np.sort(y))


@njit
def repeated(x, k):
    y = x
    for _ in range(3):
        y = np.sort(wave(y, k))
    return weighted(y)


PROGRAMS: list[Any] = [sort, by_order, extremes, product, in_a_list, popped, sliced, joined, chosen, repeated]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_a_new_array(program):
    check_quickly(program, X, 1.3)


def test_the_other_branch():
    check_quickly(chosen, X, 0.7)


def test_single_precision():
    @njit
    def f(x, k):
        y = wave(x, k)
        return weighted(np.sort(y)) + weighted(y[np.argsort(y)]) + np.dot(y, np.sort(y))

    check_quickly(f, X.astype(np.float32), np.float32(1.3))


def test_complex_numbers():
    @njit
    def turned(x, k):
        return x * np.exp(1j * k)

    def augmented(config, x, k):
        y = x.value * np.exp(1j * k.value)
        return AugmentedReturn(y, np.zeros_like(y), y.copy())

    def reverse(config, cotangent, tape, x, k):
        if is_active(x):
            x.shadow[...] += (cotangent * np.exp(-1j * k.value)).real
        return None, (cotangent * np.conj(1j * tape)).real.sum()

    rules.augmented_primal(turned)(augmented)
    rules.reverse(turned)(reverse)
    try:
        check_quickly(njit(lambda x, k: weighted(np.sort(turned(x, k).copy().real) + turned(x, k).imag)), X, 0.4)
    finally:
        rules.remove(turned)


def test_two_dimensions():
    @njit
    def f(a, k):
        y = wave(a, k)
        total = weighted(np.sort(y.copy().ravel())) + weighted(np.sort(wave(a.T, k)[1]))
        return total + np.dot(y, wave(a.T, k))[0, 1]

    check_quickly(f, X[:4].reshape(2, 2).copy(), 1.3)


def test_in_lanes():
    @njit(parallel=True)
    def f(x, k):
        out = np.zeros(6)
        for i in prange(6):
            out[i] = weighted(np.sort(wave(x * (i + 1.0), k)))
        return out.sum()

    check_gradient(f, X, 1.3)


def test_before_lanes():
    @njit(parallel=True)
    def f(x, k):
        y = np.sort(wave(x, k))
        out = np.zeros(y.size)
        for i in prange(y.size):
            out[i] = y[i] * y[i] * i
        return out.sum()

    check_gradient(f, X, 1.3)


@njit
def parts(x, n):
    return np.sin(x), n * x[::-1], np.argsort(x)


def _parts_augmented(config, x, n):
    first, second, order = np.sin(x.value), n.value * x.value[::-1], np.argsort(x.value)
    return AugmentedReturn((first, second, order), (np.zeros_like(first), np.zeros_like(second), None), x.value.copy())


def _parts_reverse(config, cotangent, tape, x, n):
    if is_active(x):
        x.shadow[...] += np.cos(tape) * cotangent[0] + n.value * cotangent[1][::-1]
    return None, (cotangent[1] * tape[::-1]).sum()


@njit
def of_parts(x, n):
    first, second, order = parts(x, n)
    ascending = np.sort(order)
    return weighted(np.sort(first)) * weighted(np.sort(second)[order]) + first[ascending[1]]


@njit
def of_parts_kept(x, n):
    kept = [parts(x, n), parts(x, n * n)]
    return weighted(np.sort(kept[1][0])) * weighted(np.sort(kept[0][1])[kept[1][2]])


@pytest.mark.parametrize("program", [of_parts, of_parts_kept], ids=lambda program: program.__name__)
def test_a_tuple_of_arrays(program, with_rule):
    with_rule(parts, _parts_augmented, _parts_reverse)
    check_quickly(program, X, 1.3)


@njit
def halves(x, k):
    y = x * k
    return y[:3], y[2:]


def _halves_augmented(config, x, k):
    y = x.value * k.value
    shadow = np.zeros_like(y)
    return AugmentedReturn((y[:3], y[2:]), (shadow[:3], shadow[2:]), (x.value.copy(), shadow))


def _halves_reverse(config, cotangent, tape, x, k):
    if is_active(x):
        x.shadow[...] += k.value * tape[1]
    return None, (tape[1] * tape[0]).sum()


def test_parts_that_share_memory(with_rule):
    with_rule(halves, _halves_augmented, _halves_reverse)

    @njit
    def f(x, k):
        first, second = halves(x, k)
        first[2] *= first[0]
        second[0] *= second[1]
        first.sort()
        return weighted(np.sort(second)) + weighted(np.sort(first))

    check_quickly(f, X, 1.3)


@njit
def both(x, kind):
    y = x * 2.0
    return y, y.view(kind.dtype)


@njit
def apart(x, kind):
    y = x * 2.0
    return y, y.copy().view(kind.dtype)


@pytest.mark.parametrize("kind", [np.int64, np.float32])
def test_one_array_as_numbers_of_two_types(kind, with_rule):
    def augmented(config, x, kind):
        found = apart(x.value, kind.value)
        return AugmentedReturn(found, (np.zeros_like(found[0]), np.zeros_like(found[1])), None)

    def reverse(config, cotangent, tape, x, kind):
        x.shadow[...] += 2.0 * cotangent[0]

    with_rule(both, augmented, reverse)
    with_rule(apart, augmented, reverse)

    @njit
    def f(x, kind):
        y, bits = both(x, kind)
        bits[0] = 0
        bits[1] = bits[2]
        return weighted(y)

    @njit
    def remedied(x, kind):
        y, bits = apart(x, kind)
        return weighted(np.sort(y)) + bits.size

    with pytest.raises(irad.UnsupportedError, match=r"one array as numbers of two types[\s\S]*y, bits = both"):
        irad.grad(f)(X, np.zeros(0, kind))
    check_quickly(remedied, X, np.zeros(0, kind), argnums=[0])


@njit
def tail(x, k):
    return x[1:]


def test_a_view_of_an_argument(with_rule):
    def augmented(config, x, k):
        if is_active(x):
            return AugmentedReturn(x.value[1:], x.shadow[1:], None)
        return AugmentedReturn(x.value[1:], np.zeros(x.value.size - 1), None)

    def reverse(config, cotangent, tape, x, k):
        return None, 0.0

    with_rule(tail, augmented, reverse)

    @njit
    def f(x, k):
        y = tail(x, k)
        return weighted(np.sort(y)) + weighted(np.sort(tail(x * k, k)))

    @njit
    def overwritten(x, k):
        own = x * k
        y = tail(own, k)
        y[0] *= y[1]
        own[2] *= own[0]
        y.sort()
        return weighted(np.sort(own)) + weighted(y)

    check_quickly(f, X, 1.3)
    check_quickly(overwritten, X, 1.3)


@njit
def either(x, k):
    return x if k > 1.0 else x * k


def test_a_view_or_new(with_rule):
    def augmented(config, x, k):
        new = k.value <= 1.0
        y = x.value * k.value if new else x.value
        return AugmentedReturn(y, np.zeros_like(y) if new else x.shadow, (new, x.value.copy()))

    def reverse(config, cotangent, tape, x, k):
        if tape[0]:
            x.shadow[...] += cotangent * k.value
            return None, (cotangent * tape[1]).sum()
        return None, 0.0

    with_rule(either, augmented, reverse)
    program = njit(lambda x, k: weighted(np.sort(either(x, k))) * k)
    check_quickly(program, X, 1.3)
    check_quickly(program, X, 0.7)


PAIR = np.dtype([("count", np.int32), ("weight", np.float32), ("value", np.float64), ("flag", np.int8)], align=True)


@njit
def records(x, n):
    found = np.zeros(x.size, PAIR)
    for i in range(x.size):
        found[i].count = n + i
        found[i].weight = x[i]
        found[i].value = x[i] * x[i]
        found[i].flag = 1
    return found


def _records_augmented(config, x, n):
    return AugmentedReturn(records(x.value, n.value), np.zeros(x.value.size, PAIR), x.value.copy())


def _records_reverse(config, cotangent, tape, x, n):
    for i in range(tape.size):
        x.shadow[i] += cotangent[i].weight + 2.0 * tape[i] * cotangent[i].value


def test_records(with_rule):
    with_rule(records, _records_augmented, _records_reverse)

    @njit
    def f(x, n):
        a = records(x, n)
        b = a.copy()
        b[1] = a[2]
        c = b[::2].copy()
        total = 0.0
        for i in range(c.size):
            total += c[i].value * c[i].count + c[i].weight * c[i].value * c[i].flag
        return total + b[1].value * b[0].weight

    check_quickly(f, X, 3, single=True)  # numbers of single precision are among the fields


def test_a_literal_in_a_tuple():
    @njit
    def square(x):
        return x * x, 3

    rules.easy_rule(square, lambda x: (20.0 * x, None))

    @njit
    def loss(x):
        y, n = square(x)
        return y * n

    try:
        assert irad.value_and_grad(loss)(2.0) == (12.0, 120.0)
        assert irad.jvp(loss, (2.0,), (1.0,)) == (12.0, 120.0)
    finally:
        rules.remove(square)
