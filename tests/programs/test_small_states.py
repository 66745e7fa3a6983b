"""States of integrators: arrays of few elements in the place of which each step puts others, whole and in slices."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numba import njit, prange

import irad
from irad.testing.allocations import allocations
from tests.tools.catalogue import Case, Catalogue, floats

PROGRAMS = Catalogue()


@njit
def pull(y, p):
    """Acceleration of a body in a field; positions are first, velocities follow."""
    position, velocity = y[0:3], y[3:6]
    square = np.sum(position * position) + 0.1
    out = np.empty(6)
    out[0:3] = velocity
    out[3:6] = -p[0] * position / (square * math.sqrt(square)) - p[1] * velocity
    return out


@PROGRAMS.at(floats(6), floats(2), 0)
@PROGRAMS.at(floats(6), floats(2), 4)
@njit
def body(start, p, steps):
    y = start.copy()
    for _ in range(steps):
        half = y + 0.05 * pull(y, p)
        y = y + 0.1 * pull(half, p)
    return np.sum(y**2)


@njit
def chain(y, p):
    out = np.empty(y.size)
    for i in range(y.size):
        out[i] = p[i] * y[i - 1] - y[0] * y[i]
    return out


@PROGRAMS.at(np.empty(0), np.empty(0), 2)
@PROGRAMS.at(floats(16), floats(16), 3)
@PROGRAMS.at(floats(17), floats(17), 3)
@PROGRAMS.at(floats(3), floats(3), 4)
@njit
def chain_of_any_length(start, p, steps):
    y = start
    for _ in range(steps):
        half = y + 0.05 * chain(y, p)
        y = y + 0.1 * chain(half, p)
    return np.sum(y**2)


@njit
def swing(y, p):
    """Slopes of two oscillators; LLVM makes a flag of the counter of so short a loop, as it asks for it again."""
    out = np.empty(4)
    out[:2] = y[2:4]
    for i in range(2):
        force = y[i]
        if i > 0:
            force += 0.5 * (y[i] - y[i - 1])
        out[2 + i] = -p[0] * (force + 0.3 * force**3) - p[1] * y[2 + i]
    return out


@PROGRAMS.at(floats(4), floats(2), 0)
@PROGRAMS.at(floats(4), floats(2), 3)
@njit
def oscillators(start, p, steps):
    y = start.copy()
    for _ in range(steps):
        y = y + 0.1 * swing(y, p)
    return y[0] * y[3] + y[1] ** 2


@PROGRAMS.at(floats(7))
@njit
def of_lengths_that_change(x):
    """From a buffer to memory and back; elements that are written while one of them is read again and again."""
    total = 0.0
    for k in range(1, x.size):
        w = np.zeros((k * 7) % 23)
        for i in range(w.size):
            w[i] += x[i % k] + 0.1 * w[i // 2] * x[k]
        v = w * x[k]
        for i in range(v.size):
            total += v[0] * v[i]
    return total


@PROGRAMS.at(floats(6))
@njit
def slices_that_overlap(x):
    """Of one array, under names that two arrays may have, and of one that was made before the other's last step."""
    total, kept = 0.0, x[:4]
    for k in range(x.size):
        a = np.empty(6)
        a[:] = x * x[k]
        a[1:] = a[:-1]
        a[:3] = a[2:5] * x[k]
        tail = a[1:] if k % 2 else x[1:]
        a[:5] = tail
        a[2:6] = kept
        kept = a[1:5]
        a[::-1][:2] = a[:2]
        a[:4] = kept
        total += a[1] * a[3] * kept[2] + np.sum(a)
    return total


@PROGRAMS.at(floats(4))
@njit
def rows_that_overlap(x):
    total, last = 0.0, np.zeros((3, 4))
    for k in range(x.size):
        a = np.empty((3, 4))
        a[0] = x
        a[1] = a[0] * x[k]
        a[2] = last[1]
        a[1:] = a[:2]
        a[:, 1:] = a[:, :3]
        last[0] = a[2]
        last[1:] = last[:2]
        if k == 2:
            last = a
        total += np.sum(a[1] * a[2])
    return total + last[2, 3]


@njit(parallel=True)
def trajectories(starts, p):
    found = np.zeros(starts.shape[0])
    for e in prange(starts.shape[0]):
        y = starts[e].copy()
        for _ in range(3):
            y = y + 0.1 * pull(y, p)
        found[e] = y[0] * y[4]
    return np.sum(found)


PROGRAMS.at(floats(5, 6), floats(2))(trajectories)


@pytest.mark.parametrize("case", PROGRAMS, ids=str)
def test_gradient(case: Case):
    case.check()


def test_states_of_another_size_raise_as_before():
    derivative = irad.grad(body)
    for size in (5, 7, 1):
        with pytest.raises(ValueError, match=r"broadcast|cannot assign"):
            body(floats(size), floats(2), 2)
        with pytest.raises(ValueError, match=r"broadcast|cannot assign"):
            derivative(floats(size), floats(2), 2)
    with allocations() as count:
        derivative(floats(6), floats(2), 2)
        assert count().kept == 0


@pytest.mark.parametrize(
    ("function", "sizes", "most"),
    [
        (body, (6, 2), 0),
        (oscillators, (4, 2), 0),
        (chain_of_any_length, (16, 16), 2),  # the state changes hands, and has a shadow
    ],
    ids=["body", "oscillators", "chain"],
)
def test_a_step_allocates_nothing_but_a_state_of_unknown_length(function, sizes, most: int):
    gradient = irad.grad(function)
    args, made = [floats(size) for size in sizes], []
    for steps in (1, 101):
        gradient(*args, steps)
        with allocations() as count:
            gradient(*args, steps)
            made.append(count().made)
    assert (made[1] - made[0]) / 100 <= most


def test_numbers_of_other_kinds():
    @njit
    def single(start, steps):
        y = start.copy()
        for _ in range(steps):
            out = np.empty(4, dtype=np.float32)
            out[:2] = y[2:4]
            out[2:4] = y[:2] * y[:2]
            y = y + np.float32(0.1) * out
        return y[0] * y[3]

    start = floats(4).astype(np.float32)
    oracle = irad.grad(single, options=irad.Options(plan="save_all"))
    np.testing.assert_allclose(irad.grad(single)(start, 5), oracle(start, 5), rtol=1e-5)

    @njit
    def waves(start, steps):
        z = start + 0.5j * start
        for _ in range(steps):
            out = np.empty(4, dtype=np.complex128)
            out[:2] = z[2:4]
            out[2:4] = z[:2] * z[2:4]
            z = z + (0.1 + 0.1j) * out
        return abs(z[0] * z[3]) ** 2

    start = floats(4)
    oracle = irad.grad(waves, options=irad.Options(plan="save_all"))
    np.testing.assert_allclose(irad.grad(waves)(start, 5), oracle(start, 5), rtol=1e-12)


def test_second_derivatives():
    start, p = floats(6), floats(2)
    of_values = irad.hessian(body)(start, p, 3)
    with_memory = irad.hessian(body, options=irad.Options(plan="save_all"))(start, p, 3)
    np.testing.assert_allclose(of_values, with_memory, rtol=1e-11, atol=1e-12)
