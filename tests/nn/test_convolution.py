"""conv, its adjoints, depthwiseconv: against a loop, by the adjoint test, in every mode and order."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from numba import njit

import irad
from irad import nn
from tests.nn.checks import check, gradient_of


def _reference(x: Any, w: Any, stride: Any, pad: Any, dilation: Any, groups: int, flipped: bool) -> Any:
    """One product at a time; settings are tuples, pad has two entries for each axis."""
    axes = x.ndim - 2
    filters = w if flipped else w[(..., *([slice(None, None, -1)] * axes))]
    padded = np.pad(x, [(0, 0), (0, 0), *((pad[2 * d], pad[2 * d + 1]) for d in range(axes))])
    spans = [(padded.shape[2 + d] - (w.shape[2 + d] - 1) * dilation[d] - 1) // stride[d] + 1 for d in range(axes)]
    y = np.zeros((x.shape[0], w.shape[0], *spans), np.result_type(x, w))
    for k, c in itertools.product(range(w.shape[0]), range(w.shape[1])):
        channel = k // (w.shape[0] // groups) * w.shape[1] + c
        for tap in itertools.product(*map(range, w.shape[2:])):
            starts = [t * dilation[d] for d, t in enumerate(tap)]
            part = [slice(s, s + stride[d] * (spans[d] - 1) + 1, stride[d]) for d, s in enumerate(starts)]
            y[:, k] += filters[(k, c, *tap)] * padded[(slice(None), channel, *part)]
    return y


# shapes of x and w, and settings
CASES = {
    "one axis": ((2, 2, 9), (4, 1, 3), ((2,), (2, 1), (2,), 2, False)),
    "two axes": ((2, 4, 6, 5), (4, 2, 3, 4), ((2, 1), (1, 0, 2, 3), (1, 2), 2, False)),
    "cross-correlation": ((1, 3, 4, 5), (2, 3, 3, 2), ((1, 1), (0, 0, 0, 0), (1, 1), 1, True)),
    "three axes": ((1, 2, 3, 4, 3), (2, 2, 2, 3, 2), ((1, 2, 1), (1, 0, 0, 2, 1, 1), (2, 1, 1), 1, True)),
    "many channels": ((2, 32, 4, 3), (32, 16, 3, 2), ((1, 1), (1, 2, 0, 1), (1, 2), 2, False)),
    "many channels in space": (
        (1, 16, 3, 4, 5),
        (17, 16, 1, 3, 2),
        ((1, 1, 1), (0, 0, 1, 0, 1, 0), (1, 1, 1), 1, True),
    ),
    "images apart in memory": ((3, 2, 20, 20), (7, 2, 3, 3), ((3, 2), (2, 1, 0, 3), (2, 5), 1, True)),
    "many small images": ((70, 1, 3, 3), (3, 1, 2, 2), ((2, 2), (0, 1, 1, 0), (1, 1), 1, True)),
    "rows longer than a block": ((2, 1, 2, 300), (3, 1, 2, 3), ((1, 1), (0, 0, 1, 1), (1, 1), 1, False)),
    "more columns than a block": ((2, 50, 3, 4), (2, 50, 2, 2), ((1, 1), (1, 0, 0, 1), (1, 1), 1, True)),
    "stride beyond the filter": ((2, 2, 11, 7), (3, 2, 2, 1), ((4, 3), (0, 0, 0, 0), (1, 1), 1, True)),
    "padding beyond the image": ((1, 1, 2), (1, 1, 4), ((3,), (5, 6), (1,), 1, True)),
}


@pytest.mark.parametrize("name", CASES)
def test_values_and_adjoints(name: str):
    x_shape, w_shape, settings = CASES[name]
    random = np.random.default_rng(0)
    x, w = random.standard_normal(x_shape), random.standard_normal(w_shape)
    y = nn.conv(x, w, *settings)
    np.testing.assert_allclose(y, _reference(x, w, *settings), rtol=1e-12, atol=1e-13)
    cotangent = random.standard_normal(y.shape)
    product = (y * cotangent).sum()
    assert (x * nn.conv_data(cotangent, w, x.shape, *settings)).sum() == pytest.approx(product, abs=1e-12)
    assert (w * nn.conv_filter(x, cotangent, w.shape, *settings)).sum() == pytest.approx(product, abs=1e-12)


@njit
def _all_three(x, w, stride, pad, dilation, groups, flipped):
    """Each kernel depends on both of its factors."""
    y = nn.conv(x, w, stride, pad, dilation, groups, flipped)
    back = nn.conv_data(y, w, x.shape, stride, pad, dilation, groups, flipped)
    return nn.conv_filter(back, y, w.shape, stride, pad, dilation, groups, flipped)


def test_every_mode_and_order():
    x_shape, w_shape, settings = CASES["two axes"]
    random = np.random.default_rng(1)
    x, w = random.standard_normal(x_shape), 0.2 * random.standard_normal(w_shape)
    check(_all_three, x, w, *settings, active=(0, 1))


def test_single_precision():
    x_shape, w_shape, settings = CASES["two axes"]
    random = np.random.default_rng(2)
    x, w = np.float32(random.standard_normal(x_shape)), np.float32(random.standard_normal(w_shape))
    y = nn.conv(x, w, *settings)
    assert y.dtype == np.float32
    wide = nn.conv(np.float64(x), np.float64(w), *settings)
    np.testing.assert_allclose(y, wide, rtol=2e-5, atol=2e-6)
    found = gradient_of(nn.conv, 7, (0, 1))(np.ones_like(y), x, w, *settings)[1]
    cotangent = 2.0 * wide + 1.0  # of the sum of y² + y
    wanted = (
        nn.conv_data(cotangent, np.float64(w), x.shape, *settings),
        nn.conv_filter(np.float64(x), cotangent, w.shape, *settings),
    )
    for single, double in zip(found, wanted, strict=True):
        assert single.dtype == np.float32
        np.testing.assert_allclose(single, double, rtol=2e-4, atol=2e-5)


def _complex(random: Any, *shape: int) -> Any:
    return random.standard_normal(shape) + 1j * random.standard_normal(shape)


def _inner(a: Any, b: Any) -> float:
    """The product of complex arrays as arrays of pairs: what irad's cotangents are for."""
    return float((a.conj() * b).sum().real)


@njit
def _complex_loss(x, w, weights, stride, pad, dilation, groups, flipped):
    y, total = nn.conv(x, w, stride, pad, dilation, groups, flipped).ravel(), 0.0
    for i in range(y.size):
        total += weights[i] * (y[i].real ** 2 + 3.0 * y[i].imag) + y[i].real * y[i].imag
    return total


def test_complex_numbers():
    """Values against a loop; the adjoints; both modes; single precision."""
    x_shape, w_shape, settings = CASES["two axes"]
    random = np.random.default_rng(6)
    x, w = _complex(random, *x_shape), _complex(random, *w_shape)
    y = nn.conv(x, w, *settings)
    np.testing.assert_allclose(y, _reference(x, w, *settings), rtol=1e-12, atol=1e-13)
    c = _complex(random, *y.shape)
    assert _inner(x, nn.conv_data(c, w, x.shape, *settings)) == pytest.approx(_inner(y, c), rel=1e-12)
    assert _inner(w, nn.conv_filter(x, c, w.shape, *settings)) == pytest.approx(_inner(y, c), rel=1e-12)
    weights = random.standard_normal(y.size)
    dx, dw, step = _complex(random, *x_shape), _complex(random, *w_shape), 1e-5
    gradient = irad.grad(_complex_loss, argnums=(0, 1))
    found = gradient(x, w, weights, *settings)
    slope = _inner(found[0], dx) + _inner(found[1], dw)
    losses = [_complex_loss(x + s * dx, w + s * dw, weights, *settings) for s in (step, -step)]
    assert slope == pytest.approx((losses[0] - losses[1]) / (2 * step), rel=1e-6)
    none = (None,) * 6
    assert irad.jvp(_complex_loss, (x, w, weights, *settings), (dx, dw, *none))[1] == pytest.approx(slope, rel=1e-11)
    single = nn.conv(np.complex64(x), np.float32(w.real), *settings)
    assert single.dtype == np.complex64
    np.testing.assert_allclose(single, _reference(x, w.real, *settings), rtol=2e-5, atol=2e-5)
    with pytest.raises(ValueError, match="y has 2 samples, 3 channels; it must have 2, 4"):
        nn.conv_data(c[:, :3], w, x.shape, *settings)


def test_plain_settings():
    random = np.random.default_rng(3)
    x, w = random.standard_normal((2, 3, 5, 4)), random.standard_normal((2, 3, 3, 3))
    wanted = _reference(x, w, (2, 2), (1, 1, 1, 1), (1, 1), 1, False)
    np.testing.assert_allclose(nn.conv(x, w, stride=(2, 2), pad=(1, 1)), wanted, rtol=1e-12, atol=1e-13)
    strided = x[:, :, ::-1]
    np.testing.assert_allclose(
        nn.conv(strided, w), _reference(strided, w, (1, 1), (0,) * 4, (1, 1), 1, False), rtol=1e-12, atol=1e-13
    )


def test_depthwise():
    random = np.random.default_rng(4)
    x, w = random.standard_normal((2, 3, 4, 5)), random.standard_normal((6, 1, 2, 2))
    wanted = _reference(x, w, (2, 2), (1, 1, 1, 1), (1, 1), 3, False)
    np.testing.assert_allclose(nn.depthwiseconv(x, w, stride=2, pad=1), wanted, rtol=1e-12, atol=1e-13)


PLAIN = (1,), (0, 0), (1,), 1, False  # of the types of "one axis", for which all is compiled


def test_constant_filters_and_images_that_change_later():
    @njit
    def loss(x, w):
        total = 0.0
        y = nn.conv(x, w, *PLAIN).ravel()
        x[:] = np.nan
        for i in range(y.size):
            total += y[i] * y[i]
        return total

    random = np.random.default_rng(5)
    x, w = random.standard_normal((1, 2, 5)), random.standard_normal((3, 2, 2))
    y = nn.conv(x, w, *PLAIN)
    by_x, by_w = nn.conv_data(y, w, x.shape, *PLAIN), nn.conv_filter(x, y, w.shape, *PLAIN)
    np.testing.assert_allclose(irad.grad(loss, argnums=0)(x.copy(), w), 2.0 * by_x, rtol=1e-12)
    np.testing.assert_allclose(irad.grad(loss, argnums=1)(x.copy(), w), 2.0 * by_w, rtol=1e-12)


def test_no_samples():
    x, y = np.ones((0, 1, 4)), np.ones((0, 2, 2))
    assert nn.conv(x, np.ones((2, 1, 3)), *PLAIN).shape == y.shape
    np.testing.assert_array_equal(nn.conv_filter(x, y, (2, 1, 3), *PLAIN), np.zeros((2, 1, 3)))


@pytest.mark.parametrize(
    ("x_shape", "settings", "message"),
    [
        ((1, 3, 4), (1, 2), "3 channels and 4 filters cannot be divided into 2 groups"),
        ((1, 4, 4), (1, 1), "filters with 2 channels in 1 groups do not fit 4 channels"),
        ((1, 2, 2), (1, 1), r"a window that spans 3 does not fit into 2 \+ 0 padding"),
        ((1, 2, 4), (0, 1), "stride 0, dilation 1 and size 3 of a window must be positive"),
    ],
)
def test_what_is_refused(x_shape: Any, settings: Any, message: str):
    stride, groups = settings
    with pytest.raises(ValueError, match=message):
        nn.conv(np.ones(x_shape), np.ones((4, 2, 3)), (stride,), (0, 0), (1,), groups, False)


def test_a_cotangent_of_another_shape():
    with pytest.raises(ValueError, match="size 4 in space where the convolution has 3"):
        nn.conv_data(np.ones((1, 1, 4)), np.ones((1, 1, 2)), (1, 1, 4), *PLAIN)
