"""fastmath: what one sweep decides by a number that LLVM may round, the other does not decide again.

`x / h` of multiples of a tenth is a whole number or just below one, as it is rounded. All functions are homogeneous in
``a``, so Euler's identity `a · ∇f = n f` tells whether the gradient is that of the value which came with it, whatever
that value went by: a plain call may decide otherwise.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from numba import njit, prange

import irad

STEP = 0.1
GRID = np.arange(1, 200) / 10.0
PLANS = ("default", "save_all")


def weights(n: int) -> np.ndarray:
    return np.random.default_rng(n).normal(size=n)


@njit(fastmath=True)
def gathered(a, x, h):
    s = 0.0
    for i in range(x.size):
        s += a[int(x[i] / h)] * x[i]
    return s


@njit(fastmath=True)
def gathered_by_strides(a, x, h):
    b = a[: 14 * 14].reshape(14, 14).T
    s = 0.0
    for i in range(x.size - 10):
        k = int(x[i] / h)
        s += b[k % 14, k // 14] * x[i] + b[k // 14, 1:].sum()
    return s


@njit(fastmath=True)
def gathered_through_a_permutation(a, x, h):
    order = np.arange(a.size)[::-1].copy()
    s = 0.0
    for i in range(x.size):
        s += a[order[int(x[i] / h)]] * x[i]
    return s


@njit(fastmath=True)
def gathered_by_stored_numbers(a, x, h):
    position = x / h
    s = 0.0
    for i in range(x.size):
        s += a[int(position[i])] * position[i]
    return s


@njit(fastmath=True)
def gathered_by_floor(a, x, h):
    s = 0.0
    for i in range(x.size):
        t = x[i] / h
        below = math.floor(t)
        s += a[int(below)] * (1.0 - (t - below)) + a[int(below) + 1] * (t - below)
    return s


@njit(fastmath=True)
def sawtooth(a, x, h):
    s = 0.0
    for i in range(x.size):
        t = x[i] / h
        s += a[i] * (t - np.floor(t))
    return s


@njit(fastmath=True)
def with_signs(a, x, h):
    s = 0.0
    for i in range(x.size):
        s += a[i] * math.copysign(1.0, x[i] / h - (i + 1))
    return s


@njit(fastmath=True)
def counted(a, x, h):
    s = 0.0
    for i in range(x.size):
        for j in range(int(x[i] / h)):
            s += a[j] * x[i]
    return s


@njit(fastmath=True)
def repeated(a, x, h):
    s = 0.0
    for i in range(x.size):
        t = a[i] * x[i]
        for j in range(int(x[i] / h) % 7):
            t = 0.5 * t + math.sqrt(a[j] * a[j])
        s += t
    return s


@njit(fastmath=True)
def while_below(a, x, h):
    s, t, k = 0.0, 0.0, 0
    while t / h < 150.0 and k < a.size:
        s += a[k] * a[k]
        t += h
        k += 1
    return s


@njit(fastmath=True)
def branched(a, x, h):
    s = 0.0
    for i in range(x.size):
        if x[i] / h >= i + 1:
            s += a[i] * a[i]
        else:
            s -= a[i + 1] * a[i]
    return s


@njit(fastmath=True)
def selected(a, x, h):
    s = 0.0
    for i in range(x.size):
        s += a[i] if x[i] / h >= i + 1 else 3.0 * a[i + 1]
    return s


@njit(fastmath=True)
def largest(a, x, h):
    s = 0.0
    for i in range(x.size):
        s += max(a[i] * x[i] / h, a[i] * (i + 1)) + abs(a[i] * (x[i] / h - (i + 1)))
    return s


@njit(fastmath=True)
def visited(a, x, h, i):
    if i >= x.size:
        return 0.0
    k = int(x[i] / h)
    return a[k] * a[k] + visited(a, x, h, i + 1 + k % 2)


@njit
def in_recursion(a, x, h):
    return visited(a, x, h, 0)


@njit(fastmath=True)
def position(x, h):
    return int(x / h)


@njit
def in_a_callee_only(a, x, h):
    s = 0.0
    for i in range(x.size):
        s += a[position(x[i], h)] * x[i]
    return s


@njit(parallel=True, fastmath=True)
def in_parallel(a, x, h):
    s = 0.0
    for i in prange(x.size):
        s += a[int(x[i] / h)] * x[i]
    return s


@njit
def by_remainders(a, x, h):
    s = 0.0
    for i in range(x.size):
        s += a[int(10.0 * (x[i] % h))] + (a[i] if x[i] % h > 0.05 else 2.0 * a[i + 1])
    return s


DEGREES = {
    gathered: 1,
    gathered_by_strides: 1,
    gathered_through_a_permutation: 1,
    gathered_by_stored_numbers: 1,
    gathered_by_floor: 1,
    sawtooth: 1,
    with_signs: 1,
    counted: 1,
    repeated: 1,
    while_below: 2,
    branched: 2,
    selected: 1,
    largest: 1,
    in_recursion: 2,
    in_a_callee_only: 1,
    in_parallel: 1,
    by_remainders: 1,
}


@pytest.mark.parametrize("f", DEGREES, ids=lambda f: f.__name__)
def test_the_gradient_is_that_of_the_value(f):
    a = weights(220)
    for plan in PLANS:
        options = irad.Options(plan=plan, verify=True)
        value, by_a = irad.value_and_grad(f, options=options)(a, GRID, STEP)
        np.testing.assert_allclose(a @ by_a, DEGREES[f] * value, 1e-11, 1e-11, err_msg=plan)


def sorted_words(flags):
    """A name that is the same in every process."""
    return "-".join(sorted(flags))


@pytest.mark.parametrize(
    "flags", [{"arcp"}, {"contract"}, {"reassoc", "nsz"}, {"nnan", "ninf"}, {"afn", "arcp"}], ids=sorted_words
)
@pytest.mark.parametrize("f", [gathered, branched, counted], ids=lambda f: f.__name__)
def test_each_word_of_fastmath(f, flags):
    fast, a = njit(fastmath=flags)(f.py_func), weights(220)
    value, by_a = irad.value_and_grad(fast, options=irad.Options(verify=True))(a, GRID, STEP)
    np.testing.assert_allclose(a @ by_a, DEGREES[f] * value, 1e-11, 1e-11)


def test_a_pullback_reverses_what_its_forward_sweep_did():
    a = weights(220)
    value, pullback = irad.vjp(gathered, a, GRID, STEP)
    np.testing.assert_allclose(a @ pullback(1.0)[0], value, 1e-12)


def test_debug_mode_decides_as_little():
    a = weights(220)
    for f in (gathered, sawtooth, counted):
        value, by_a = irad.value_and_grad(f, options=irad.Options(debug=True, verify=True))(a, GRID, STEP)
        np.testing.assert_allclose(a @ by_a, DEGREES[f] * value, 1e-11)


@pytest.mark.parametrize("h", [0.003, 0.006, 0.007, 0.011, 0.05, 0.1])
def test_nothing_is_written_behind_the_shadow(h):
    """The array ends with the last element that one of the two ways to round reads."""
    for j in range(2, 60):
        x = np.array([j * h])
        last = max(int(x[0] * (1.0 / h)), int(x[0] / h))
        memory = np.zeros(last + 40)
        read = next(k for k in range(last + 1) if gathered(np.eye(1, last + 1, k)[0], x, h) != 0.0)
        shadow = memory[: read + 1]
        array = np.ones(read + 1)
        irad.autodiff(irad.Reverse, gathered, irad.Duplicated(array, shadow), irad.Const(x), irad.Const(h))
        np.testing.assert_array_equal(memory[read + 1 :], 0.0)
        assert shadow[read] == x[0]


@pytest.mark.parametrize(("x", "y"), [(1.0, 0.1), (0.3, 0.1), (0.6, 0.2), (-1.0, 0.1), (1.0, -0.1), (7.5, 2.0)])
def test_the_quotient_of_a_remainder_is_not_rounded_up(x, y):
    """1.0 / 0.1 is 10.0 in floating-point, but `1.0 % 0.1` has taken 0.1 away nine times."""

    @njit(error_model="numpy")
    def remainder(x, y):
        return x % y

    by_x, by_y = irad.grad(remainder, argnums=(0, 1))(x, y)
    assert by_x == 1.0
    assert by_y == round((remainder(x, y) - x) / y)
