"""Branches, loops of every kind, early ways out.

PYTEST_DONT_REWRITE: Numba cannot compile assert statements rewritten by pytest.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from numba import njit, prange

from tests.tools.catalogue import Case, Catalogue, floats

PROGRAMS = Catalogue()


@PROGRAMS.at(-1.5)
@PROGRAMS.at(1.5)
@njit
def branch(x):
    if x > 0:
        return x * x
    return math.exp(x)


@PROGRAMS.at(0.5, 3.0)
@PROGRAMS.at(2.0, 3.0)
@PROGRAMS.at(5.0, 3.0)
@njit
def chained_elif(x, y):
    if x < 1:
        z = x * y
    elif x < 4:
        z = x / y
    else:
        z = y - x
    return z * z


@PROGRAMS.at(0.3, 0.4)
@PROGRAMS.at(0.3, -0.4)
@PROGRAMS.at(-0.3, -0.4)
@njit
def short_circuit(x, y):
    if (x > 0 and y > 0) or x * y > 1:
        return x * y
    if not x > 0 or y > 10:
        return x + y * y
    return math.sin(x - y)


@PROGRAMS.at(2.0)
@PROGRAMS.at(0.5)
@njit
def conditional_expression(x):
    return (x * x if x > 1 else 1 / x) + (3 * x if x < 1 else x)


@PROGRAMS.at(1.3, True, 4)
@PROGRAMS.at(1.3, False, 4)
@PROGRAMS.at(1.3, True, 0)
@njit
def bool_and_int_arguments(x, flag, n):
    s = x
    for i in range(n):
        if flag and i % 2 == 0:
            s *= x
        else:
            s += i * x
    return s


@PROGRAMS.at(floats(0))
@PROGRAMS.at(floats(1))
@PROGRAMS.at(floats(7))
@njit
def loop_over_range(x):
    s = 0.0
    for i in range(x.shape[0]):
        s += x[i] * x[i] * i
    return s


@PROGRAMS.at(floats(0))
@PROGRAMS.at(floats(5))
@njit
def loop_over_elements(x):
    s = 1.0
    for v in x:
        s *= v
    return s


@PROGRAMS.at(floats(6))
@njit
def enumerate_loop(x):
    s = 0.0
    for i, v in enumerate(x):
        s += math.sin(v) * (i + 1)
    return s


@PROGRAMS.at(floats(5), floats(6, seed=1))
@njit
def zip_loop(x, y):
    s = 0.0
    for a, b in zip(x, y):  # noqa: B905 Numba's zip has no strict
        s += a**2 * b
    return s


@PROGRAMS.at(floats(7))
@njit
def reversed_range(x):
    s = 0.0
    for i in range(len(x) - 1, -1, -1):
        s = s * 0.5 + x[i] * s + x[i]
    return s


@PROGRAMS.at(floats(11), 3)
@PROGRAMS.at(floats(11), 1)
@PROGRAMS.at(floats(11), 20)
@njit
def stepped_range(x, step):
    s = 0.0
    for i in range(1, x.size, step):
        s += x[i] ** 3
    return s


@PROGRAMS.at(floats(9), -2)
@PROGRAMS.at(floats(9), 2)
@njit
def step_of_unknown_sign(x, step):
    s = 1.0
    for i in range(4, 8 if step > 0 else 0, step):
        s = s * x[i] + x[i]
    return s


@PROGRAMS.at(floats(6))
@njit
def triangular(x):
    s = 0.0
    for i in range(len(x)):
        for j in range(i):
            s += x[i] * x[j] / (i + j)
    return s


@PROGRAMS.at(floats(5))
@njit
def triangular_product(x):
    s = 0.0
    for i in range(len(x)):
        p = 1.0
        for j in range(i + 1):
            p *= x[j]
        s += math.sin(p)
    return s


@PROGRAMS.at(floats(4), np.array([0, 3, 1, 0, 2]))
@njit
def ragged(x, counts):
    s = 1.0
    for i in range(len(counts)):
        for j in range(counts[i]):
            s += s * x[j] * 0.1
    return s


@PROGRAMS.at(floats(3, 4))
@PROGRAMS.at(floats(0, 4))
@PROGRAMS.at(floats(3, 0))
@njit
def nested(x):
    s = 0.0
    for i in range(x.shape[0]):
        row = 1.0
        for j in range(x.shape[1]):
            row = row * x[i, j] + 0.1
        s += row * row
    return s


@PROGRAMS.at(floats(2, 3, 2))
@njit
def three_deep(x):
    s = 0.0
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            for k in range(x.shape[2]):
                s = s * 0.9 + math.cos(x[i, j, k] * s)
    return s


@PROGRAMS.at(1.7, 1.0)
@PROGRAMS.at(0.2, 1.0)
@njit
def while_loop(x, y):
    while y < 50.0:
        y = y * (1 + x) + x
    return y


@PROGRAMS.at(3.7)
@njit
def newton(a):
    x = a
    n = 0
    while abs(x * x - a) > 1e-13 and n < 50:
        x = 0.5 * (x + a / x)
        n += 1
    return x


@PROGRAMS.at(floats(6), 3)
@PROGRAMS.at(floats(6), 0)
@PROGRAMS.at(floats(6), 10)
@njit
def break_at(x, k):
    s = 1.0
    for i in range(len(x)):
        if i == k:
            break
        s = s * x[i] + x[i]
    return s


@PROGRAMS.at(floats(8), 4.0)
@PROGRAMS.at(floats(8), 400.0)
@njit
def break_on_sum(x, limit):
    s = 0.0
    for i in range(len(x)):
        s += x[i] * x[i]
        if s > limit:
            s *= 2.0
            break
    return s * s


@PROGRAMS.at(0.3)
@njit
def break_out_of_a_huge_range(x):
    p = 1.0
    for _ in range(10**12):
        p *= 1.0 + x * x
        if p > 1.5:
            break
    return p


@PROGRAMS.at(1.1)
@njit
def while_true(x):
    n = 0
    p = x
    while True:
        p = p * x + 0.1
        n += 1
        if p > 20:
            break
        if n > 100:
            return -p
    return p + n


@PROGRAMS.at(floats(7))
@njit
def continue_loop(x):
    s = 0.0
    for i in range(len(x)):
        if i % 3 == 1:
            continue
        s += x[i] ** 2 * s + x[i]
    return s


@PROGRAMS.at(floats(7, low=-1.0, high=1.0))
@njit
def continue_on_data(x):
    s = 0.0
    for v in x:
        if v < 0:
            continue
        s += math.sqrt(v)
    return s


@PROGRAMS.at(floats(5), 2)
@PROGRAMS.at(floats(5), 9)
@njit
def early_return(x, k):
    s = 0.0
    for i in range(len(x)):
        s += x[i] * x[i]
        if i == k:
            return s * 10
    return s


@PROGRAMS.at(floats(4, 4), 3.0)
@PROGRAMS.at(floats(4, 4), 13.0)
@PROGRAMS.at(floats(4, 4), 1000.0)
@njit
def return_from_nested(x, limit):
    s = 1.0
    for i in range(4):
        for j in range(4):
            s += x[i, j] * math.sqrt(s)
            if s > limit:
                return s * x[i, j]
        s *= 1.1
    return s


@PROGRAMS.at(floats(5, 5))
@njit
def several_exits(x):
    s = 0.0
    for i in range(5):
        if i == 4 and s > 0:
            break
        for j in range(5):
            if j > i + 1:
                break
            if (i + j) % 3 == 2:
                continue
            s += x[i, j] ** 2 + s * x[j, i] * 0.1
        else:
            s *= 1.5
    else:
        s = -s
    return s


@PROGRAMS.at(floats(4), 9.0)
@PROGRAMS.at(floats(4), 0.1)
@njit
def for_else(x, limit):
    s = 0.0
    for v in x:
        s += v * v
        if s > limit:
            break
    else:
        s = s * s
    return s


@PROGRAMS.at(27, 0.5)
@PROGRAMS.at(1, 0.5)
@njit
def collatz(n, x):
    while n > 1:
        if n % 2 == 0:
            n = n // 2
            x = x * 1.01 + 0.1
        else:
            n = 3 * n + 1
            x = math.sin(x) + 1
    return x


@PROGRAMS.at(0.8, 5)
@PROGRAMS.at(0.8, 0)
@PROGRAMS.at(0.8, -3)
@njit
def possibly_negative_trip_count(x, n):
    s = x
    for i in range(n):
        s = s * x + i
    return s


@PROGRAMS.at(floats(6), 5.5)
@njit
def trip_count_from_float(x, t):
    s = 0.0
    for i in range(int(t)):
        s += x[i] * t
    return s


@PROGRAMS.at(0.9)
@njit
def two_loops_in_a_row(x):
    s = 1.0
    for i in range(4):
        s = s * x + i
    t = 0.0
    for i in range(3):
        t = t + s * x**i
    return s * t


@PROGRAMS.at(0.9, 1.1)
@njit
def swapped_scalars(x, y):
    for _ in range(7):
        x, y = y, x * y
    return x - y * y


@PROGRAMS.at(0.7, 0.2)
@njit
def rotated_scalars(x, y):
    a, b, c = x, y, x * y
    for i in range(5):
        a, b, c = b + a * 0.1, c, math.sin(a) + i
    return a + 2 * b + 3 * c


@PROGRAMS.at(1.2)
@njit
def variable_defined_in_a_branch(x):
    for i in range(5):
        if i % 2 == 0:
            t = x * i
        else:
            t = x + i
        x = x + 0.1 * math.sin(t)
    return x * t  # pyright: ignore[reportPossiblyUnboundVariable]


@PROGRAMS.at(0.4, 11)
@njit
def bisection(target, steps):
    low = 0.0
    high = 1.0 + target
    for _ in range(steps):
        middle = 0.5 * (low + high)
        if middle * middle < target:
            low = middle
        else:
            high = middle
    return (high - target) * (low + target) + high


@PROGRAMS.at(floats(12, seed=4))
@njit
def state_machine(x):
    state = 0
    s = 0.1
    for v in x:
        if state == 0:
            s += v
            if v > 1:
                state = 1
        elif state == 1:
            s *= v
            state = 2 if v > 1.5 else 0
        else:
            s = math.sqrt(s * s + v)
            state = 0
    return s


@PROGRAMS.at(floats(10))
@njit
def running_maximum(x):
    m = x[0]
    s = 0.0
    for v in x:
        if v > m:
            m = v
        s += m * v
    return s


@PROGRAMS.at(2.3)
@PROGRAMS.at(-2.3)
@njit
def asserted(x):
    assert x * x > 1, "small"
    return x**3


@PROGRAMS.at(2.0, 3.0)
@njit
def raise_not_taken(x, y):
    if y == 0:
        raise ZeroDivisionError("y")
    if x < 0:
        raise ValueError("negative")
    return math.sqrt(x) / y


@PROGRAMS.at(floats(4))
@njit
def raise_in_a_loop_not_taken(x):
    s = 0.0
    for i in range(len(x)):
        if x[i] < 0:
            raise ValueError("negative")
        s += math.log(x[i]) * x[i]
    return s


@PROGRAMS.at(floats(5), 2.0)
@njit
def caught_exception(x, y):
    s = y
    try:
        for i in range(len(x)):
            s = s * x[i]
            if i == 3:
                raise ValueError("stop")
    except Exception:
        s = s + y * y
    return s


@PROGRAMS.at(floats(20))
@njit
def loop_with_prange(x):
    s = 0.0
    for i in prange(x.shape[0]):
        s += x[i] * x[i]
    return s


@PROGRAMS.at(0.3)
@njit
def unsigned_counter(x):
    s = 0.0
    for i in range(np.uint64(3), np.uint64(8)):
        s += x**2 * np.float64(i)
    return s


@PROGRAMS.at(0.9)
@njit
def long_loop(x):
    s = 0.0
    for i in range(20_000):
        s = s * 0.999 + math.sin(x + i)
    return s


@PROGRAMS.at(0.9)
@njit
def nothing_after_the_loop_uses_it(x):
    s = 0.0
    for _ in range(10):
        s = s * x
    return x


@PROGRAMS.at(0.9, 2.0)
@njit
def constant_result(x, y):
    return 3.5


@PROGRAMS.at(0.9, 2.0)
@njit
def unused_argument(x, y):
    return x * x


@PROGRAMS.at(1.2345)
@njit
def goto_like(x):
    i = 0
    s = x
    while i < 10:
        j = 0
        while True:
            j += 1
            s = s + 0.01 * s * j
            if s > 6 or j > i:
                break
        if s > 6:
            s = s - 3
            i += 2
            continue
        i += 1
    return s


@pytest.mark.parametrize("case", PROGRAMS, ids=str)
def test_gradient(case: Case):
    case.check()
