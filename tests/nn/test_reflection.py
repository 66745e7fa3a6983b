"""grid_sample with mirrors at the ends: values, derivatives, and what is not a point."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from irad import nn
from tests.nn.checks import gradient_of, scalar_of


def _mirrored(place: float, size: int, align_corners: bool) -> float:
    """By walking from mirror to mirror."""
    low, high = (0.0, size - 1.0) if align_corners else (-0.5, size - 0.5)
    while high > low and not low <= place <= high:
        place = 2.0 * (low if place < low else high) - place
    return min(max(place if high > low else 0.0, 0.0), size - 1.0)


def _reference(x: Any, grid: Any, align_corners: bool) -> Any:
    y = np.zeros((*x.shape[:2], *grid.shape[1:3]))
    for n, i, j in np.ndindex(grid.shape[:3]):
        corners = []
        for size, at in zip(x.shape[:1:-1], grid[n, i, j], strict=True):
            place = (at + 1) * (size - 1) / 2 if align_corners else ((at + 1) * size - 1) / 2
            place = _mirrored(place, size, align_corners)
            low = min(int(place), size - 1)
            corners.append(((low, 1 - place + low), (min(low + 1, size - 1), place - low)))
        for column, a in corners[0]:
            for row, b in corners[1]:
                y[n, :, i, j] += a * b * x[n, :, row, column]
    return y


@pytest.mark.parametrize("align_corners", [True, False])
def test_value_and_gradient(align_corners: bool):
    """One compiled gradient serves both; points lie up to three images away, and one axis has one element only."""
    random = np.random.default_rng(0)
    grid = random.uniform(-7.0, 7.0, (2, 3, 4, 2))
    given = "bilinear", "reflection", align_corners
    for shape in ((2, 2, 4, 5), (2, 1, 1, 3)):
        x = random.standard_normal(shape)
        y = nn.grid_sample(x, grid, *given)
        np.testing.assert_allclose(y, _reference(x, grid, align_corners), rtol=1e-11, atol=1e-12)
        weights, loss = random.standard_normal(y.shape), scalar_of(nn.grid_sample, 5)
        by_x, by_grid = gradient_of(nn.grid_sample, 5, (0, 1))(weights, x, grid, *given)[1]
        along, step = (random.standard_normal(x.shape), random.standard_normal(grid.shape)), 1e-6
        above, below = (loss(weights, x + s * along[0], grid + s * along[1], *given) for s in (step, -step))
        slope = (by_x * along[0]).sum() + (by_grid * along[1]).sum()
        np.testing.assert_allclose(slope, (above - below) / (2 * step), rtol=1e-6)


def test_the_nearest_element_and_what_is_no_point():
    x = np.arange(4.0).reshape(1, 1, 1, 4)
    grid = np.array([[[[-1.6, 0.0], [1.3, 0.0], [np.nan, 0.0]]]])
    found = nn.grid_sample(x, grid, "nearest", "reflection", False)
    np.testing.assert_array_equal(found, [[[[1.0, 3.0, 0.0]]]])


def test_another_word_is_refused():
    with pytest.raises(ValueError, match="padding_mode: mirror is neither zeros nor border nor reflection"):
        nn.grid_sample(np.ones((1, 1, 2, 2)), np.zeros((1, 1, 1, 2)), "bilinear", "mirror")
