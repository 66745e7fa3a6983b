"""Loops that read the same elements in each iteration of the loop around them, and overwrite them later."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

import irad
from tests.tools.catalogue import Case, Catalogue, floats

PROGRAMS = Catalogue()


@PROGRAMS.at(floats(4), floats(3, 4), 3)
@PROGRAMS.at(floats(4), floats(0, 4), 3)
@PROGRAMS.at(floats(4), floats(3, 4), 0)
@njit
def recurrent(x, w, steps):
    state, sums = x.copy(), np.zeros(4)
    for _ in range(steps):
        for i in range(w.shape[0]):
            sums[i] = 0.1
            for j in range(state.size):
                sums[i] += w[i, j] * state[j] * state[j]
        for i in range(4):
            state[i] = np.tanh(sums[i] + state[i])
    return np.sum(state)


@PROGRAMS.at(floats(6), 2)
@PROGRAMS.at(floats(6), -1)
@njit
def behind_a_condition(x, flag):
    state, total = x.copy(), 0.0
    for step in range(3):
        size = state.size if flag > 0 else np.int64(1) << 60
        for i in range(4):
            total += state[i] * 0.5
            if flag > 0:
                for j in range(1, size, 2):
                    total *= 1.0 + 0.1 * state[j] * i
        state[1 + step] *= 1.1
    return total


@PROGRAMS.at(floats(5), floats(3))
@njit
def read_in_some_iterations(x, y):
    state, total = x.copy(), 0.0
    for step in range(3):
        for i in range(3):
            for j in range(5):
                if (i + j) % 2:
                    total += state[j] ** 2 * y[i]
                else:
                    total *= 1.0 + 0.1 * state[4 - j] * y[i]
        for j in range(5):
            state[j] = state[j] * (total + step)
    return total


@PROGRAMS.at(floats(6), floats(3))
@njit
def written_between(x, y):
    state, total = x.copy(), 0.0
    for i in range(y.size):
        for j in range(state.size):
            total += state[j] * state[j] * y[i]
        state[2 * i] *= total
    return total


@PROGRAMS.at(floats(8), floats(3))
@njit
def offsets_and_lengths_that_change(x, y):
    state, total = x.copy(), 0.0
    for _ in range(2):
        for i in range(3):
            for j in range(5):
                total += state[i + j] ** 2 * y[i]
            for j in range(i, 6):
                total += state[j] ** 2 * y[i]
            for j in range(7, 2, -2):
                total += state[j] ** 2 * y[i] * state[0]
        for j in range(8):
            state[j] = 0.5 * state[j] * total
    return total


@PROGRAMS.at(floats(9), np.array([0.1, 0.7, 0.3, 0.5]))
@njit
def from_where_another_loop_stopped(x, y):
    state, total = x.copy(), 0.0
    for _ in range(2):
        for i in range(y.size):
            k = 0
            while y[i] > 0.2 * k:
                k += 1
            for j in range(x.size - 4):
                total += state[j + k] ** 2 * y[i]
        for j in range(x.size):
            state[j] = 0.5 * state[j] * total
    return total


@PROGRAMS.at(floats(5), floats(3))
@njit
def left_in_the_middle(x, y):
    state, total = x.copy(), 0.0
    for _ in range(3):
        for i in range(3):
            for j in range(5):
                total += state[j] ** 2 * y[i]
            if total > 40.0:
                break
            for j in range(5):
                total += state[j] ** 3 * y[i]
        for j in range(5):
            state[j] = 1.1 * state[j] ** 2
    return total


@njit
def wide(x, w, steps):
    state = x.copy()
    for _ in range(steps):
        total = 0.0
        for i in range(w.shape[0]):
            for j in range(state.size):
                total += w[i, j] * state[j] * state[j]
        for j in range(state.size):
            state[j] = np.tanh(state[j] + total)
    return np.sum(state)


def numbers_saved(function, *args) -> int:
    """How many numbers the tape of a call holds that are read in loops."""
    report = irad.tape_report(function, *args, argnums=0)
    return sum(use.slots for use in report.uses if use.storage == "slab" and use.bytes == 8 * use.slots > 8 * 8)


@pytest.mark.parametrize("rows", [3, 300])
def test_the_tape_does_not_grow_with_the_loop_around(rows):
    assert numbers_saved(wide, np.linspace(0.1, 0.9, 40), np.full((rows, 40), 0.01), 5) == 5 * (40 + 40)


def test_what_the_loop_around_writes_is_saved_each_time():
    assert numbers_saved(written_between, np.linspace(0.1, 0.9, 6), np.ones(3)) == 18


@pytest.mark.parametrize("case", PROGRAMS, ids=str)
def test_gradient(case: Case):
    case.check()
