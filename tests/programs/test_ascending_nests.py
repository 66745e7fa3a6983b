"""Nests whose rows may run upwards in the reverse sweep: fields that are exchanged, shared, or overlap."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit
from numpy.lib.stride_tricks import as_strided

from tests.programs.test_gathered_additions import agrees

_RANDOM = np.random.default_rng(11)


@njit(error_model="numpy")
def waves(old, now, speed, step, steps):
    """Fourth order in space, the oldest field overwritten in place."""
    for _ in range(steps):
        for i in range(2, now.shape[0] - 2):
            for j in range(2, now.shape[1] - 2):
                near = now[i - 1, j] + now[i + 1, j] + now[i, j - 1] + now[i, j + 1]
                far = now[i - 2, j] + now[i + 2, j] + now[i, j - 2] + now[i, j + 2]
                bent = 1.3 * near - 0.08 * far - 5.0 * now[i, j]
                old[i, j] = 2.0 * now[i, j] - old[i, j] + (speed[i, j] * step) ** 2 * bent
        old, now = now, old
    return (now**2).sum() + 0.5 * old[3, 3]


@njit(error_model="numpy")
def waves_in_views(field, speed, step, steps, shift):
    return waves(field[: field.shape[0] - shift], field[shift:], speed, step, steps)


def test_fields_that_are_exchanged():
    old, now, speed = _RANDOM.standard_normal((3, 9, 40))
    agrees(waves, old, now, speed, 0.4, 3)
    agrees(waves, old[:, ::2], now[:, 1::2], speed[:, ::2], 0.4, 3)
    agrees(waves, old[::-1], now[:, ::-1], speed, 0.4, 2)
    agrees(waves, old[:4], now[:4], speed[:4], 0.4, 1)


@pytest.mark.parametrize("shift", [0, 1, 2, 5, 9])
def test_fields_that_share_rows(shift: int):
    field, speed = _RANDOM.standard_normal((9 + shift, 20)), _RANDOM.standard_normal((9, 20))
    agrees(waves_in_views, field, speed, 0.4, 2, shift)


@njit(error_model="numpy")
def transposed(x, y):
    """What is overwritten row by row is read column by column."""
    for i in range(1, x.shape[0] - 1):
        for j in range(1, x.shape[1] - 1):
            x[i, j] = 0.5 * x[i, j] * x[j, i] + y[i, j - 1] * y[i, j + 1]
    return (x**2).sum()


@njit(error_model="numpy")
def from_the_row_before(x, y):
    for i in range(1, x.shape[0]):
        for j in range(1, x.shape[1] - 1):
            x[i, j] = 0.5 * x[i, j] * x[i - 1, j] + y[i, j - 1] * y[i, j + 1]
    return (x**2).sum()


@njit(error_model="numpy")
def by_diagonals(x, y):
    """Rows and diagonals of one array, whose strides differ."""
    n, m = y.shape
    for i in range(n):
        for j in range(1, m - 1):
            x[i * m + j] = x[i * (m + 1) + j + 2] * y[i, j - 1] * y[i, j + 1] - 0.5 * x[i * m + j]
    return (x**2).sum()


@pytest.mark.parametrize("function", [transposed, from_the_row_before], ids=lambda f: f.__name__)
def test_rows_that_need_others(function):
    agrees(function, *_RANDOM.standard_normal((2, 12, 12)))


def test_accesses_of_one_array_with_different_strides():
    y = _RANDOM.standard_normal((7, 11))
    agrees(by_diagonals, 0.5 * _RANDOM.standard_normal(7 * 12 + 11 + 2), y)


@njit(error_model="numpy")
def in_a_window(x, y, by):
    """Rows that begin ``by`` elements after each other: they overlap if they are longer than that."""
    rows = as_strided(x, y.shape, (by * x.itemsize, x.itemsize))
    for i in range(y.shape[0]):
        for j in range(1, y.shape[1] - 1):
            rows[i, j] = 0.5 * rows[i, j] * y[i, j - 1] + y[i, j + 1] * y[i, j]
    return (x**2).sum()


@pytest.mark.parametrize("by", [1, 3, 11, 12, 20])
def test_rows_that_overlap(by: int):
    y = _RANDOM.standard_normal((6, 12))
    agrees(in_a_window, _RANDOM.standard_normal(6 * 20), y, by)


@njit(error_model="numpy")
def diffusion(a, b, rate, steps):
    for _ in range(steps):
        for i in range(1, a.shape[0] - 1):
            for j in range(1, a.shape[1] - 1):
                for k in range(1, a.shape[2] - 1):
                    around = a[i - 1, j, k] + a[i + 1, j, k] + a[i, j - 1, k] + a[i, j + 1, k]
                    b[i, j, k] = a[i, j, k] + rate[i, j, k] * (
                        around + a[i, j, k - 1] + a[i, j, k + 1] - 6.0 * a[i, j, k]
                    )
        a, b = b, a
    return (a**2).sum()


def test_three_dimensions():
    a, b, rate = _RANDOM.standard_normal((3, 5, 6, 17))
    agrees(diffusion, a, b, 0.1 * rate, 3)
    agrees(diffusion, a[:, ::-1], b[:, :, ::-1], 0.1 * rate, 2)
    agrees(diffusion, a[:, :2], b[:, :2], rate[:, :2], 2)
