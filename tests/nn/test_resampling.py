"""Padding, upsampling, unfold, fold, shuffled pixels: against NumPy and loops, by the adjoint test, in every mode."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from numba import njit
from numba.core.errors import TypingError

import irad
from irad import nn
from irad.nn.linear import LINEAR, LINEAR_CORNERS, NEAREST
from irad.nn.resampling.padding import _pad
from irad.nn.resampling.upsampling import _upsample
from tests.nn.checks import check

PADS = {
    nn.pad_zeros: "constant",
    nn.pad_repeat: "edge",
    nn.pad_reflect: "reflect",
    nn.pad_symmetric: "symmetric",
    nn.pad_circular: "wrap",
}


@njit
def _stretched(x, constant, pad, kind, size, stretch):
    """Both families in one function, which is compiled once."""
    return _upsample(_pad(x, pad, kind, constant[0]), None, size, stretch)


@pytest.mark.parametrize("f", PADS)
def test_padding(f: Any):
    x = np.random.default_rng(0).standard_normal((2, 3, 4))
    for pad in ((1, 2, 0, 3), (0, 0, 2, 1)):
        np.testing.assert_array_equal(f(x, pad), np.pad(x, ((0, 0), pad[:2], pad[2:]), PADS[f]))
    np.testing.assert_array_equal(f(x[:, ::-1], (1, 1, 0, 0)), np.pad(x[:, ::-1], ((0, 0), (1, 1), (0, 0)), PADS[f]))


def test_padding_of_space_by_a_constant():
    x = np.ones((1, 2, 3), np.float32)
    y = nn.pad_constant(x, 1, 2.5)
    assert y.dtype == np.float32
    np.testing.assert_array_equal(y, np.pad(x, ((0, 0), (0, 0), (1, 1)), constant_values=2.5))
    assert np.shares_memory(nn.pad_constant(x, 0, 2.5), x) is False
    assert nn.pad_constant(np.empty((0, 1, 2), np.float32), 1, 2.5).shape == (0, 1, 4)


def test_every_mode_and_order():
    x, constant = np.random.default_rng(1).standard_normal((1, 2, 3, 4)), np.array([0.7])
    for kind, stretch, size in ((0, LINEAR, (7, 2)), (1, NEAREST, (9, 3)), (2, LINEAR_CORNERS, (4, 11))):
        arguments = (x, constant, (2, 0, 1, 3), np.int64(kind), size, stretch)
        check(_stretched, *arguments, active=(0, 1))  # compiled once
    for kind in (3, 4):
        check(_stretched, x, constant, (2, 0, 1, 3), np.int64(kind), (1, 1), LINEAR_CORNERS, active=(0, 1))


def _interpolated(x: Any, size: int, align_corners: bool) -> Any:
    """Along the last axis."""
    n = x.shape[-1]
    if align_corners:
        places = np.linspace(0.0, n - 1.0, size) if size > 1 else np.zeros(1)
    else:
        places = np.clip((np.arange(size) + 0.5) * n / size - 0.5, 0.0, n - 1.0)
    return np.apply_along_axis(lambda row: np.interp(places, np.arange(n), row), -1, x)


@pytest.mark.parametrize("align_corners", [True, False])
def test_linear_upsampling(align_corners: bool):
    x = np.random.default_rng(2).standard_normal((2, 1, 3, 4))
    for size in ((5, 9), (1, 4), (2, 1)):
        wanted = _interpolated(x, size[1], align_corners)
        wanted = _interpolated(wanted.swapaxes(2, 3), size[0], align_corners).swapaxes(2, 3)
        found = nn.upsample_bilinear(x, size=size, align_corners=align_corners)
        np.testing.assert_allclose(found, wanted, rtol=1e-13, atol=1e-14)
    assert nn.upsample_bilinear(x, (2, 1.5)).shape == (2, 1, 6, 6)


def test_nearest_upsampling():
    x = np.arange(6.0).reshape(1, 1, 2, 3)
    np.testing.assert_array_equal(nn.upsample_nearest(x, (2, 3)), x.repeat(2, axis=2).repeat(3, axis=3))
    np.testing.assert_array_equal(nn.upsample_nearest(x, size=(3, 2))[0, 0], x[0, 0][[0, 0, 1]][:, [0, 1]])


CASES = {
    "one axis": ((2, 2, 7), ((3,), (2,), (1, 0), (2,), True)),
    "two axes": ((2, 2, 4, 5), ((2, 3), (1, 2), (1, 0, 0, 2), (2, 1), False)),
}


@pytest.mark.parametrize("name", CASES)
def test_windows(name: str):
    shape, (k, stride, pad, dilation, flipped) = CASES[name]
    random, axes = np.random.default_rng(3), len(shape) - 2
    x = random.standard_normal(shape)
    columns = nn.unfold(x, k, stride, pad, dilation, flipped)
    padded = np.pad(x, [(0, 0), (0, 0), *((pad[2 * d], pad[2 * d + 1]) for d in range(axes))])
    counts = [(padded.shape[2 + d] - (k[d] - 1) * dilation[d] - 1) // stride[d] + 1 for d in range(axes)]
    wanted = []
    for place in itertools.product(*map(range, counts)):
        starts = [p * s for p, s in zip(place, stride, strict=True)]
        part = [slice(s, s + (k[d] - 1) * dilation[d] + 1, dilation[d]) for d, s in enumerate(starts)]
        window = padded[(..., *part)]
        window = window if flipped else np.flip(window, tuple(range(2, 2 + axes)))
        wanted.append(window.reshape(shape[0], -1))
    np.testing.assert_array_equal(columns, np.stack(wanted, axis=2))
    other = random.standard_normal(columns.shape)
    folded = nn.fold(other, shape, k, stride, pad, dilation, flipped)
    assert (folded * x).sum() == pytest.approx((other * columns).sum(), abs=1e-12)


def test_windows_in_every_mode():
    @njit
    def there_and_back(x, r, k, stride, pad):  # unfold and fold, through pixels: the squares of windows that overlap
        columns = nn.unfold(nn.pixel_shuffle(x, r), k, stride, pad, stride, True)
        flat = columns.reshape(columns.size)
        for i in range(flat.size):
            flat[i] *= flat[i]
        return nn.pixel_unshuffle(nn.fold(columns, (1, 1, 2 * r, 2 * r), k, stride, pad, stride, True), r)

    x = np.random.default_rng(4).standard_normal((1, 4, 2, 2))
    check(there_and_back, x, 2, (3, 3), (1, 1), (1, 1, 1, 1), second=False)


def test_shuffled_pixels():
    x = np.random.default_rng(5).standard_normal((2, 12, 2, 3))
    wanted = x.reshape(2, 3, 2, 2, 2, 3).transpose(0, 1, 4, 2, 5, 3).reshape(2, 3, 4, 6)
    np.testing.assert_array_equal(nn.pixel_shuffle(x, 2), wanted)
    np.testing.assert_array_equal(nn.pixel_unshuffle(wanted, 2), x)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda x: nn.pad_reflect(x, (0, 0, 0, 3)),
            ValueError,
            "pad_reflect: axis 2 of size 3 can be padded by 2 at most",
        ),
        (lambda x: nn.pad_zeros(x, (0, 0, -1, 0)), ValueError, "pad_constant: padding of -1 before and 0 after axis 2"),
        (
            lambda x: nn.pad_circular(x, (0, 0, 4, 0)),
            ValueError,
            "pad_circular: axis 2 of size 3 can be padded by 3 at most",
        ),
        (lambda x: nn.pad_zeros(x, (1, 2, 3)), TypingError, "integers before and after each of the last axes"),
        (lambda x: nn.upsample_nearest(x), TypingError, "give either a scale or a size"),
        (lambda x: nn.upsample_nearest(x[None], size=(3, 0)), ValueError, "from size 3 to size 0 along axis 3"),
        (lambda x: nn.upsample_bilinear(x, 2), ValueError, "upsample_bilinear: an array with 3 axes"),
        (lambda x: nn.pixel_shuffle(x[None], 2), ValueError, "1 channels are not a multiple of 4"),
        (lambda x: nn.pixel_unshuffle(x[:, :, :2, None], 2), ValueError, "size 1 of axis 3 is not a multiple of 2"),
        (lambda x: nn.fold(x, (1, 1, 4), (2,), (1,), (0, 0), (1,), True), ValueError, r"it must be \(1, 2, 3\)"),
    ],
)
def test_what_is_refused(call: Any, error: Any, message: str):
    with pytest.raises(error, match=message):
        call(np.ones((1, 1, 3)))


def test_what_is_padded_away_or_not_chosen_has_no_derivative():
    @njit
    def loss(x):
        return nn.upsample_linear(nn.pad_reflect(x, (0, 1)), size=1)[0, 0, 0] * 3.0

    np.testing.assert_array_equal(irad.grad(loss)(np.array([[[2.0, np.inf, np.nan]]])), [[[3.0, 0.0, 0.0]]])
