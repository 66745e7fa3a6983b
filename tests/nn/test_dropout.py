"""dropout."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import njit

import irad
from irad import nn


@njit
def _seeded(x, p, seed):
    np.random.seed(seed)
    y = nn.dropout(x, p)
    total = (y * y * y).sum()
    y[:] = np.nan
    return total, np.random.random()


@njit
def _loss(x, p, seed):
    return _seeded(x, p, seed)[0]


@njit
def _mask(shape, p, seed):
    np.random.seed(seed)
    return nn.dropout(np.ones(shape), p) != 0.0


_X = np.random.default_rng(0).standard_normal((20, 10))


def test_the_derivative_has_the_mask_of_the_value():
    keep, scale = _mask((20, 10), 0.4, 3), 1.0 / 0.6
    value, gradient = irad.value_and_grad(_loss)(_X, 0.4, 3)
    assert value == pytest.approx(((_X * keep * scale) ** 3).sum())
    np.testing.assert_allclose(gradient, 3 * _X**2 * keep * scale**3, rtol=1e-12)
    direction = np.ones_like(_X)
    slope = irad.jvp(_loss, (_X, 0.4, 3), (direction, 0.0, None))[1]
    assert slope == pytest.approx(gradient.sum())
    product = irad.hvp(_loss)(_X, direction, 0.4, 3)
    np.testing.assert_allclose(product, 6 * _X * keep * scale**3, rtol=1e-12)


def test_the_generator_runs_once():
    """The next number is the same after the function and after its derivative, both sweeps of it."""

    @njit
    def after(f, x):
        f(x, 0.4, 5)
        return np.random.random()

    assert after(irad.grad(_loss), _X) == after(_loss, _X)


def test_several_directions_have_one_mask():
    directions = np.ones_like(_X), _X.copy()
    found = irad.autodiff(irad.Forward, _loss, irad.BatchDuplicated(_X, directions), irad.Const(0.4), irad.Const(3))
    gradient = irad.grad(_loss)(_X, 0.4, 3)
    np.testing.assert_allclose(
        found[1] if isinstance(found[1], tuple) else found, [(gradient * d).sum() for d in directions]
    )


def test_shares_and_limits():
    x = np.ones((200, 50))
    share = (nn.dropout(x, 0.3) != 0.0).mean()
    assert abs(share - 0.7) < 5 * np.sqrt(0.3 * 0.7 / x.size)
    np.testing.assert_array_equal(nn.dropout(x, 0.0), x)
    np.testing.assert_array_equal(nn.dropout(np.full(9, np.inf), 1.0), np.zeros(9))
    np.testing.assert_array_equal(nn.dropout(x, 0.9, training=False), x)
    assert nn.dropout(np.empty((0, 2)), 0.5).shape == (0, 2)
    assert nn.dropout(np.ones(3, np.float32), 0.5).dtype == np.float32


@pytest.mark.parametrize("p", [-0.1, 1.1, np.nan])
def test_what_is_refused(p: float):
    with pytest.raises(ValueError, match="p must be from 0 to 1"):
        nn.dropout(np.ones(1), p)


def test_channels_are_dropped_as_a_whole():
    y: Any = nn.dropout(np.ones((30, 4, 3, 2)), 0.5, per_channel=True)
    channels = y.reshape(120, 6)
    assert set(channels.sum(1)) == {0.0, 12.0}


@njit
def _loss_along(x, p, axis):
    np.random.seed(2)
    y = nn.dropout(x, p, True, False, axis)
    return (y * y * y).sum()


def test_draws_along_several_axes():
    """Elements that differ along the other axes only have one draw, in the derivative too."""
    x = np.random.default_rng(1).standard_normal((4, 5, 6))
    for axis, shared in (((0, 2), (1,)), ((2, 0), (1,)), ((0, 1), (2,)), ((1, 2), (0,))):
        value, gradient = irad.value_and_grad(_loss_along)(x, 0.5, axis)
        kept = gradient != 0.0
        assert 0 < kept.sum() < x.size
        np.testing.assert_array_equal(kept, kept.all(shared, keepdims=True) & np.ones(x.shape, bool))
        assert len({tuple(each) for each in np.moveaxis(kept, shared, (0,))[0]}) > 1
        assert value == pytest.approx(((2.0 * x * kept) ** 3).sum())
        np.testing.assert_allclose(gradient, 24.0 * x**2 * kept, rtol=1e-12)
    with pytest.raises(ValueError, match=r"per_channel is short for axis=\(0, 1\)"):
        nn.dropout(x, 0.5, True, True, (0, 2))
    with pytest.raises(IndexError, match="axis 3 of an array with 3 axes"):
        _loss_along(x, 0.5, (0, 3))
