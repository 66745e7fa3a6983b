"""layernorm, groupnorm, instancenorm, batchnorm."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import njit

import irad
from irad import nn
from tests.nn.checks import check, check_single

_RANDOM = np.random.default_rng(0)
_X, _W, _B = _RANDOM.standard_normal((3, 4, 5)) + 1.0, _RANDOM.standard_normal(4), _RANDOM.standard_normal(4)


def _reference(x: Any, axes: tuple[int, ...], w: Any, b: Any, eps: float = 1e-5) -> Any:
    mean, variance = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    return (x - mean) / np.sqrt(variance + eps) * w + b


def _group_reference(x: Any, groups: int, w: Any, b: Any) -> Any:
    split = x.reshape(x.shape[0], groups, -1)
    return _reference(split, (2,), 1.0, 0.0).reshape(x.shape) * w[:, None] + b[:, None]


def test_layers_in_every_mode():
    w, b = _RANDOM.standard_normal((4, 5)), _RANDOM.standard_normal((4, 5))
    check(
        nn.layernorm,
        _X,
        w,
        b,
        2,
        0.1,
        active=(0, 1, 2),
        reference=lambda x, w, b, _, eps: _reference(x, (1, 2), w, b, eps),
    )
    np.testing.assert_allclose(nn.layernorm(_X), _reference(_X, (2,), 1.0, 0.0), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(
        nn.layernorm(_X[::-1, :, ::2], axes=3),
        _reference(_X[::-1, :, ::2], (0, 1, 2), 1.0, 0.0),
        rtol=1e-12,
        atol=1e-13,
    )


@njit
def _trained(x, w, b):
    return nn.batchnorm(x, weight=w, bias=b)


@pytest.mark.parametrize(("x", "axes"), [(_X, (0, 2)), (_X[:, :, 0], (0,))])
def test_batches_in_training(x: Any, axes: tuple[int, ...]):
    places = (slice(None), *([None] * (x.ndim - 2)))

    def reference(x: Any, w: Any, b: Any) -> Any:
        return _reference(x, axes, w[places], b[places])

    check(_trained, x, _W, _B, active=(0, 1, 2), second=False, forward=False, reference=reference)


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_groups(groups: int):
    np.testing.assert_allclose(
        nn.groupnorm(_X, groups, _W, _B), _group_reference(_X, groups, _W, _B), rtol=1e-12, atol=1e-13
    )
    if groups == 2:
        check(nn.groupnorm, _X, 2, _W, _B, active=(0, 2, 3), second=False, forward=False)
    if groups == 4:
        np.testing.assert_array_equal(nn.instancenorm(_X, _W, _B), nn.groupnorm(_X, 4, _W, _B))


@njit
def _step(x, mean, var, w, b, training):
    return (nn.batchnorm(x, mean, var, w, b, training, 0.3) ** 3).sum()


def test_running_statistics_move_once_and_carry_no_derivative():
    mean, var = np.array([1.0, -1.0, 0.5, 0.0]), np.array([1.0, 2.0, 3.0, 4.0])
    wanted = mean + 0.3 * (_X.mean((0, 2)) - mean), var + 0.3 * (_X.var((0, 2), ddof=1) - var)
    by_x = irad.grad(_step)(_X, mean, var, _W, _B, True)
    np.testing.assert_allclose(mean, wanted[0], rtol=1e-12)
    np.testing.assert_allclose(var, wanted[1], rtol=1e-12)
    direction = _RANDOM.standard_normal(_X.shape)
    above, below = (_step(_X + e * direction, mean, var, _W, _B, True) for e in (1e-5, -1e-5))
    np.testing.assert_allclose((by_x * direction).sum(), (above - below) / 2e-5, rtol=1e-7)


def test_running_statistics_may_be_declared_constant():
    shadows = np.zeros_like(_X)
    constants = [irad.Const(each) for each in (np.zeros(4), np.ones(4), _W, _B, True)]
    irad.autodiff(irad.Reverse, _step, irad.Duplicated(_X, shadows), *constants)
    np.testing.assert_allclose(shadows, irad.grad(_step)(_X, np.zeros(4), np.ones(4), _W, _B, True), rtol=1e-12)


def test_inference_uses_the_running_statistics():
    mean, var = np.array([1.0, -1.0, 0.5, 0.0]), np.array([1.0, 2.0, 3.0, 4.0])

    def reference(x: Any, mean: Any, var: Any, w: Any, b: Any) -> Any:
        return (x - mean[:, None]) / np.sqrt(var + 1e-5)[:, None] * w[:, None] + b[:, None]

    check(nn.batchnorm, _X, mean, var, _W, _B, active=(0, 1, 2, 3, 4), second=False, forward=False, reference=reference)
    assert mean[0] == 1.0


def test_the_derivative_by_eps():
    f = lambda x, eps: (nn.layernorm(x, eps=eps) ** 4).sum()  # noqa: E731
    difference = (
        _reference(_X, (2,), 1.0, 0.0, 0.1001) ** 4 - _reference(_X, (2,), 1.0, 0.0, 0.0999) ** 4
    ).sum() / 2e-4
    assert irad.grad(f, argnums=1)(_X, 0.1) == pytest.approx(difference, rel=1e-6)


def test_arrays_that_change_later():
    @njit
    def loss(x, w):
        kept = x.copy(), w.copy()
        y = nn.layernorm(x, w)
        x[:] = np.nan
        w[:] = np.nan
        return (y * nn.layernorm(kept[0], kept[1])).sum()

    x, w = _RANDOM.standard_normal((3, 5)), np.arange(1.0, 6.0)
    by_w = 2.0 * (_reference(x, (1,), 1.0, 0.0) ** 2 * w).sum(0)
    by_x, found = irad.grad(loss, argnums=(0, 1))(x.copy(), w.copy())
    np.testing.assert_allclose(found, by_w, rtol=1e-12)
    np.testing.assert_allclose(by_x.sum(1), 0.0, atol=1e-12)  # constants are taken away
    assert np.abs(by_x).max() > 0.1


def test_single_precision():
    check_single(nn.groupnorm, _X, 2, _W, _B, active=(0, 2, 3))


def test_empty_arrays_and_what_is_refused():
    assert nn.layernorm(np.empty((0, 3))).shape == (0, 3)
    assert nn.groupnorm(np.empty((2, 4, 0)), 2).shape == (2, 4, 0)
    for f, message in (
        (lambda: nn.layernorm(_X, axes=4), "4 axes of an array with 3"),
        (lambda: nn.layernorm(_X, _W), "4 weights, biases or statistics where there must be 5"),
        (lambda: nn.groupnorm(_X, 3), "4 channels cannot be divided into 3 groups"),
        (lambda: nn.batchnorm(_X[:1, :, 0]), "1 elements in a channel"),
    ):
        with pytest.raises(ValueError, match=message):
            f()
