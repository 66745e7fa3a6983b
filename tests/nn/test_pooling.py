"""maxpool, meanpool, lpnormpool."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba import njit

import irad
from irad import nn
from tests.nn.checks import check, check_single, gradient_of


def _reference(x: Any, k: Any, stride: Any, pad: Any, filling: float, of_window: Callable[..., Any]) -> Any:
    """Settings are tuples, pad has two entries for each axis."""
    axes = x.ndim - 2
    margins = [(0, 0), (0, 0), *((pad[2 * d], pad[2 * d + 1]) for d in range(axes))]
    padded = np.pad(x, margins, constant_values=filling)
    sizes = [(padded.shape[2 + d] - k[d]) // stride[d] + 1 for d in range(axes)]
    y = np.empty((*x.shape[:2], *sizes))
    for o in itertools.product(*map(range, sizes)):
        window = padded[(..., *(slice(i * stride[d], i * stride[d] + k[d]) for d, i in enumerate(o)))]
        y[(..., *o)] = of_window(window, axis=tuple(range(2, x.ndim)))
    return y


CASES = {
    "one axis": ((2, 2, 7), ((3,), (2,), (1, 0))),
    "two axes": ((1, 2, 5, 6), ((2, 3), (1, 2), (1, 0, 1, 2))),
    "three axes": ((1, 1, 3, 3, 4), ((2, 2, 2), (1, 1, 2), (0, 0, 1, 1, 0, 0))),
}


@pytest.mark.parametrize("name", CASES)
def test_values(name: str):
    shape, (k, stride, pad) = CASES[name]
    x = np.random.default_rng(0).standard_normal(shape)

    def norm(window: Any, axis: Any) -> Any:
        return (np.abs(window) ** 3.0).sum(axis) ** (1.0 / 3.0)

    for found, wanted in (
        (nn.maxpool(x, k, stride, pad), _reference(x, k, stride, pad, -np.inf, np.max)),
        (nn.meanpool(x, k, stride, pad), _reference(x, k, stride, pad, 0.0, np.mean)),
        (nn.lpnormpool(x, 3.0, k, stride, pad), _reference(x, k, stride, pad, 0.0, norm)),
    ):
        np.testing.assert_allclose(found, wanted, rtol=1e-13)


@njit
def _both(x, k, stride, pad, with_padding):
    most, means = nn.maxpool(x, k, stride, pad), nn.meanpool(x, k, stride, pad, with_padding)
    sums, parts = most.reshape(most.size), means.reshape(means.size)
    for i in range(sums.size):
        sums[i] += 3 * parts[i]
    return most


def test_every_mode_and_precision():
    shape, (k, stride, pad) = CASES["two axes"]
    x = np.random.default_rng(1).standard_normal(shape)
    for with_padding in (True, False):
        check(_both, x, k, stride, pad, with_padding)
        check_single(_both, x, k, stride, pad, with_padding)


@pytest.mark.parametrize("name", CASES)
def test_means_without_padding(name: str):
    shape, (k, stride, pad) = CASES[name]
    x = np.random.default_rng(0).standard_normal(shape)
    wanted = _reference(x, k, stride, pad, np.nan, np.nanmean)
    np.testing.assert_allclose(nn.meanpool(x, k, stride, pad, False), wanted, rtol=1e-13)
    with pytest.raises(ValueError, match="lies wholly in the padding"):
        nn.meanpool(x, k, stride, (k[0], *pad[1:]), False)


@njit
def _mean_of_pairs(x, k, stride, pad):
    y = nn.meanpool(x[0] + 1j * x[1], k, stride, pad, False).ravel()
    out = np.empty((2, y.size))
    for i in range(y.size):
        out[0, i], out[1, i] = y[i].real, y[i].imag
    return out


def test_means_of_complex_numbers():
    shape, settings = CASES["two axes"]
    x = np.random.default_rng(3).standard_normal((2, *shape))
    check(
        *(_mean_of_pairs, x, *settings),
        reference=lambda x, *rest: np.array([nn.meanpool(each, *rest, False).ravel() for each in x]),
        second=False,
    )
    assert nn.meanpool(np.complex64(x[0]), *settings).dtype == np.complex64
    with pytest.raises(irad.SignatureError, match="maxpool: an array of complex128"):
        nn.maxpool(x[0] + 0j, *settings)


def test_norms_in_first_order():
    x = np.random.default_rng(2).standard_normal((1, 2, 6))
    check(nn.lpnormpool, x, 3.0, (2,), (2,), (0, 0), active=(0,), second=False)
    x = np.array([[[0.0, 0.0, 3.0, 4.0]]])
    gradient = gradient_of(nn.lpnormpool, 5, (0,))(np.ones((1, 1, 2)), x, 2.0, (2,), (2,), (0, 0))[1][0]
    np.testing.assert_allclose(gradient, [[[0.0, 0.0, 11 * 0.6, 11 * 0.8]]], rtol=1e-15)  # of y² + y, where y is 5
    with pytest.raises(ValueError, match="p must be positive"):
        nn.lpnormpool(x, 0.0, (2,), (2,), (0, 0))


def test_ties_share():
    def total(x: Any) -> Any:
        return nn.maxpool(x, (3,), (3,), (0, 0)).sum()

    gradient = irad.grad(total)(np.array([[[1.0, 1.0, 0.0, -np.inf, -np.inf, -np.inf]]]))
    np.testing.assert_allclose(gradient, [[[0.5, 0.5, 0.0, 1 / 3, 1 / 3, 1 / 3]]])


def test_settings_and_windows_in_the_padding():
    x = np.arange(6.0).reshape(1, 1, 6)
    assert nn.maxpool(x, 2).tolist() == [[[1.0, 3.0, 5.0]]]
    assert nn.maxpool(x, (2,), stride=3).tolist() == [[[1.0, 4.0]]]
    assert nn.maxpool(x, 2, pad=1)[0, 0].tolist() == [0.0, 2.0, 4.0, 5.0]
    for pad, stride in (((2, 0), 2), ((0, 2), 2), ((0, 3), 1)):
        with pytest.raises(ValueError, match="a window of 2 lies wholly in the padding"):
            nn.maxpool(x, 2, stride, pad)
    for pad in (-1, (-1, 0), (0, -1)):
        for pool in (nn.maxpool, nn.meanpool):
            with pytest.raises(ValueError, match=r"padding of .* is negative"):
                pool(x, 2, 2, pad)
    assert np.isnan(nn.maxpool(np.array([[[np.nan, 1.0, 2.0, 1.0]]]), 2)).tolist() == [[[True, False]]]
    with pytest.raises(ValueError, match="does not fit"):
        nn.meanpool(x, 7)
