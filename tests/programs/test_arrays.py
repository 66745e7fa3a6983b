"""Arrays as arguments: layouts, strides, views, shapes, allocation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numba import njit

from tests.tools.catalogue import Case, Catalogue, floats

PROGRAMS = Catalogue()


@PROGRAMS.at(floats(5), floats(5, seed=1))
@PROGRAMS.at(floats(0), floats(0))
@njit
def dot_loop(x, y):
    s = 0.0
    for i in range(x.size):
        s += x[i] * y[i]
    return s


@PROGRAMS.at(floats(12)[::3])
@PROGRAMS.at(floats(12)[::-1])
@PROGRAMS.at(floats(12)[10:2:-3])
@PROGRAMS.at(floats(12)[5:5])
@njit
def strided(x):
    s = 0.1
    for i in range(x.size):
        s = s * x[i] + x[i] * i
    return s


@PROGRAMS.at(floats(3, 4))
@PROGRAMS.at(floats(3, 4, order="F"))
@PROGRAMS.at(floats(6, 8)[::2, 1::2])
@PROGRAMS.at(floats(3, 4)[::-1, ::-1])
@PROGRAMS.at(floats(4, 3).T)
@PROGRAMS.at(np.broadcast_to(floats(4), (3, 4)))
@njit
def layouts(x):
    s = 0.0
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            s += x[i, j] ** 2 * (i + 2 * j + 1)
    return s


@PROGRAMS.at(np.array(1.5))
@njit
def zero_dimensional(x):
    return x[()] * x[()]


@PROGRAMS.at(np.array(1.5), 2.0)
@njit
def zero_dimensional_store(x, y):
    x[()] = x[()] * y
    return x[()] * y


@PROGRAMS.at(floats(6))
@njit
def sliced_inside(x):
    a = x[1:]
    b = x[:-1]
    s = 0.0
    for i in range(a.size):
        s += a[i] * b[i] * b[i]
    return s


@PROGRAMS.at(floats(7))
@njit
def reversed_view(x):
    y = x[::-1]
    s = 0.0
    for i in range(x.size):
        s += x[i] * y[i] * i
    return s


@PROGRAMS.at(floats(9), 2, 7, 2)
@PROGRAMS.at(floats(9), 0, 100, 3)
@PROGRAMS.at(floats(9), -4, -1, 1)
@njit
def slice_of_arguments(x, start, stop, step):
    return np.sum(x[start:stop:step] ** 2)


@PROGRAMS.at(floats(3, 5))
@njit
def rows_and_columns(x):
    s = 0.0
    for i in range(3):
        row = x[i]
        s += row[0] * row[-1]
    for j in range(5):
        column = x[:, j]
        s += column[0] * column[1] * column[2]
    return s


@PROGRAMS.at(floats(2, 3, 4))
@njit
def subarrays(x):
    a = x[1, :, 1:3]
    b = x[:, 2, ::-1]
    return (a[0, 0] * a[2, 1] + b[1, 0] * b[0, 3]) * x[0, -1, -2]


@PROGRAMS.at(floats(3, 4))
@njit
def ellipsis_and_newaxis(x):
    y = x[..., 1]
    z = x[np.newaxis, :, 2]
    s = 0.0
    for i in range(3):
        s += y[i] * z[0, i]
    return s


@PROGRAMS.at(floats(3, 4))
@njit
def transposed_inside(x):
    y = x.T
    s = 0.0
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            s += y[i, j] ** 2 * (i + 1) / (j + 1)
    return s


@PROGRAMS.at(floats(2, 3, 4))
@njit
def transposed_axes(x):
    y = x.transpose(2, 0, 1)
    s = 0.0
    for i in range(4):
        s += y[i, 1, 2] * y[i, 0, 0]
    return s


@PROGRAMS.at(floats(12))
@njit
def reshaped(x):
    y = x.reshape(3, 4)
    z = y.reshape((2, 6))
    return y[1, 2] * z[1, 5] + z[0, 1] ** 3 * y[2, 0]


@PROGRAMS.at(floats(12))
@njit
def reshaped_and_written(x):
    y = x.copy().reshape(4, 3)
    y[1, 1] *= y[0, 0]
    z = y.reshape(-1)
    return np.sum(z * z)


@PROGRAMS.at(floats(3, 4))
@njit
def ravelled(x):
    y = x.ravel()
    z = x.flatten()
    z[0] = z[1] * y[5]
    return np.sum(y * z)


@PROGRAMS.at(floats(3, 4))
@PROGRAMS.at(floats(4, 3).T)
@njit
def flat_iterator(x):
    s = 0.0
    k = 0
    for v in x.flat:
        s += v * v * k
        k += 1
    return s


@PROGRAMS.at(floats(3, 4))
@PROGRAMS.at(floats(6, 8)[::2, ::2])
@njit
def ndenumerate_loop(x):
    s = 0.0
    for (i, j), v in np.ndenumerate(x):
        s += v * v * (i - j)
    return s


@PROGRAMS.at(floats(3, 4))
@njit
def ndindex_loop(x):
    s = 0.0
    for i, j in np.ndindex(x.shape):
        s += x[i, j] ** 3
    return s


@PROGRAMS.at(floats(3, 4))
@njit
def nditer_loop(x):
    s = 0.0
    for v in np.nditer(x):
        s += v.item() ** 2  # pyright: ignore[reportAttributeAccessIssue]
    return s


@PROGRAMS.at(floats(4), floats(3, 4, seed=1))
@njit
def broadcast_add(x, y):
    z = x + y
    return np.sum(z * z)


@PROGRAMS.at(floats(3, 1), floats(1, 4, seed=1), 2.0)
@njit
def broadcast_both_ways(x, y, a):
    return np.sum(np.exp(-x * y) + a * x / y)


@PROGRAMS.at(floats(1), floats(5, seed=2))
@njit
def broadcast_of_one(x, y):
    return np.sum(x * y * y)


@PROGRAMS.at(floats(4))
@njit
def broadcast_to_inside(x):
    y = np.broadcast_to(x, (3, 4))
    s = 0.0
    for i in range(3):
        for j in range(4):
            s += y[i, j] ** 2 * (i + 1)
    return s


@PROGRAMS.at(floats(5), floats(5, seed=1), 0.7)
@PROGRAMS.at(floats(0), floats(0), 0.7)
@PROGRAMS.at(floats(10)[::2], floats(5, seed=1), 0.7)
@njit
def array_expression(x, y, a):
    z = a * x + np.sin(y) / (1 + x * x)
    return z.sum()


@PROGRAMS.at(floats(3, 3), floats(3, 3, seed=1, order="F"))
@njit
def array_expression_of_mixed_layouts(x, y):
    z = x * y - y / x
    w = np.sqrt(z * z + 1.0)
    return np.sum(w[::-1] * x)


@PROGRAMS.at(floats(5))
@njit
def many_temporaries(x):
    for _ in range(4):
        x = np.tanh(x * 1.1 + x[::-1] * 0.3)
    return x.sum()


@PROGRAMS.at(floats(6), 3)
@njit
def allocation_in_a_loop(x, steps):
    s = 0.0
    for k in range(steps):
        t = np.empty(x.size)
        for i in range(x.size):
            t[i] = x[i] ** (k + 1)
        s += t[0] * t[-1]
    return s


@PROGRAMS.at(floats(6), 4)
@njit
def allocation_of_growing_size(x, steps):
    s = 1.0
    for k in range(steps):
        t = np.zeros(k + 1)
        for i in range(k + 1):
            t[i] = x[i] * s
        s = t.sum() * 0.5
    return s


@PROGRAMS.at(floats(5))
@njit
def zeros_and_ones(x):
    a = np.zeros_like(x)
    b = np.ones(x.shape)
    c = np.full(x.shape, x[0])
    for i in range(x.size):
        a[i] += x[i] * b[i] * c[i]
    return np.sum(a * c) + b[2] * x[1]


@PROGRAMS.at(floats(5))
@njit
def full_like_and_empty_like(x):
    a = np.full_like(x, x[1] * 2.0)
    b = np.empty_like(x)
    b[:] = a * x
    return np.sum(b * b)


@PROGRAMS.at(floats(5))
@njit
def copies(x):
    a = x.copy()
    b = np.copy(x)
    a[0] = 3.0
    b[1] = a[1] * a[2]
    c = np.ascontiguousarray(x[::2])
    return np.sum(a * b) * c[1]


@PROGRAMS.at(0.7, 6)
@njit
def linspace_and_arange(x, n):
    t = np.linspace(0.0, x, n)
    k = np.arange(n)
    f = np.arange(0.0, 3.0, 0.5)
    return np.sum(np.sin(t) * k) + f[2] * x


@PROGRAMS.at(0.7, 1.3)
@njit
def array_literal(x, y):
    a = np.array([x, y, x * y])
    b = np.array([[x, 1.0], [2.0, y]])
    return a[0] * a[2] + b[0, 0] * b[1, 1] ** 2 + b[1, 0] * a[1]


@PROGRAMS.at(floats(5))
@njit
def list_comprehension(x):
    a = np.array([v * v for v in x])
    b = np.array([x[i] * i for i in range(3)])
    return a.sum() * b.sum()


@PROGRAMS.at(0.3, 0.4)
@njit
def nested_list_comprehension(x, y):
    a = np.array([[x * i + y * j for i in range(3)] for j in range(2)])
    return np.sum(a * a)


@PROGRAMS.at(floats(4), 3)
@njit
def identity_matrix(x, k):
    a = np.eye(4) * x
    a[0, k] = x[1] * x[2]
    return np.sum(a**3)


@PROGRAMS.at(floats(4))
@njit
def shape_arithmetic(x):
    n = len(x)
    out = np.empty((n, n + 1))
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = x[i] * x[j % n]
    return out.sum() / out.size + out.ndim


@PROGRAMS.at(floats(5), np.arange(5))
@njit
def integer_array_argument(x, k):
    s = 0.0
    for i in range(5):
        s += x[i] * k[i] + x[k[i]] * x[(k[i] + 1) % 5]
    return s


@PROGRAMS.at(floats(5), np.array([True, False, True, True, False]))
@njit
def bool_array_argument(x, mask):
    s = 1.0
    for i in range(5):
        if mask[i]:
            s *= x[i]
        else:
            s += x[i] ** 2
    return s


@PROGRAMS.at(floats(6))
@njit
def integers_from_floats_and_back(x):
    k = int(x[0] * 10)
    return x[1] * k + float(k) * x[2] ** 2


@PROGRAMS.at(floats(6))
@njit
def astype(x):
    y = (x * 10).astype(np.int64)
    z = y.astype(np.float64)
    return np.sum(x * z)


@PROGRAMS.at(floats(6))
@njit
def view_of_a_view(x):
    y = x[1:]
    z = y[::2]
    w = z[::-1]
    return w[0] * z[0] + math.exp(w[1]) * y[3]


@PROGRAMS.at(floats(6))
@njit
def one_of_two_views(x):
    y = x[:3] if x[0] > 1e9 else x[3:]
    s = 0.0
    for v in y:
        s += v**3
    return s


@PROGRAMS.at(floats(4), floats(6, seed=3), 1)
@PROGRAMS.at(floats(4), floats(6, seed=3), 0)
@njit
def one_of_two_arguments(x, y, which):
    z = x if which == 0 else y
    s = 0.0
    for i in range(4):
        s += z[i] * x[i] * y[i]
    return s


@PROGRAMS.at(floats(10))
@njit
def sliding_window(x):
    w = np.lib.stride_tricks.sliding_window_view(x, 3)
    s = 0.0
    for i in range(w.shape[0]):
        s += w[i, 0] * w[i, 1] * w[i, 2]
    return s


@PROGRAMS.at(floats(8))
@njit
def as_strided_inside(x):
    y = np.lib.stride_tricks.as_strided(x, (4, 3), (8, 8))
    s = 0.0
    for i in range(4):
        for j in range(3):
            s += y[i, j] ** 2 * (j + 1)
    return s


@PROGRAMS.at(floats(2, 2, 2, 2, 2))
@njit
def five_dimensions(x):
    s = 0.0
    for i in np.ndindex(x.shape):
        s += x[i] * x[i[::-1]]
    return s


@PROGRAMS.at(floats(4), 2)
@njit
def negative_indices(x, k):
    return x[-1] * x[-k] + x[-4] ** 2 * x[k - 3]


@PROGRAMS.at(floats(12))
@njit
def split_by_shape(x):
    a, b = x[:6].reshape(2, 3), x[6:].reshape(3, 2)
    s = 0.0
    for i in range(2):
        for j in range(2):
            for k in range(3):
                s += a[i, k] * b[k, j]
    return s


@PROGRAMS.at(np.asfortranarray(floats(3, 3)))
@njit
def fortran_copy(x):
    y = np.asfortranarray(x * 2)
    z = x.copy()
    z[1, 2] = y[2, 1] * y[0, 0]
    return np.sum(z * y)


@pytest.mark.parametrize("case", PROGRAMS, ids=str)
def test_gradient(case: Case):
    case.check()
