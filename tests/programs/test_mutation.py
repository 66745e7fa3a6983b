"""Memory that changes: in place, overwritten, swapped, dead, aliased, as scratch."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numba import njit

from tests.tools.catalogue import Case, Catalogue, floats

PROGRAMS = Catalogue()


@PROGRAMS.at(floats(5))
@njit
def square_in_place(x):
    for i in range(x.size):
        x[i] = x[i] * x[i]
    return x.sum()


@PROGRAMS.at(floats(5), 1.3)
@njit
def augmented_assignments(x, a):
    x += a
    x *= 2.0
    x -= x[0]
    x /= a
    x **= 2
    return np.sum(x)


@PROGRAMS.at(floats(6))
@njit
def prefix_in_place(x):
    for i in range(1, x.size):
        x[i] += x[i - 1] * x[i]
    return x[-1]


@PROGRAMS.at(floats(6))
@njit
def suffix_in_place(x):
    for i in range(x.size - 2, -1, -1):
        x[i] = math.sin(x[i] * x[i + 1])
    return x[0] * x[1]


@PROGRAMS.at(floats(5))
@njit
def read_before_overwritten(x):
    a = x[2]
    x[2] = 7.0
    b = x[2]
    x[2] = a * x[1]
    return a * b * x[2] * x[2]


@PROGRAMS.at(floats(5))
@njit
def dead_stores(x):
    y = np.empty(5)
    for i in range(5):
        y[i] = x[i] ** 3
    for i in range(5):
        y[i] = x[i] * 2
    x[0] = x[1] * x[1]
    x[0] = 1.0
    return np.sum(y * x)


@PROGRAMS.at(floats(5))
@njit
def overwritten_by_a_constant(x):
    s = x.sum()
    x[:] = 2.0
    return s * s + x.sum()


@PROGRAMS.at(floats(4), floats(4, seed=1), 3)
@PROGRAMS.at(floats(4), floats(4, seed=1), 0)
@njit
def swapped_buffers(x, y, steps):
    a = x.copy()
    b = y.copy()
    for _ in range(steps):
        for i in range(a.size):
            b[i] = a[i] * b[i] + a[(i + 1) % a.size]
        a, b = b, a
    return np.sum(a) + 2 * np.sum(b * b)


@PROGRAMS.at(floats(4), floats(4, seed=1), 3)
@PROGRAMS.at(floats(4), floats(4, seed=1), 4)
@njit
def swapped_arguments(x, y, steps):
    for _ in range(steps):
        for i in range(x.size):
            y[i] = math.sin(x[i]) + 0.5 * y[i]
        x, y = y, x
    return x[0] * y[1] + x.sum()


@PROGRAMS.at(floats(8), 4)
@njit
def heat_with_two_buffers(u, steps):
    new = np.empty_like(u)
    for _ in range(steps):
        new[0] = u[0]
        new[-1] = u[-1]
        for i in range(1, u.size - 1):
            new[i] = u[i] + 0.1 * (u[i + 1] - 2 * u[i] + u[i - 1]) * u[i]
        u, new = new, u
    return np.sum(u * u)


@PROGRAMS.at(floats(5), 3)
@njit
def scratch_array(x, steps):
    t = np.zeros(5)
    s = 0.0
    for k in range(steps):
        for i in range(5):
            t[i] = x[i] * (k + 1)
        for i in range(5):
            s += t[i] * t[4 - i]
    return s


@PROGRAMS.at(floats(5), 3)
@njit
def accumulator_array(x, steps):
    t = np.zeros(5)
    for k in range(steps):
        for i in range(5):
            t[i] += x[i] * x[k]
            t[k] *= 0.9
    return np.sum(t * t)


@PROGRAMS.at(floats(4, 4))
@njit
def store_rows(x):
    y = np.empty((4, 4))
    for i in range(4):
        y[i] = x[i] * x[3 - i]
        y[:, i] = y[i] + x[:, i] if i == 0 else y[:, i] * 1.0
    for i in range(4):
        y[i, :] = x[:, i] * i
    return np.sum(y * x)


@PROGRAMS.at(floats(6))
@njit
def slices_assigned(x):
    y = np.zeros(8)
    y[1:7] = x
    y[0] = y[6]
    y[-1] = y[1]
    y[::2] *= 3.0
    y[1:4] = y[4:7] * y[0]
    return np.sum(y * y)


@PROGRAMS.at(floats(8))
@njit
def overlapping_slices_in_place(x):
    x[1:] = x[:-1]
    x[:-2] = x[2:] * 1.0
    return np.sum(x * np.arange(8))


@PROGRAMS.at(floats(8))
@njit
def overlapping_element_loop(x):
    for i in range(7):
        x[i + 1] = x[i] * 0.5 + x[i + 1]
    for i in range(6, -1, -1):
        x[i] = x[i + 1] * x[i]
    return x.sum()


@PROGRAMS.at(floats(8))
@njit
def reversed_in_place(x):
    x[:] = x[::-1].copy()
    for i in range(4):
        x[i], x[7 - i] = x[7 - i] * x[0], x[i]
    return x[0] * x[1] + x[7]


@njit
def _shift_multiply(a, b):
    for i in range(a.size):
        a[i] = a[i] * b[i] + b[i]


@PROGRAMS.at(floats(7))
@njit
def callee_with_overlapping_arguments(x):
    y = x.copy()
    _shift_multiply(y[1:], y[:-1])
    _shift_multiply(y[:-2], y[2:])
    _shift_multiply(y, y)
    return np.sum(y)


@PROGRAMS.at(floats(7))
@njit
def callee_writes_the_argument(x):
    _shift_multiply(x[::2], x[:4])
    return np.sum(x * x)


@PROGRAMS.at(floats(5))
@njit
def view_sees_the_store(x):
    y = x[1:4]
    y[0] = x[0] * x[4]
    z = x[1]
    x[2] = z * z
    return y[0] * y[1] + y[2]


@PROGRAMS.at(floats(2, 3))
@njit
def store_through_reshape(x):
    y = x.reshape(6)
    y[4] = y[0] * y[1]
    z = x.T
    z[0, 0] = x[1, 1] * 2
    return np.sum(x * x)


@PROGRAMS.at(floats(6, low=-1.0, high=1.0))
@njit
def store_in_a_branch(x):
    y = np.zeros(6)
    for i in range(6):
        if x[i] > 0:
            y[i] = x[i] ** 2
        elif i > 2:
            y[i - 1] = x[i]
    return np.sum(y * y * y)


@PROGRAMS.at(floats(6))
@njit
def store_then_break(x):
    s = 0.0
    for i in range(6):
        x[i] = x[i] * 2 + s
        s += x[i]
        if s > 6:
            break
        x[i] *= s
    return np.sum(x) * s


@PROGRAMS.at(floats(6), floats(6, seed=1))
@njit
def output_argument(x, out):
    for i in range(6):
        out[i] = math.exp(x[i])
    return out[2] * out[3]


@PROGRAMS.at(floats(6), floats(6, seed=1))
@njit
def partly_overwritten_output(x, out):
    for i in range(0, 6, 2):
        out[i] = x[i] * out[i + 1]
    return np.sum(out * out)


@PROGRAMS.at(floats(4), np.zeros(4, np.int64))
@njit
def integer_output(x, count):
    s = 0.0
    for i in range(4):
        count[i] += i
        count[0] += 1
        s += x[i] * count[i]
    return s * count[0]


@PROGRAMS.at(floats(5))
@njit
def index_kept_in_memory(x):
    k = np.zeros(3, np.int64)
    k[0] = 2
    s = x[k[0]]
    k[0] = 4
    k[1] = k[0] - 1
    s *= x[k[0]] * x[k[1]]
    return s


@PROGRAMS.at(floats(6))
@njit
def loop_bound_in_memory_changes(x):
    n = np.array([2, 4, 1])
    s = 0.0
    for k in range(3):
        for i in range(n[k]):
            s = s * 0.5 + x[i + k] * x[i]
        n[k] = 0
        if k < 2:
            n[k + 1] += 1
    return s


@PROGRAMS.at(floats(5))
@njit
def condition_in_memory_changes(x):
    flag = np.ones(5, np.bool_)
    s = 0.0
    for _ in range(2):
        for i in range(5):
            if flag[i]:
                s += x[i] ** 2
                flag[i] = i % 2 == 0
            else:
                s *= x[i]
    return s


@PROGRAMS.at(floats(4, 4))
@njit
def gaussian_elimination_in_place(a):
    n = a.shape[0]
    for i in range(n):
        a[i, i] += 5.0
    for k in range(n):
        for i in range(k + 1, n):
            a[i, k] /= a[k, k]
            for j in range(k + 1, n):
                a[i, j] -= a[i, k] * a[k, j]
    d = 1.0
    for i in range(n):
        d *= a[i, i]
    return d


@PROGRAMS.at(floats(4, 4))
@njit
def cholesky_in_place(a):
    n = a.shape[0]
    m = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            m[i, j] = a[i, j] + a[j, i] + (8.0 if i == j else 0.0)
    for j in range(n):
        for k in range(j):
            for i in range(j, n):
                m[i, j] -= m[i, k] * m[j, k]
        m[j, j] = math.sqrt(m[j, j])
        for i in range(j + 1, n):
            m[i, j] /= m[j, j]
    s = 0.0
    for i in range(n):
        s += math.log(m[i, i]) + m[n - 1, i]
    return s


@PROGRAMS.at(floats(3), 5)
@njit
def history_matrix(x, steps):
    h = np.zeros((steps + 1, 3))
    h[0] = x
    for k in range(steps):
        for i in range(3):
            h[k + 1, i] = math.sin(h[k, i]) + 0.1 * h[k, (i + 1) % 3] * h[0, i]
    return np.sum(h[-1] * h[2])


@PROGRAMS.at(floats(3), 5)
@njit
def ring_buffer(x, steps):
    b = np.zeros(3)
    b[:] = x
    for k in range(steps):
        b[k % 3] = b[(k + 1) % 3] * b[(k + 2) % 3] + 0.1 * b[k % 3]
    return b[0] + 2 * b[1] + 3 * b[2]


@PROGRAMS.at(1.3)
@njit
def scalar_through_an_array(x):
    t = np.empty(1)
    t[0] = x
    for _ in range(4):
        t[0] = t[0] * t[0] - x * 0.4
    return t[0]


@PROGRAMS.at(floats(5))
@njit
def fill_method(x):
    y = np.empty(5)
    y.fill(x[0])
    y[2] = x[1]
    s = np.sum(y * x)
    y.fill(3.0)
    return s * y[0]


@PROGRAMS.at(floats(5, seed=8))
@njit
def insertion_sort(x):
    for i in range(1, x.size):
        v = x[i]
        j = i - 1
        while j >= 0 and x[j] > v:
            x[j + 1] = x[j]
            j -= 1
        x[j + 1] = v
    s = 0.0
    for i in range(x.size):
        s += (i + 1) * x[i] ** 2
    return s


@PROGRAMS.at(floats(6))
@njit
def list_of_floats(x):
    values = []
    for i in range(6):
        values.append(x[i] * x[i])
    values[2] = values[0] * values[1]
    s = 0.0
    for v in values:
        s += v * v
    return s + values.pop()


@PROGRAMS.at(floats(3, 4))
@njit
def list_of_arrays(x):
    rows = [x[0], x[1] * 2.0]
    rows.append(x[2] * x[0])
    s = 0.0
    for row in rows:
        s += np.sum(row * row)
    return s * rows[1][2]


@pytest.mark.parametrize("case", PROGRAMS, ids=str)
def test_gradient(case: Case):
    case.check()
