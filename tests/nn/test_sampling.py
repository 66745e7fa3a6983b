"""grid_sample and imrotate: against a loop and NNlib's examples, by images, by points and by the angle."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from numba import njit

from irad import nn
from tests.nn.checks import check


def _reference(x: Any, grid: Any, mode: str, padding_mode: str, align_corners: bool) -> Any:
    sizes = np.array(x.shape[2:])
    places = (grid[..., ::-1] + 1) * (sizes - 1) / 2 if align_corners else ((grid[..., ::-1] + 1) * sizes - 1) / 2
    places = np.clip(places, 0, sizes - 1) if padding_mode == "border" else places
    places = np.rint(places) if mode == "nearest" else places
    y = np.zeros((*x.shape[:2], *grid.shape[1:-1]))
    for n, *at in itertools.product(*map(range, grid.shape[:-1])):
        place = places[(n, *at)]
        for corner in itertools.product((0, 1), repeat=len(sizes)):
            element = np.floor(place).astype(int) + corner
            if (element >= 0).all() and (element < sizes).all():
                weight = np.prod(1 - np.abs(place - element))
                y[(n, slice(None), *at)] += weight * x[(n, slice(None), *element)]
    return y


OPTIONS = list(itertools.product(("bilinear", "nearest"), ("zeros", "border"), (True, False)))


@pytest.mark.parametrize("space", [2, 3])
def test_values(space: int):
    random = np.random.default_rng(0)
    x = random.standard_normal((2, 3, *(3, 4, 2)[:space]))
    grid = random.uniform(-1.6, 1.6, (2, *(2, 3, 2)[:space], space))
    for options in OPTIONS:
        np.testing.assert_allclose(nn.grid_sample(x, grid, *options), _reference(x, grid, *options), atol=1e-13)


def test_every_mode_and_order():
    random = np.random.default_rng(1)
    x, grid = random.standard_normal((2, 2, 3, 4)), random.uniform(-1.5, 1.5, (2, 2, 3, 2))
    for mode, padding_mode, align_corners in OPTIONS:
        if mode == "bilinear":
            check(nn.grid_sample, x, grid, mode, padding_mode, align_corners, active=(0, 1))
        else:
            check(nn.grid_sample, x, grid, mode, padding_mode, align_corners, active=(0, 1), second=False)


@pytest.mark.parametrize("method", ["bilinear", "nearest"])
def test_rotation_as_in_nnlib(method: str):
    x = np.zeros((1, 1, 4, 4))
    x[0, 0, 1, 1] = 1.0
    wanted = np.zeros((4, 4))
    wanted[1, 3] = 1.0
    np.testing.assert_allclose(nn.imrotate(x, math.radians(90), method)[0, 0], wanted, atol=1e-15)
    np.testing.assert_allclose(nn.imrotate(x, math.radians(90), method, (1, 1)), x, atol=1e-15)
    x = np.zeros((1, 1, 3, 3), np.float32)
    x[0, 0, 0, 1] = 1.0
    wanted = [[0, 0.207107, 0], [0, 0, 0.207107], [0, 0, 0]] if method == "bilinear" else [[0, 0, 1], [0] * 3, [0] * 3]
    y = nn.imrotate(x, math.radians(45), method)
    assert y.dtype == np.float32
    np.testing.assert_allclose(y[0, 0], wanted, atol=1e-6)


def test_rotation_by_image_and_angle():
    @njit
    def turned(x, theta):
        return nn.imrotate(x, theta[0], "bilinear", (1.3, 0.9))

    check(turned, np.random.default_rng(2).standard_normal((1, 1, 3, 4)), np.array([0.4]), active=(0, 1), second=False)


def test_what_lies_outside_or_has_no_weight():
    x = np.array([[[[1.0, np.inf], [2.0, np.nan]]]])
    grid = np.array([[[[-1.0, -1.0], [-1.0, 0.0], [np.nan, 0.0], [-9e99, 9e99]]]])
    assert nn.grid_sample(x, grid).tolist() == [[[[1.0, 1.5, 0.0, 0.0]]]]
    assert nn.grid_sample(np.ones((0, 1, 2, 2)), np.ones((0, 3, 3, 2))).shape == (0, 1, 3, 3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: nn.grid_sample(np.ones((1, 1, 2, 2)), np.ones((1, 1, 1, 3))), "points with 3 coordinates"),
        (lambda: nn.grid_sample(np.ones((1, 1, 2, 2)), np.ones((2, 1, 1, 2))), "1 images and 2 grids"),
        (lambda: nn.grid_sample(np.ones((1, 1, 2, 2)), np.ones((1, 1, 1, 2)), "cubic"), "mode: cubic is neither"),
        (lambda: nn.imrotate(np.ones((1, 2, 2, 2)), 1.0, "linear"), "method: linear is neither bilinear nor nearest"),
    ],
)
def test_what_is_refused(call: Any, message: str):
    with pytest.raises(ValueError, match=message):
        call()
