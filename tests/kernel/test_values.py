"""What kernels compute with beside numbers and arrays: vector types, tuples, records; options of `numba.cuda.jit`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numba import cuda

import irad
import irad.cuda
from irad import Const, Duplicated

N = 8
X = np.linspace(0.5, 2.0, N)
RECORD = np.dtype([("a", np.float64), ("n", np.int32), ("b", np.float64)], align=True)


def records() -> np.ndarray:
    made = np.zeros(N, RECORD)
    made["a"], made["n"], made["b"] = X, np.arange(N), X**2
    return made


def slope(kernel: Any, *constants: Any, **options: Any) -> np.ndarray:
    """The gradient of the sum of what a kernel writes; the same by differences, and the value, are compared."""
    compiled = cuda.jit(**options)(kernel)
    values = []
    for x in (X + 1e-6, X - 1e-6, X):
        values.append(np.zeros(N))
        with irad.cuda.executor(races=True):
            compiled[1, N](x, values[-1], *constants)
    value, shadow = np.zeros(N), np.zeros(N)
    with irad.cuda.executor(races=True):
        given = Duplicated(X.copy(), shadow), Duplicated(value, np.ones(N))
        irad.cuda.grad(compiled)[1, N](*given, *map(Const, constants))
    np.testing.assert_allclose(value, values[2])
    np.testing.assert_allclose(shadow, (values[0] - values[1]) / 2e-6, rtol=1e-6, atol=1e-8)
    return shadow


def test_vector_types():
    def kernel(x, y):
        i = cuda.grid(1)
        v = cuda.float64x2(x[i], x[i] * x[i])
        w = cuda.float64x3(v.x, v.y, v.x * v.y)
        y[i] = w.x * w.z + v.y

    np.testing.assert_allclose(slope(kernel), 4 * X**3 + 2 * X)


def test_fastmath():
    def kernel(x, y):
        i = cuda.grid(1)
        y[i] = math.sin(x[i]) / x[i] + math.sqrt(x[i]) * math.exp(-x[i])

    slope(kernel, fastmath=True)


def test_a_thread_that_raises_has_no_derivative():
    def kernel(x, y):
        i = cuda.grid(1)
        if x[i] > 1.0:
            raise ValueError
        y[i] = x[i] * x[i]

    np.testing.assert_allclose(slope(kernel), np.where(X > 1.0, 0.0, 2 * X))
    with pytest.raises(ValueError, match=r"ctaid=\[0, 0, 0\]"):  # as Numba does where it is asked for
        slope(kernel, debug=True, opt=False)


def test_largest_and_smallest():
    def kernel(x, y):
        i = cuda.grid(1)
        y[i] = max(x[i] * x[i], 1.5) + min(x[i], i, 2 * x[i]) * max(1, i) + max((x[i], np.float32(1.25)))

    slope(kernel)


def test_tuples_and_records_as_constants():
    def with_tuple(x, y, t):
        i = cuda.grid(1)
        y[i] = x[i] * t[0] + t[1][0] * x[i] ** 2

    def with_record(x, y, r, all_of_them):
        i = cuda.grid(1)
        y[i] = x[i] ** 2 * r.a + r.b * r.n * x[i] + all_of_them[i].b * x[i]

    np.testing.assert_allclose(slope(with_tuple, (2.0, (3.0, 1))), 2.0 + 6.0 * X)
    given = records()
    np.testing.assert_allclose(slope(with_record, given[3], given), 2 * X * X[3] + 3 * X[3] ** 2 + X**2)


def test_records_that_are_read_and_written():
    @cuda.jit
    def kernel(r, s):
        i = cuda.grid(1)
        s[i].a = r[i].a * r[i].b * r[i].n
        s[i]["b"] = 3.0 * r[i].a

    r, r_shadow, s, s_shadow = records(), np.zeros(N, RECORD), np.zeros(N, RECORD), np.zeros(N, RECORD)
    s_shadow["a"], s_shadow["b"] = 1.0, 2.0
    with irad.cuda.executor(races=True):
        irad.cuda.grad(kernel)[1, N](Duplicated(r, r_shadow), Duplicated(s, s_shadow))
    np.testing.assert_allclose(s["a"], X**3 * np.arange(N))
    np.testing.assert_allclose(r_shadow["a"], X**2 * np.arange(N) + 6.0)
    np.testing.assert_allclose(r_shadow["b"], X * np.arange(N))
    assert not r_shadow["n"].any()
    assert not s_shadow["a"].any()
    assert not s_shadow["b"].any()


def test_a_record_that_all_threads_read():
    @cuda.jit
    def kernel(r, y):
        i = cuda.grid(1)
        y[i] = r.a * i + r.b

    r, shadow = records(), np.zeros(N, RECORD)
    with irad.cuda.executor(races=True):
        irad.cuda.grad(kernel)[1, N](Duplicated(r[1], shadow[2]), Duplicated(np.zeros(N), np.ones(N)))
    assert (shadow[2]["a"], shadow[2]["b"]) == (28.0, 8.0)


def test_a_tuple_of_arrays_and_numbers():
    @cuda.jit
    def kernel(t, y):
        i = cuda.grid(1)
        y[i] = t[0][i] * t[1] ** 2

    shadow, number = np.zeros(N), np.zeros(1)
    with irad.cuda.executor(races=True):
        irad.cuda.grad(kernel)[1, N](Duplicated((X, 3.0), (shadow, number)), Duplicated(np.zeros(N), np.ones(N)))
    np.testing.assert_allclose(shadow, 9.0)
    np.testing.assert_allclose(number, 6.0 * X.sum())
