"""Arrays that a loop makes in each iteration: read in the next, changed, rotated, kept."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit
from numba.typed import List

from tests.tools.catalogue import Case, Catalogue, floats

PROGRAMS = Catalogue()


@PROGRAMS.at(floats(5))
@njit
def new_array_each_step(x):
    u = x.copy()
    for step in range(4):
        v = np.empty(5)
        for i in range(5):
            v[i] = u[i] * u[i - 1] + step
            v[i] *= v[i - 1] if i else 0.5
        u = v
    return np.sum(u)


@PROGRAMS.at(floats(5))
@njit
def new_arrays_rotated_and_changed(x):
    u, v = x.copy(), x * x
    for step in range(4):
        w = np.zeros(5)
        for i in range(5):
            w[i] += u[i] * v[4 - i]
            u[i] *= v[i]
        if step == 1:
            v[2] = u[3] * v[2]
        u, v = v, w
    return np.sum(u * v)


@PROGRAMS.at(floats(5))
@njit
def new_array_in_some_steps(x):
    u = x * 1.5
    for step in range(5):
        if step % 2:
            v = np.empty(5)
            for i in range(5):
                v[i] = u[i] * u[4 - i]
            u = v
        for i in range(5):
            u[i] = u[i] * u[i] - 0.1 * step
    return np.sum(u)


@PROGRAMS.at(floats(5))
@njit
def new_arrays_that_are_kept_in_a_list(x):
    kept = [x.copy()]
    for step in range(3):
        v = np.empty(5)
        for i in range(5):
            v[i] = kept[step][i] * kept[0][4 - i]
        kept.append(v)
        for i in range(5):
            kept[step][i] *= v[i]
    return np.sum(kept[1] * kept[3])


@PROGRAMS.at(floats(5))
@njit
def new_array_from_the_last_by_a_view(x):
    u = x.copy()
    for _ in range(3):
        v = np.empty(6)
        w = v[1:]
        for i in range(5):
            w[i] = u[i] * u[4 - i]
        v[0] = w[2]
        for i in range(5):
            v[i] *= u[i]
        u = w
    return np.sum(u)


@PROGRAMS.at(floats(3))
@njit
def new_list_each_step(x):
    old, total = List([x[0], x[1], x[2]]), 0.0
    for _ in range(3):
        new = List([0.0, 0.0, 0.0])
        for i in range(3):
            total += old[i] ** 2
            new[i] = old[2 - i] * old[i] + 0.1
            old[i] = 0.5 * old[i] + 0.01 * total
            total += old[i] ** 3
        old = new
    return total


@pytest.mark.parametrize("case", PROGRAMS, ids=str)
def test_gradient(case: Case):
    case.check()
