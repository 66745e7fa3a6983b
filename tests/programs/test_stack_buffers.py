"""Arrays of a size that only the run knows, made in loops: in a buffer where they are small, else in memory."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numba import njit, prange

import irad
from irad.testing.allocations import allocations
from tests.tools.catalogue import Case, Catalogue, floats

PROGRAMS = Catalogue()
FITS, TOO_LARGE = 16, 17  # doubles


@PROGRAMS.at(floats(5, 3))
@PROGRAMS.at(floats(4, FITS))
@PROGRAMS.at(floats(4, TOO_LARGE))
@PROGRAMS.at(np.empty((3, 0)))
@PROGRAMS.at(np.empty((0, 3)))
@njit
def distances_of_points(points):
    total = 0.0
    for i in range(points.shape[0]):
        for j in range(i):
            d = points[i] - 2.0 * points[j]
            square = 0.0
            for k in range(d.size):
                square += d[k] * d[k]
            total += math.sqrt(square + 1.0)
    return total


@PROGRAMS.at(floats(6), np.array([0, 3, 16, 17, 40]))
@njit
def of_many_sizes(x, sizes):
    """Buffers and memory in turn: what one array left behind must not be in the next."""
    total = 0.0
    for n in sizes:
        a = np.zeros(n)
        for i in range(n):
            a[i] += math.sin(x[i % 6]) * (i + 1)
        if n > 2:
            total += a[1] * a[2] ** 2
        for i in range(n):
            total += a[i] * a[i] * x[0]
    return total


@PROGRAMS.at(floats(5), 4)
@PROGRAMS.at(floats(5), 40)
@njit
def overwritten_in_place(x, n):
    total = 0.0
    for i in range(x.size):
        a = np.full(n, x[i])
        for k in range(n):
            a[k] = math.sin(a[k]) * (k + 1)
        for k in range(1, n):
            a[k] *= a[k - 1]
        total += a[n - 1] * a[0]
    return total


@PROGRAMS.at(floats(5, 3))
@PROGRAMS.at(floats(5, 12))
@njit
def chosen_among_two(points):
    """A variable that is one array or another: which of them has a buffer is not known where it is read."""
    total = 0.0
    for i in range(1, points.shape[0]):
        d = points[i] * points[i - 1]
        if d[0] > 1.5:
            d = d / points[i]
        total += d[0] * d[1] + d[2] ** 2
    return total


@PROGRAMS.at(floats(4, 3))
@PROGRAMS.at(floats(4, 10))
@njit
def carried_to_the_next_iteration(points):
    before = points[0] * 1.0
    total = 0.0
    for i in range(1, points.shape[0]):
        now = points[i] * before[0]
        total += now[0] * before[1]
        before = now
    return total + before[2]


@PROGRAMS.at(floats(4, 3))
@PROGRAMS.at(floats(4, 10))
@njit
def views_of_it(points):
    total = 0.0
    for i in range(points.shape[0]):
        d = points[i] ** 2
        tail, back = d[1:], d[::-1]
        tail[0] *= points[i, 0]
        for k in range(back.size):
            total += back[k] * d[0]
        total += tail[1] ** 3
    return total


@PROGRAMS.at(floats(4, 3))
@PROGRAMS.at(floats(4, 10))
@njit
def read_again_and_again(points):
    """Each value that is read goes on the tape: this array stays in memory."""
    total = 0.0
    for i in range(points.shape[0]):
        d = np.sin(points[i])
        for _ in range(30):
            for k in range(d.size):
                total += d[k] * d[0] * points[i, k]
    return total


@PROGRAMS.at(floats(3, 4))
@PROGRAMS.at(floats(3, 4).astype(np.float32))
@PROGRAMS.at(floats(3, 4) * (1.0 + 0.5j))
@njit
def of_each_kind(points):
    total = 0.0
    for i in range(points.shape[0]):
        d = points[i] * points[i - 1] + points[0]
        for k in range(d.size):
            total += (d[k] * d[k]).real
    return total


@PROGRAMS.at(floats(4, 3), 3)
@PROGRAMS.at(floats(4, 3), 1)
@njit
def while_it_lasts(points, most):
    i, total = 0, 0.0
    while i < points.shape[0]:
        d = points[i] - points[(i + 1) % points.shape[0]]
        i += 1
        if d[0] > 0.3:
            continue
        total += d[1] * d[2]
        if i > most:
            return total * d[0]
    return total


@njit
def _between(a, b):
    d = a - b
    return d[0] * d[1] - d[2]


@PROGRAMS.at(floats(5, 3))
@njit
def in_a_function_that_is_called(points):
    total = 0.0
    for i in range(1, points.shape[0]):
        total += _between(points[i], points[i - 1]) * _between(points[i - 1], points[0])
    return total


@pytest.mark.parametrize("case", PROGRAMS, ids=str)
def test_gradient(case: Case):
    case.check()


def test_no_array_is_made_where_all_fit():
    @njit
    def run(points):
        return irad.grad(distances_of_points)(points)

    for width, most in ((3, 10), (FITS, 10), (TOO_LARGE, None)):
        points = floats(20, width)
        run(points)
        with allocations() as count:
            run(points)
            made = count().made
        assert (made < most) if most is not None else (made >= 20 * 19 // 2), (width, made)


@njit
def raising(points, limit):
    total = 0.0
    for i in range(points.shape[0]):
        d = points[i] * points[i]
        if d[0] > limit:
            raise ValueError("beyond the limit")
        total += d[0] * d[1]
    return total


@pytest.mark.parametrize("width", [3, 20])
def test_an_exception_leaves_no_memory(width: int):
    points, derivative = floats(4, width), irad.grad(raising)
    expected = np.zeros((4, width))
    expected[:, 0] = 2.0 * points[:, 0] * points[:, 1] ** 2
    expected[:, 1] = 2.0 * points[:, 1] * points[:, 0] ** 2
    np.testing.assert_allclose(derivative(points, 99.0), expected, rtol=1e-13)
    with pytest.raises(ValueError, match="beyond the limit"):
        derivative(points, 1.0)
    with allocations() as count:
        for _ in range(5):
            derivative(points, 99.0)
            with pytest.raises(ValueError, match="beyond the limit"):
                derivative(points, 1.0)
        assert count().kept == 0


@njit
def kept_elsewhere(points):
    kept = [points[0] * 1.0]
    for i in range(1, points.shape[0]):
        kept.append(points[i] * points[i - 1])
    total = 0.0
    for each in kept:
        total += each[0] * each[1]
    return total


def test_arrays_that_a_list_keeps_have_memory_of_their_own():
    points = floats(5, 3)
    found = irad.grad(kept_elsewhere)(points)
    np.testing.assert_allclose(found, irad.grad(kept_elsewhere, options=irad.Options(plan="save_all"))(points), 1e-13)
    irad.testing.check_gradient(kept_elsewhere, points)


@njit(parallel=True)
def in_lanes(points):
    total = 0.0
    for i in prange(points.shape[0]):
        d = points[i] * points[0]
        total += d[0] * d[1] + d[2] ** 2
    return total


@pytest.mark.parametrize("width", [3, 12])
def test_lanes_have_buffers_of_their_own(width: int):
    points = floats(50, width)
    serial = njit(in_lanes.py_func)
    np.testing.assert_allclose(irad.grad(in_lanes)(points), irad.grad(serial)(points), rtol=1e-12)


@pytest.mark.parametrize("width", [3, 12])
def test_second_derivatives(width: int):
    points = floats(3, width)
    of_buffers = irad.hvp(distances_of_points)(points[::-1].copy(), points)
    with_memory = irad.hvp(distances_of_points, options=irad.Options(plan="save_all"))(points[::-1].copy(), points)
    np.testing.assert_allclose(of_buffers, with_memory, rtol=1e-12, atol=1e-12)


def test_in_place_where_arguments_overlap():
    """What is written through one argument is read through another, before and after an array in the buffer."""

    @njit
    def shifted(a, b):
        total = 0.0
        for i in range(1, a.shape[0]):
            d = a[i] * b[i - 1]
            for k in range(d.size):
                b[i, k] = d[k] * a[i - 1, k]
            total += b[i, 0] * d[1]
        return total

    memory = floats(6, 3)
    for a, b in ((memory[:5], memory[1:]), (memory[1:], memory[:5]), (memory[:5], floats(5, 3, seed=3))):
        copies = [each.copy() for each in (memory, a, b)]
        found = irad.grad(shifted, argnums=(0, 1))(a, b)
        memory[:] = copies[0]
        b[:] = copies[2]
        expected = irad.grad(shifted, argnums=(0, 1), options=irad.Options(plan="save_all"))(a, b)
        memory[:] = copies[0]
        b[:] = copies[2]
        np.testing.assert_allclose(found, expected, rtol=1e-12)
