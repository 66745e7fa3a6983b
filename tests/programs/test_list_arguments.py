"""Lists of numbers as differentiated arguments: read, written, grown, shrunk, copied, passed on."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit
from numba.typed import List

from tests.tools.catalogue import Case, Catalogue, floats, later

PROGRAMS = Catalogue()

# Numba announces that it will type lists differently one day.
pytestmark = pytest.mark.filterwarnings("ignore::numba.NumbaPendingDeprecationWarning")


@PROGRAMS.at([1.5, 2.5, -0.5], 2.0)
@PROGRAMS.at([1.5], 2.0)
@PROGRAMS.at(later(List, [1.5, 2.5, -0.5]), 2.0)
@njit
def read(v, x):
    s = 0.0
    for i in range(len(v)):
        s += v[i] * v[-1] * x
    return s


@PROGRAMS.at([np.float32(1.5), np.float32(2.5)], np.float32(0.5))
@PROGRAMS.at(later(List, [np.float32(1.5), np.float32(2.5)]), np.float32(0.5))
@njit
def single_precision(v, x):
    return v[0] * v[1] * v[1] * x


@PROGRAMS.at([1.5 + 0.5j, -0.25j], 2.0)
@PROGRAMS.at(later(List, [1.5 + 0.5j, -0.25j]), 2.0)
@njit
def complex_items(v, x):
    v[0] *= v[1] * x
    return abs(v[0]) + v[1].imag


@PROGRAMS.at([1.0, 2.0], 2.0, 3)
@PROGRAMS.at([1.0, 2.0], 2.0, 0)
@PROGRAMS.at(later(List, [1.0, 2.0]), 2.0, 3)
@njit
def written_and_grown(v, x, n):
    for i in range(n):
        v[i] = v[i + 1] * x
        v.append(v[i] * v[0])
    s = 0.0
    for a in v:
        s += a * a
    return s


@PROGRAMS.at([1.0, 2.0, 3.0, 4.0], 2.0)
@PROGRAMS.at(later(List, [1.0, 2.0, 3.0, 4.0]), 2.0)
@njit
def shrunk(v, x):
    s = v.pop() * x
    s *= v.pop(0)
    v[1] *= s
    return s * len(v) + v[0] * v[1]


@PROGRAMS.at([1.0, 2.0, 3.0, 4.0], 2.0)
@PROGRAMS.at(later(List, [1.0, 2.0, 3.0, 4.0]), 2.0)
@njit
def inserted_and_extended(v, x):
    v.insert(1, x * v[0])
    v.extend(v[1:3])
    return v[1] * v[4] + v[5] * v[-1]


@PROGRAMS.at([1.0, 2.0, 3.0], 2.0)
@njit
def comprehension_and_copy(v, x):
    w = [a * a * x for a in v]
    u = v.copy()
    u[0] = w[2]
    return sum(w) * v[0] + u[0] * u[1]


@PROGRAMS.at([3.0, 1.0, 2.0])
@njit
def turned_round(v):
    v.reverse()
    return v[0] * 2 + v[2] * v[1] ** 2


@PROGRAMS.at([1.0, 2.0, 3.0])
@njit
def made_an_array(v):
    a = np.array(v)
    return np.sum(a * a) * v[1]


@njit(inline="never")
def _scale(v, x):
    for i in range(len(v)):
        v[i] *= x
    v.append(x)
    return v[0]


@PROGRAMS.at([1.0, 2.0], 2.0)
@PROGRAMS.at(later(List, [1.0, 2.0]), 2.0)
@njit
def handed_on(v, x):
    s = _scale(v, x)
    return s * v[1] * v[-1]


@PROGRAMS.at(([1.0, 2.0], 2.0, (floats(3), [0.5])), [4.0])
@PROGRAMS.at(later(lambda: (List([1.0, 2.0]), 2.0, (floats(3), List([0.5])))), later(List, [4.0]))
@njit
def in_tuples(t, w):
    t[0].append(w[0])
    t[2][0][1] = t[0][2] * t[1]
    w[0] = t[2][1][0] * t[2][0][0]
    return t[2][0][1] * w[0] + t[0][1]


@PROGRAMS.at([1.0, 2.0], floats(3))
@njit
def stored_in_an_array(v, a):
    out = np.empty(3)
    for i in range(3):
        out[i] = v[i % 2] * a[i]
    return out


@pytest.mark.parametrize("case", PROGRAMS, ids=str)
def test_gradient(case: Case):
    case.check()
