"""One tile of a product, with factors at distances and at places of a table, in both precisions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import njit

from irad.nn.tiles import ROWS, as_places, lanes, multiply_tile


@njit
def by_distances(keep, count, a, b, c):
    multiply_tile(keep, count, a, 1, ROWS + 2, 1, b, 2, lanes(b), c, 3, lanes(b) + 1)
    return lanes(b)


@njit
def by_tables(keep, rows, columns, a, b, c):
    multiply_tile(keep, columns.size, a, 1, rows, columns, b, 2, columns, c, 3, lanes(b) + 1)
    return lanes(b)


@njit
def with_places(room):
    places = as_places(room, 2)
    places[0], places[1] = -1, 2
    return places.sum()


def _tile(factors: Any, right: Any, c: Any, keep: bool, width: int) -> Any:
    wanted = c.copy()
    part = np.lib.stride_tricks.as_strided(
        wanted[3:], (ROWS, width), ((width + 1) * c.itemsize, c.itemsize), writeable=True
    )
    part[:] = factors @ right + (part if keep else 0.0)
    return wanted


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("count", [0, 1, 5])
def test_a_tile_and_nothing_else_is_written(dtype: Any, keep: bool, count: int):
    random = np.random.default_rng(count)
    a, b, c = (random.standard_normal(size).astype(dtype) for size in (100, 400, 600))
    if not keep:
        c[3] = np.nan  # is not read
    by_distance, by_table = c.copy(), c.copy()
    width = by_distances(keep, count, a, b, by_distance)
    rows, columns = np.arange(ROWS) * (ROWS + 2), np.arange(count)
    left = a[1 + rows[:, None] + columns]
    right = b[2 + width * columns[:, None] + np.arange(width)]
    tolerance = {"rtol": 1e-5 if dtype == np.float32 else 1e-13, "atol": 1e-5 if dtype == np.float32 else 1e-13}
    np.testing.assert_allclose(by_distance, _tile(left, right, c, keep, width), **tolerance)
    places = random.integers(0, 50, count)
    by_tables(keep, rows[::-1].copy(), places, a, b, by_table)
    left, right = a[1 + rows[::-1, None] + places], b[2 + places[:, None] + np.arange(width)]
    np.testing.assert_allclose(by_table, _tile(left, right, c, keep, width), **tolerance)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_numbers_as_places(dtype: Any):
    room = np.zeros(4, dtype)
    assert with_places(room) == 1
    assert room.view(np.int64)[:2].tolist() == [-1, 2]
