"""Single records as arguments and results: read, written, in tuples, beside the array they lie in."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

from tests.tools.catalogue import Case, Catalogue

PROGRAMS = Catalogue()

BODY = np.dtype([("tag", np.int8), ("a", np.float64), ("b", np.float32), ("v", np.float64, (2,)), ("z", np.complex128)])
INNER = np.dtype([("x", np.float64), ("n", np.int32)], align=True)
OUTER = np.dtype([("k", np.int16), ("inner", INNER), ("y", np.float64)], align=True)


def bodies() -> np.ndarray:
    found = np.zeros(3, BODY)
    found["tag"], found["a"], found["b"] = 5, (1.5, 2.5, 3.5), (0.5, 0.25, 2.0)
    found["v"], found["z"] = [[1, 2], [3, 4], [5, 6]], (1 + 2j, 3 - 1j, 0.5j)
    return found


def nested() -> np.ndarray:
    found = np.zeros(2, OUTER)
    found["k"], found["y"] = (3, 4), (0.5, 1.5)
    found["inner"]["x"], found["inner"]["n"] = (2.0, 3.0), (2, 3)
    return found


@PROGRAMS.at(bodies()[1], 2.0)
@PROGRAMS.at(bodies().view(np.recarray)[2], 0.5)
@njit
def fields(r, x):
    return r.a * r.b * x + r.v[0] * r.v[1] * abs(r.z) + r.tag


@PROGRAMS.at(nested()[1])
@njit
def nested_fields(r):
    s = r.y
    for _ in range(r.inner.n):
        s *= r.inner.x
    return s


@PROGRAMS.at(bodies()[0], 2.0, 3)
@PROGRAMS.at(bodies()[0], 2.0, 0)
@njit
def fields_written(r, x, n):
    for _ in range(n):
        r.a = r.a * x * r.v[0]
        r.v[1] = r.a + r.v[1]
    r.tag = 7
    r.z = r.z * r.a
    return r.v[1] * r.b + r.z.imag


@PROGRAMS.at((bodies()[0], 2.0, (bodies()[1], bodies()["a"])), bodies())
@njit
def in_tuples(t, bodies):
    s = t[0].a * t[1]
    for i in range(bodies.size):
        s += t[2][0].v[0] * t[2][1][i] * bodies[i].a
    return s


@PROGRAMS.at(bodies()[0], bodies()[1], True)
@PROGRAMS.at(bodies()[0], bodies()[1], False)
@njit
def chosen(left, right, flag):
    r = left if flag else right
    return r.a * r.a * left.v[0]


@PROGRAMS.at(bodies()[0], 2.0)
@njit
def returned(r, x):
    r.a = r.a * x
    return r


@PROGRAMS.at(bodies(), 1, 2.0)
@njit
def returned_out_of_an_array(records, i, x):
    records[i].b = x * records[0].a
    return records[i]


@pytest.mark.parametrize("case", PROGRAMS, ids=str)
def test_gradient(case: Case):
    case.check()
