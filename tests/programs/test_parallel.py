"""Parallel loops: `prange`, parallel array expressions, reductions, and what may stand in an iteration."""

from __future__ import annotations

import math
import os

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # threads that wait should not take time from other tests

import numba
import numpy as np
import pytest
from numba import njit, prange

import irad
from tests.tools.catalogue import Case, Catalogue, floats

THREADS: int = vars(numba.config)["NUMBA_NUM_THREADS"]

PROGRAMS = Catalogue()
MORE = Catalogue()  # run with the slow tests


# ------------------------------------------------------------------------------------------------ elementwise


@PROGRAMS.at(floats(7), 0.3)
@njit(parallel=True)
def captured_scalar(a, c):
    b = np.empty_like(a)
    for i in prange(a.size):
        b[i] = np.exp(a[i] * c) + c
    return b


@PROGRAMS.at(floats(9), floats(9))
@njit(parallel=True, error_model="numpy")
def writes_an_argument(a, out):
    for i in prange(a.size):
        out[i] = math.sin(a[i]) * out[i]
    return out[0] * out[3]


@PROGRAMS.at(floats(8))
@njit(parallel=True)
def in_place(a):
    for i in prange(a.size):
        a[i] = a[i] * a[i]
        a[i] += 0.5 * a[i]
    return a.sum()


@PROGRAMS.at(floats(0))
@PROGRAMS.at(floats(1))
@njit(parallel=True)
def zero_and_one_trip(a):
    s = 2.0
    for i in prange(a.size):
        s += a[i] * a[i]
    return s


@PROGRAMS.at(floats(10, dtype=np.float32), np.float32(0.7))
@njit(parallel=True, fastmath=True)
def single_precision(a, c):
    s = np.float32(0)
    for i in prange(a.size):
        s += a[i] * a[i] * c
    return s


@PROGRAMS.at(floats(3, 2))
@PROGRAMS.at(floats(3, 2, order="F"))
@njit(parallel=True)
def contiguous_columns(a):
    out = np.empty_like(a)
    for j in prange(a.shape[1]):
        column = np.ascontiguousarray(a[:, j])
        out[:, j] = column * column[::-1]
    return out


@PROGRAMS.at(floats(12)[::2], floats(6)[::-1])
@njit(parallel=True)
def strided(a, b):
    out = np.zeros(a.size)
    for i in prange(a.size):
        out[i] = a[i] * b[a.size - 1 - i]
    return out


@PROGRAMS.at(floats(4, 5), floats(4, 5, order="F"))
@njit(parallel=True)
def two_dimensions(a, b):
    out = np.empty_like(a)
    for i in prange(a.shape[0]):
        for j in range(a.shape[1]):
            out[i, j] = a[i, j] * b[i, j] + a[0, j]
    return out


# ------------------------------------------------------------------------------------------------ shared reads


@PROGRAMS.at(floats(17), 0.7)
@njit(parallel=True, error_model="numpy")
def stencil(a, c):
    b = np.zeros_like(a)
    for i in prange(1, a.size - 1):
        b[i] = c * (a[i - 1] - 2 * a[i] + a[i + 1]) * a[i]
    return b


@PROGRAMS.at(floats(6, 7), 3)
@njit(parallel=True, error_model="numpy")
def heat(u, steps):
    for _ in range(steps):
        new = u.copy()
        for i in prange(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                new[i, j] = u[i, j] + 0.1 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4 * u[i, j]) ** 2
        u = new
    return u


@PROGRAMS.at(floats(6), floats(4))
@njit(parallel=True)
def all_read_all(a, w):
    out = np.empty_like(a)
    for i in prange(a.size):
        s = 0.0
        for j in range(w.size):
            s += w[j] * a[i] * math.cos(w[j])
        out[i] = s
    return out


@PROGRAMS.at(floats(6), np.array([0, 2, 2, 5, 1, 0, 5]))
@njit(parallel=True)
def gather(a, index):
    out = np.empty(index.size)
    for i in prange(index.size):
        out[i] = a[index[i]] ** 2
    return out


@PROGRAMS.at(floats(8))
@njit(parallel=True)
def red_black(a):
    for i in prange(a.size // 2 - 1):
        a[2 * i + 1] = a[2 * i + 1] * (a[2 * i] + a[2 * i + 2])
    return a


@PROGRAMS.at(floats(9))
@njit(parallel=True)
def overlapping_views(a):
    left, right = a[:-1], a[1:]
    out = np.empty(left.size)
    for i in prange(left.size):
        out[i] = left[i] * right[i] ** 2
    return out


@PROGRAMS.at(floats(9), floats(8))
@njit(parallel=True)
def written_and_read_views(a, b):
    left, right = a[:-1], a[1:]
    for i in prange(4):
        left[2 * i] = left[2 * i] * right[2 * i] + b[i]
    return a


# ------------------------------------------------------------------------------------------------ reductions


@PROGRAMS.at(floats(11), 1.3)
@njit(parallel=True)
def sums_and_product(a, x):
    s, p, d = 0.5, x, 1.0
    for i in prange(a.size):
        s += a[i] ** 3 * x
        p *= a[i]
        d -= a[i] * x
    return s * p + d


@PROGRAMS.at(floats(11))
@njit(parallel=True)
def extremes(a):
    low, high = a[0], a[0]
    for i in prange(a.size):
        low = min(low, a[i])
        high = max(high, a[i] * a[i])
    return low * high


@PROGRAMS.at(floats(6, 3))
@njit(parallel=True)
def array_reduction(a):
    s = np.zeros(3)
    for i in prange(a.shape[0]):
        s += a[i] * a[i]
    return s


@MORE.at(floats(9, 3), floats(3))
@njit(parallel=True)
def array_reductions(a, w):
    total, product = w.copy(), np.ones(3)
    for i in prange(a.shape[0]):
        total += a[i] * w * a[i, 0]
        product *= 1.0 + a[i]
    return total * product


# ------------------------------------------------------------------------------------------------ array expressions


@MORE.at(floats(7), floats(7))
@njit(parallel=True)
def array_expressions(a, b):
    c = np.exp(a) * b + 1.0
    d = np.where(c > 3.0, c, a * b)
    return (d - d.mean()).sum() + np.dot(a, b) + (a * a).max() + d.min() * a.prod()


@PROGRAMS.at(floats(4, 6))
@njit(parallel=True)
def slices(u):
    u[1:-1, 1:-1] = u[1:-1, 1:-1] * 0.5 + 0.25 * u[2:, 1:-1] * u[:-2, 1:-1]
    u[0] += u[1]
    return u


@PROGRAMS.at(floats(5), 0.2)
@njit(parallel=True)
def made_by_functions(a, x):
    return np.ones(5) * x * a + np.full(5, x) + np.linspace(0.0, 1.0, 5) * a


# ------------------------------------------------------------------------------------------------ inside an iteration


@PROGRAMS.at(floats(5, 4), floats(4))
@njit(parallel=True)
def temporaries(a, w):
    out = np.empty(a.shape[0])
    for i in prange(a.shape[0]):
        row = a[i] * w
        row[0] = row[0] * row[1]
        out[i] = np.exp(row).sum()
    return out


@PROGRAMS.at(floats(9, 4))
@PROGRAMS.at(floats(9, 4, dtype=np.float32))
@njit(parallel=True)
def rows_that_are_copied(a):
    """Rows of neighbours too: what a lane copies lies in its window, outside, and across the end."""
    out = np.ones_like(a)
    for i in prange(1, a.shape[0] - 1):
        block = a[i - 1 : i + 2].copy()
        block[1] = block[0] * block[2]
        out[i] = a[i - 1]
        row = out[i].copy()
        row *= block[1]
        out[i] = row
    return out


MIXED = np.zeros(8, np.dtype([("x", "f4"), ("y", "f8"), ("z", "f4")], align=True))
MIXED["x"], MIXED["y"], MIXED["z"] = floats(8, dtype=np.float32), floats(8, seed=1), floats(8, seed=2, dtype=np.float32)


@PROGRAMS.at(MIXED)
@njit(parallel=True)
def records_that_are_copied(a):
    s = 0.0
    for i in prange(a.size - 1):
        two = a[i : i + 2].copy()
        t = two[0].x * two[1].y + two[1].z * two[1].z * i
        s += t + two.size  # the last use: Numba frees an array while records of it are read
    return s


@PROGRAMS.at(floats(5, 3), floats(3, 3), floats(3))
@njit(parallel=True)
def products(a, m, w):
    s = 0.0
    for i in prange(a.shape[0]):
        s += np.dot(a[i], w) * np.dot(m, a[i])[1]
    return s


@MORE.at(floats(12, 3), floats(3, 3))
@njit(parallel=True)
def library_products(a, b):
    out = np.zeros((12, 3))
    for i in prange(a.shape[0]):
        out[i] = np.dot(np.ascontiguousarray(b.T), a[i])
    return out


@PROGRAMS.at(floats(7, 3, 4), floats(4, 2))
@njit(parallel=True)
def library_calls_on_either(a, b):
    """What BLAS reads is now an array that lanes share, now one of the lane's own."""
    s = 0.0
    for i in prange(a.shape[0]):
        doubled = a[i] * 2.0
        chosen = a[i] if i % 2 == 0 else doubled
        s += (np.dot(chosen, b) ** 2).sum()
    return s


@PROGRAMS.at(floats(6), 3)
@njit(parallel=True)
def branches_and_whiles(a, n):
    out = np.zeros(a.size)
    for i in prange(a.size):
        x = a[i]
        if x > 1.0:
            k = 0
            while x < 20.0 and k < n + i:
                x = x * a[i] + 0.1
                k += 1
        elif i == 2:
            continue
        out[i] = x
    return out


@PROGRAMS.at(floats(4), floats(3))
@njit(parallel=True)
def nested(a, b):
    out = np.zeros((a.size, b.size))
    for i in prange(a.size):
        for j in prange(b.size):
            out[i, j] = math.sin(a[i] * b[j])
    return out


@njit
def callee(x, a):
    if x > 100.0:
        return callee(x * 0.5, a)
    return x * a[1]


@PROGRAMS.at(floats(6) * 150)
@njit(parallel=True)
def recursive_callee(a):
    out = np.zeros(a.size)
    for i in prange(a.size):
        out[i] = callee(a[i], a)
    return out


# ------------------------------------------------------------------------------------------------ around


@PROGRAMS.at(floats(6), 0.4)
@njit(parallel=True)
def one_after_the_other(a, c):
    b = np.empty_like(a)
    for i in prange(a.size):
        b[i] = a[i] ** 2 * c
    t = b[1]
    for i in prange(a.size):
        b[i] = b[i] * t + a[a.size - 1 - i]
    s = 0.0
    for i in prange(a.size):
        s += b[i] * t
    return s


@njit(parallel=True)
def parallel_callee(a, c):
    s = 0.0
    for i in prange(a.size):
        s += a[i] ** 2 * c
    return s


@PROGRAMS.at(floats(5))
@njit
def called_in_a_loop(a):
    s = 1.0
    for _ in range(3):
        if s < 100.0:
            s = parallel_callee(a, s)
    return s


@PROGRAMS.at(floats(5), np.arange(6))
@njit(parallel=True)
def constant_loops(a, n):
    total = 0
    for i in prange(n.size):
        total += n[i]
    weights = np.zeros(6)
    for i in prange(6):
        weights[i] = 1.0 / (n[i] + 1)
    return a.sum() * total + a[0] * weights[3]


@njit
def raising(x):
    if x < 0.0:
        raise ValueError("negative")
    return np.sqrt(x)


@PROGRAMS.at(floats(5))
@njit(parallel=True)
def callee_that_may_raise(a):
    out = np.zeros_like(a)
    for i in prange(a.size):
        out[i] = raising(a[i]) * a[0]
    return out


@PROGRAMS.at(floats(4))
@njit(parallel=True)
def parallel_in_parallel(a):
    out = np.empty_like(a)
    for i in prange(a.size):
        out[i] = parallel_callee(a, a[i])
    return out


@PROGRAMS.at((floats(4), floats(4, seed=1)), 0.5)
@njit(parallel=True)
def tuples(pair, x):
    s = 0.0
    for i in prange(pair[0].size):
        s += pair[0][i] * pair[1][i] * x
    return s


@PROGRAMS.at(floats(30))
@njit(parallel=True)
def chunks(a):
    old = numba.set_parallel_chunksize(4)
    s = 0.0
    for i in prange(a.size):
        s += a[i] ** 2
    numba.set_parallel_chunksize(old)
    return s


@pytest.mark.parametrize("case", [*PROGRAMS, *MORE.slow()], ids=str)
def test_gradient(case: Case):
    case.check()


@njit(parallel=True)
def list_in_a_loop(numbers, a):
    s = 0.0
    for i in prange(a.size):
        s += numbers[i] * a[i]
    return s


def test_objects_beside_active_arrays_are_refused():
    with pytest.raises(irad.UnsupportedError, match="points to other memory") as caught:
        irad.grad(list_in_a_loop, argnums=1)([1.0, 2.0], np.ones(2))
    assert caught.value.location.file == __file__


@pytest.mark.skipif(THREADS < 2, reason="one thread: Numba leaves the exception behind")
def test_what_an_iteration_raises_ends_its_chunk():
    """As in the plain function: Numba's threads lose the exception, the rest of the chunk is left out."""
    a = np.array([1.0, 4.0, 9.0, 16.0, -1.0, 25.0])
    numba.set_num_threads(2)
    try:
        plain = callee_that_may_raise(a)
        value, pullback = irad.vjp(callee_that_may_raise, a)
        [gradient] = pullback(np.ones(6))
    finally:
        numba.set_num_threads(THREADS)
    assert np.array_equal(value, plain)
    assert np.array_equal(plain, [1.0, 2.0, 3.0, 4.0, 0.0, 0.0])
    assert np.array_equal(gradient, [10.5, 0.25, 1 / 6, 0.125, 0.0, 0.0])
