"""Programs that mix what the other files test one by one: solvers, dynamic programs, containers, models."""

from __future__ import annotations

import math
from typing import NamedTuple

import numba
import numpy as np
import pytest
from numba import njit

from tests.tools.catalogue import Case, Catalogue, floats

PROGRAMS = Catalogue()
MORE = Catalogue()  # run with the slow tests

# ------------------------------------------------------------------------------------------------- control flow


@PROGRAMS.at(floats(17), 3)
@njit
def steps_given_by_an_argument(x, k):
    s = 1.0
    for i in range(0, len(x), k):
        s *= x[i]
        for j in range(i, -1, -k):
            s += math.sin(x[j])
    return s


@PROGRAMS.at(floats(9), np.uint64(6))
@njit
def unsigned_counters(x, n):
    s = 0.0
    for i in range(n):
        s += x[i] * x[i + np.uint64(1)]
    j = np.uint64(8)
    while j > np.uint64(2):
        s *= x[j]
        j -= np.uint64(1)
    return s


@PROGRAMS.at(floats(5, 6), 8.0)
@PROGRAMS.at(floats(5, 6), 1e9)
@njit
def flag_breaks_two_loops_while_storing(x, limit):
    s = 0.0
    done = False
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            s += x[i, j] * x[i, j]
            if s > limit:
                done = True
                break
        if done:
            break
        x[i, 0] = s
    return s * x[0, 0]


@PROGRAMS.at(floats(6), 100)
@njit
def data_decides_both_trip_counts(x, n):
    s = 0.0
    i = 0
    y = x[0]
    while (y < 10.0 and i < n) or i < 2:
        y = y * 1.3 + x[i % x.size] * 0.1
        x[i % x.size] = y * 0.5
        i += 1
        for j in range(int(y)):
            s += x[j % 6] * y
    return s


@PROGRAMS.at(floats(5), 3.0)
@njit
def breaks_continues_and_else(x, tolerance):
    i = 0
    s = 0.0
    total = 0.0
    while i < x.size:
        if x[i] < 0.8:
            i += 1
            continue
        s += x[i] ** 2
        if s > tolerance:
            total += s
            s = 0.0
            while True:
                i += 1
                if i >= x.size or x[i] > 1.0:
                    break
                total *= x[i]
            continue
        for k in range(i):
            if x[k] * x[i] > 2.0:
                break
            total += x[k] * s
        else:
            total *= 1.1
        i += 1
    return total + s


@PROGRAMS.at(floats(3), floats(3, seed=1), floats(3, seed=2))
@njit
def three_buffers_rotate(x, y, z):
    for _ in range(5):
        for j in range(3):
            z[j] = x[j] * y[(j + 1) % 3] * 0.7
        x, y, z = y, z, x
    return x[0] + y[1] * z[2]


# ------------------------------------------------------------------------------------------------- solvers in place


@PROGRAMS.at(floats(8), floats(8, seed=1))
@njit
def tridiagonal_solver(d, r):
    n = d.size
    c = np.empty(n)
    y = np.empty(n)
    c[0] = 0.3 / (d[0] + 2)
    y[0] = r[0] / (d[0] + 2)
    for i in range(1, n):
        m = d[i] + 2 - 0.2 * c[i - 1]
        c[i] = 0.3 / m
        y[i] = (r[i] - 0.2 * y[i - 1]) / m
    for i in range(n - 2, -1, -1):
        y[i] -= c[i] * y[i + 1]
    return y


@PROGRAMS.at(floats(4, 4), floats(4))
@njit
def elimination_with_row_exchanges(a, b):
    a = a.copy()
    b = b.copy()
    n = len(b)
    for k in range(n):
        p = k
        for i in range(k + 1, n):
            if abs(a[i, k]) > abs(a[p, k]):
                p = i
        if p != k:
            for j in range(n):
                a[k, j], a[p, j] = a[p, j], a[k, j]
            b[k], b[p] = b[p], b[k]
        for i in range(k + 1, n):
            f = a[i, k] / a[k, k]
            for j in range(k, n):
                a[i, j] -= f * a[k, j]
            b[i] -= f * b[k]
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            b[i] -= a[i, j] * b[j]
        b[i] /= a[i, i]
    return b.sum()


@PROGRAMS.at(floats(6, 6))
@njit
def gauss_seidel_sweeps(u):
    for _ in range(4):
        for i in range(1, 5):
            for j in range(1, 5):
                u[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]) + 0.01 * u[i, j] ** 2
    return np.sum(u * u)


@PROGRAMS.at(floats(16))
@njit
def butterflies_in_place(x):
    n = x.size
    h = 1
    while h < n:
        for i in range(0, n, 2 * h):
            for j in range(i, i + h):
                a = x[j]
                b = x[j + h]
                x[j] = a + b * math.cos(a)
                x[j + h] = a - b
        h *= 2
    return x[0] * x[3] + x[7]


@PROGRAMS.at(floats(9))
@njit
def bubble_sort_with_early_end(x):
    n = len(x)
    for i in range(n):
        swapped = False
        for j in range(n - 1 - i):
            if x[j] > x[j + 1]:
                x[j], x[j + 1] = x[j + 1], x[j]
                swapped = True
        if not swapped:
            break
    s = 0.0
    for i in range(n):
        s += (i + 1) * x[i] ** 2
    return s


@PROGRAMS.at(floats(6), floats(7))
@njit
def soft_dynamic_time_warping(x, y):
    n, m = len(x), len(y)
    d = np.full((n + 1, m + 1), np.inf)
    d[0, 0] = 0.0
    g = 0.3
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            a, b, c = -d[i - 1, j] / g, -d[i, j - 1] / g, -d[i - 1, j - 1] / g
            top = max(a, b, c)
            soft = top + math.log(math.exp(a - top) + math.exp(b - top) + math.exp(c - top))
            d[i, j] = (x[i - 1] - y[j - 1]) ** 2 - g * soft
    return d[n, m]


# ------------------------------------------------------------------------------------------------- models


@PROGRAMS.at(100.0, 95.0, 0.05, 0.2, 1.0, 12)
@njit
def american_put(s, k, r, sigma, t, n):
    dt = t / n
    u = math.exp(sigma * math.sqrt(dt))
    d = 1 / u
    p = (math.exp(r * dt) - d) / (u - d)
    v = np.array([max(k - s * u ** (2 * j - n), 0.0) for j in range(n + 1)])
    for i in range(n - 1, -1, -1):
        for j in range(i + 1):
            v[j] = max(math.exp(-r * dt) * (p * v[j + 1] + (1 - p) * v[j]), k - s * u ** (2 * j - i))
    return v[0]


@PROGRAMS.at(floats(20), 5)
@njit
def histogram_of_weights(x, bins):
    h = np.zeros(bins)
    count = np.zeros(bins, np.int64)
    for v in x:
        b = int((v - 0.5) / 1.5 * bins)
        h[b] += v * v
        count[b] += 1
    s = 0.0
    for b in range(bins):
        if count[b] > 0:
            s += (h[b] / count[b]) ** 2
    return s


@PROGRAMS.at(floats(20, 2), floats(3, 2))
@njit
def k_means_loss(x, centres):
    s = 0.0
    for i in range(x.shape[0]):
        best = np.inf
        for k in range(centres.shape[0]):
            d = 0.0
            for j in range(2):
                d += (x[i, j] - centres[k, j]) ** 2
            if d < best:
                best = d
        s += best
    return s


@PROGRAMS.at(floats(5, 7))
@njit
def bilateral_filter(image):
    out = np.zeros_like(image)
    for i in range(image.shape[0]):
        for j in range(image.shape[1]):
            w = 0.0
            s = 0.0
            for di in range(-1, 2):
                for dj in range(-1, 2):
                    a, b = i + di, j + dj
                    if a < 0 or b < 0 or a >= image.shape[0] or b >= image.shape[1]:
                        continue
                    g = math.exp(-((image[a, b] - image[i, j]) ** 2) / 0.3 - (di * di + dj * dj) / 2)
                    w += g
                    s += g * image[a, b]
            out[i, j] = s / w
    return ((out - image) ** 2).sum()


@PROGRAMS.at(floats(4), np.array([3, 1, 2]))
@njit
def integer_state_chooses_swaps(x, sequence):
    state = np.zeros(4, np.int64)
    total = 0.0
    for k in range(12):
        c = sequence[k % 3]
        state[c] += 1
        if state[c] % 2 == 0:
            x[c], x[0] = x[0] * 0.9, x[c]
        total += x[state[c] % 4] * x[c]
    return total


# ------------------------------------------------------------------------------------------------- structures


class _Parameters(NamedTuple):
    x: np.ndarray
    w: float
    k: int


@PROGRAMS.at(_Parameters(floats(4), 1.5, 3), (floats(3), (2.0, floats(2))))
@njit
def namedtuple_and_nested_tuple(p, t):
    s = 0.0
    for i in range(p.k):
        s += p.x[i] * p.w
    a, (b, c) = t
    a[0] = c[1] * b
    return s * a.sum() * c[0]


@PROGRAMS.at(floats(5))
@njit
def contiguous_copy_is_the_array_itself(x):
    y = np.ascontiguousarray(x)
    y[1] = x[0] * x[2]
    z = np.asarray(x)
    z[3] *= 2.0
    return (x**2).sum()


@PROGRAMS.at(floats(3, 4))
@njit
def every_iterator_of_a_matrix(x):
    s = 0.0
    for index, v in np.ndenumerate(x):
        s += v * v * (index[0] + index[1] * 2)
    for v in np.nditer(x):
        s += v.item() ** 3
    for v in x.flat:
        s *= v
    for index in np.ndindex(x.shape):
        s += x[index]
    return s


@PROGRAMS.at(floats(8))
@njit
def flattened_copies_and_ravelled_views(x):
    m = x.reshape(2, 4)
    f = m.flatten()
    r = m.ravel()
    f[0] = 9.0
    r[1] = f[2] * r[3]
    m.T[2, 1] = r[1]
    return x.sum() * f[3] + x[6] ** 2


@PROGRAMS.at(floats(4))
@njit
def list_methods(x):
    items = [x[0], x[1]]
    items.append(x[2])
    last = items.pop()
    items.insert(0, x[3])
    items.extend([last * last])
    items.reverse()
    s = 0.0
    for i, v in enumerate(items):
        s += v * (i + 1)
    return s


@MORE.at(floats(4))
@njit
def sorted_list_and_slices(x):
    items = [v * v for v in x]
    items.sort()
    part = items[1:3]
    part[0] = part[1] * 2
    return sum(part) * items[0] + items[3] * 5


@PROGRAMS.at(floats(4))
@njit
def list_of_lists(x):
    items = [[x[0], x[1]], [x[2]]]
    return items[0][1] * items[1][0]


@PROGRAMS.at(floats(4))
@njit
def seen_as_complex_numbers(x):
    z = x.view(np.complex128)
    return z[0].real * z[1].imag


@njit
def _doubled(x):
    for i in range(x.size):
        yield x[i] * 2


@PROGRAMS.at(floats(4))
@njit
def generator(x):
    s = 0.0
    for v in _doubled(x):
        s += v * v
    return s


@numba.experimental.jitclass([("b", numba.float64[:]), ("a", numba.float64)])
class _Counter:
    def __init__(self, b):
        self.b = b * 2
        self.a = b[0]

    def step(self, k):
        self.a += self.b[k]
        self.b[k] *= self.a


@PROGRAMS.at(floats(4))
@njit
def jitclass_made_inside(x):
    c = _Counter(x)
    for k in range(3):
        c.step(k)
    return c.b.sum() * c.a


# ------------------------------------------------------------------------------------------------- calls


@njit
def _root_sum(x):
    t = np.ones(3) * x
    if x < 0:
        raise ValueError("negative")
    return math.sqrt(x) * t.sum()


@PROGRAMS.at(floats(4))
@njit
def exceptions_caught_in_a_loop(x):
    s = 0.0
    for i in range(4):
        try:
            s += _root_sum(x[i] * (1.0 if i % 2 else -1.0))
        except Exception:
            s += x[i] ** 2
    return s


@njit
def _halved_squares(v, n):
    if n == 0:
        return v.sum()
    w = v * v * 0.5
    w[0] += _halved_squares(w, n - 1)
    return w[0] * v[1]


@PROGRAMS.at(1.3, 5)
@njit
def recursion_with_arrays_of_its_own(x, n):
    return _halved_squares(np.array([x, x * x, 1.0]), n)


def _scaling(c, values):
    @njit
    def scale(x):
        return c * x * values[1]

    return scale


_ONE, _OTHER = _scaling(3.0, floats(2)), _scaling(4.0, floats(2, seed=4))


@njit
def _composed(f, g, x):
    return f(g(x)) * g(x)


@PROGRAMS.at(1.4)
@njit
def closures_as_arguments(x):
    return _composed(_ONE, _OTHER, x) * _composed(_OTHER, _ONE, x)


@pytest.mark.parametrize("case", [*PROGRAMS, *MORE.slow()], ids=str)
def test_gradient(case: Case):
    case.check()
