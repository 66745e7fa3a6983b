"""Tuples, namedtuples, Optional, literals, records, global constants."""

from __future__ import annotations

import math
from collections import namedtuple

import numpy as np
import pytest
from numba import njit, types
from numba.extending import overload

from tests.tools.catalogue import Case, Catalogue, floats

PROGRAMS = Catalogue()

Point = namedtuple("Point", ["x", "y"])
Model = namedtuple("Model", ["weights", "bias", "depth"])
Nested = namedtuple("Nested", ["point", "scale"])

PARTICLE = np.dtype([("m", np.float64), ("k", np.int64), ("v", np.float64, (3,))])
PACKED = np.dtype([("tag", np.int8), ("a", np.float64), ("b", np.float32)])
INNER = np.dtype([("a", np.float64), ("b", np.float64)], align=True)
OUTER = np.dtype([("n", np.int32), ("inner", INNER), ("c", np.float64)], align=True)

TABLE = np.array([0.5, 1.5, -2.0, 4.0])
MATRIX = np.array([[1.0, 2.0], [3.0, 4.0]])
SCALE = 2.5
PAIR = (3.0, 4)
LIMITS = (0.5, 1.25)


def particles(count: int) -> np.ndarray:
    rng = np.random.default_rng(5)
    records = np.zeros(count, PARTICLE)
    records["m"] = rng.uniform(1, 2, count)
    records["k"] = np.arange(count)
    records["v"] = rng.uniform(-1, 1, (count, 3))
    return records


def packed(count: int) -> np.ndarray:
    records = np.zeros(count, PACKED)
    records["tag"] = np.arange(count)
    records["a"] = np.linspace(1, 2, count)
    records["b"] = np.linspace(0.5, 0.75, count)
    return records


def nested_record() -> np.ndarray:
    records = np.zeros(2, OUTER)
    records["n"] = 3, 4
    records["inner"]["a"] = 0.5, 0.75
    records["inner"]["b"] = 1.5, 1.25
    records["c"] = 2.0, 3.0
    return records


@PROGRAMS.at((1.5, 2.5))
@njit
def pair(t):
    return t[0] * t[1] ** 2


@PROGRAMS.at((1.5, 2.5, 0.5, 3.5))
@njit
def loop_over_a_uniform_tuple(t):
    s = 1.0
    for v in t:
        s = s * v + v
    for i in range(len(t)):
        s += t[i] * t[i]
    return s


@PROGRAMS.at((1.5, 2), 0.5)
@PROGRAMS.at((1.5, True), 0.5)
@njit
def heterogeneous_pair(t, x):
    a, k = t
    return a * x * k


@PROGRAMS.at((floats(3), 2.0, 4, floats(2, 2, seed=1)))
@njit
def heterogeneous_with_arrays(t):
    x, a, k, m = t
    return np.sum(x) * a**k + m[0, 1] * m[1, 0]


@PROGRAMS.at((floats(3), floats(3, seed=1)))
@njit
def tuple_of_arrays(t):
    s = 0.0
    for x in t:
        for v in x:
            s += v**3
    return s * t[0][1] * t[1][2]


@PROGRAMS.at(((1.5, 2.5), (0.5, (floats(2), 3.0))))
@njit
def nested_tuple(t):
    (a, b), (c, (x, d)) = t
    return a * b + c * d * x[0] * x[1]


@PROGRAMS.at((floats(4), floats(4, seed=1)))
@njit
def array_in_a_tuple_is_written(t):
    x, y = t
    x[0] = y[1] * x[2]
    y[3] *= x[0]
    return np.sum(x) + np.sum(y * y)


@PROGRAMS.at(Point(1.5, 2.5))
@njit
def point(p):
    return math.hypot(p.x, p.y) * p[0]


@PROGRAMS.at(Model(floats(3), 0.3, 2), floats(3, seed=1))
@njit
def model(m, x):
    s = m.bias
    for _ in range(m.depth):
        s = math.tanh(s + np.dot(m.weights, x))
    return s


@PROGRAMS.at(Nested(Point(1.2, 0.7), 3.0))
@njit
def nested_namedtuple(n):
    q = Point(n.point.x * n.scale, n.point.y + n.scale)
    return q.x * q.y


@PROGRAMS.at(1.2, 0.7)
@njit
def tuples_made_inside(x, y):
    t = (x, y)
    for _ in range(4):
        t = (t[1], t[0] * t[1] + 0.1)
    u = t + (x,)  # noqa: RUF005
    return u[0] * u[1] * u[2]


@PROGRAMS.at(1.2, 0.7)
@njit
def namedtuples_made_inside(x, y):
    p = Point(x, y)
    for _ in range(3):
        p = Point(p.y, p.x * 0.5 + p.y**2)
    return p.x - p.y


@njit
def _polar(x, y):
    return math.sqrt(x * x + y * y), math.atan2(y, x)


@PROGRAMS.at(1.2, 0.7)
@njit
def tuple_from_a_callee(x, y):
    r, phi = _polar(x, y)
    return r**2 * phi


@PROGRAMS.at((1.0, 2.0, 3.0))
@njit
def tuple_slices(t):
    return t[1:][0] * t[-1] + t[:2][1] * len(t)


@PROGRAMS.at((2, 3), (1.5, 0.5))
@njit
def integer_tuple(k, t):
    a = np.zeros(k)
    a[1, 2] = t[0]
    a[k[0] - 2, k[1] - 3] = t[1] * t[0]
    return np.sum(a * a)


@PROGRAMS.at(1.5, None)
@PROGRAMS.at(1.5, 2.5)
@njit
def none_or_float(x, y):
    if y is None:
        return x * x
    return x * y


@PROGRAMS.at(floats(3), None)
@PROGRAMS.at(floats(3), floats(3, seed=1))
@njit
def none_or_array(x, w):
    s = 0.0
    for i in range(3):
        if w is None:
            s += x[i] ** 2
        else:
            s += w[i] * x[i] ** 2
    return s


@njit
def _maybe_root(x):
    if x < 0:
        return None
    return math.sqrt(x)


@PROGRAMS.at(2.0)
@PROGRAMS.at(-2.0)
@njit
def optional_result_of_a_callee(x):
    r = _maybe_root(x)
    if r is None:
        return x * x
    return r * 3.0


@PROGRAMS.at(2.0)
@njit
def optional_variable(x):
    best = None
    for i in range(4):
        v = math.sin(x * i)
        if best is None or v > best:
            best = v
    return best * x


@njit
def _power(x, y=2.0, flag=None):
    if flag is None:
        return x**y
    return x * y


@PROGRAMS.at(1.4)
@njit
def omitted_optional_arguments(x):
    return _power(x) + _power(x, 3.0) * _power(x, y=x, flag=True)


def literally(mode, x):
    raise NotImplementedError


@overload(literally, prefer_literal=True)
def _literally(mode, x):
    if not isinstance(mode, types.StringLiteral):
        return None
    if mode.literal_value == "square":
        return lambda mode, x: x * x
    return lambda mode, x: math.exp(x)


@PROGRAMS.at(1.4)
@njit
def literal_string(x):
    return literally("square", x) * literally("exp", x)


@PROGRAMS.at(1.4, "twice")
@PROGRAMS.at(1.4, "thrice")
@njit
def string_argument(x, mode):
    if mode == "twice":
        return 2 * x * x
    return 3 * x


@PROGRAMS.at(particles(3))
@njit
def record_array(p):
    s = 0.0
    for i in range(p.size):
        s += p[i].m * p[i].k * p[i].m + p.m[i] ** 3
    return s


@PROGRAMS.at(particles(3))
@njit
def record_with_subarray(p):
    s = 0.0
    for i in range(p.size):
        v = p[i].v
        s += 0.5 * p[i].m * (v[0] ** 2 + v[1] ** 2 + v[2] ** 2)
    return s


@PROGRAMS.at(particles(3))
@njit
def record_written(p):
    for i in range(p.size):
        p[i].m = p[i].m * p[i].v[0]
        p[i].k += 1
    return p[0].m * p[1].m + p[2].k * p[2].m


@PROGRAMS.at(particles(3))
@njit
def record_copied(p):
    p[0] = p[1]
    p[2].m *= p[0].m
    q = p.copy()
    q[1].m = 5.0
    total = q[0].m * q[2].m + q[1].m * p[1].m
    return total / q.size  # a record does not keep its array: Numba would release it before the last number is read


@PROGRAMS.at(packed(4), rtol=2e-4)
@njit
def packed_record(p):
    s = 0.0
    for i in range(p.size):
        s += p[i].a * p[i].b * p[i].tag + p[i].a ** 2
    return s


@PROGRAMS.at(nested_record())
@njit
def record_in_a_record(p):
    s = 0.0
    for i in range(p.size):
        s += p[i].inner.a * p[i].inner.b * p[i].n + p[i].c ** 2
    return s


@PROGRAMS.at(particles(3))
@njit
def record_scalar(p):
    r = p[1]
    return r.m**2 * r.v[1] + r.k


@PROGRAMS.at(particles(6)[::2])
@njit
def strided_records(p):
    return p[0].m * p[1].m * p[2].v[2]


@PROGRAMS.at(particles(4))
@njit
def field_as_an_array(p):
    m = p.m
    return np.sum(m * m) * m[1]


@PROGRAMS.at(0.8, 2)
@njit
def global_array(x, k):
    s = 0.0
    for i in range(TABLE.size):
        s += TABLE[i] * x**i
    return s * TABLE[k]


@PROGRAMS.at(floats(2))
@njit
def global_matrix(x):
    return x @ (MATRIX @ x) + MATRIX[1, 0] * x[0]


@PROGRAMS.at(0.8)
@njit
def global_scalars(x):
    return SCALE * x * x + PAIR[0] * PAIR[1] * x


@PROGRAMS.at(0.8)
@PROGRAMS.at(2.0)
@njit
def global_limits(x):
    return x * x if LIMITS[0] < x < LIMITS[1] else x


def _make_scaled(table, factor):
    @njit
    def scaled(x):
        s = 0.0
        for i in range(table.size):
            s += table[i] * x ** (i + 1)
        return s * factor

    return scaled


PROGRAMS.at(0.8)(_make_scaled(np.array([1.0, 0.5, 0.25]), 3.0))


@PROGRAMS.at(floats(4))
@njit
def zip_and_tuple_unpacking(x):
    s = 0.0
    for (i, a), b in zip(enumerate(x), x[::-1]):  # noqa: B905 Numba's zip has no strict
        s += a * b * i
    return s


@PROGRAMS.at(floats(3), floats(2, seed=1))
@njit
def arrays_chosen_from_a_tuple(x, y):
    t = (x, y)
    s = 0.0
    for k in range(2):
        z = t[k]
        for i in range(z.size):
            s += z[i] ** 2 * (k + 1)
    return s


MISALIGNED = np.dtype([("flag", np.bool_), ("x", np.float64)])
FLAGGED = np.dtype([("x", np.float64), ("flag", np.int8)], align=True)
TWO_PRECISIONS = np.dtype([("a", np.float32), ("b", np.float64), ("c", np.float32)], align=True)


@PROGRAMS.at(floats(9))
@njit
def local_records_without_alignment(x):
    source, copy = np.zeros(x.size, MISALIGNED), np.zeros(x.size, MISALIGNED)
    for i in range(x.size):
        source[i].x = x[i]
        source[i].flag = i % 2 == 0
        copy[i].flag = source[i].flag
        copy[i].x = source[i].x * source[i].x
    copy[0] = source[1]
    copy[2:4] = source[3:5]
    total = 0.0
    for i in range(x.size):
        if copy[i].flag:
            total += copy[i].x
    return total


@PROGRAMS.at(floats(9))
@njit
def local_records_with_flags(x):
    source, copy = np.zeros(x.size, FLAGGED), np.zeros(x.size, FLAGGED)
    for i in range(x.size):
        source[i].x = x[i] * x[i]
        source[i].flag = i % 3
    copy[:] = source
    copy[1] = source[0]
    return (copy.x * copy.flag).sum()


@PROGRAMS.at(floats(9))
@njit
def local_records_of_two_precisions(x):
    source, copy = np.zeros(x.size, TWO_PRECISIONS), np.zeros(x.size, TWO_PRECISIONS)
    for i in range(x.size):
        source[i].b = x[i] * x[i]
    copy[1:] = source[:-1]
    copy[0] = source[3]
    return (copy.b * x).sum()


@pytest.mark.parametrize("case", PROGRAMS, ids=str)
def test_gradient(case: Case):
    case.check()
