"""Derivatives of methods that are bound to an instance of a jitclass."""

from __future__ import annotations

import numpy as np
import pytest
from numba import float64
from numba.experimental import jitclass

import irad


@jitclass([("w", float64[::1]), ("bias", float64)])
class Neuron:
    def __init__(self, w, bias):
        self.w = w
        self.bias = bias

    def output(self, x, gain=2.0):
        return gain * (np.sum(self.w * x**2) + self.bias)


W, X = np.array([1.0, 2.0, 3.0]), np.array([0.5, -1.0, 2.0])


def neuron():
    return Neuron(W.copy(), 0.25)


def test_gradient():
    np.testing.assert_allclose(irad.grad(neuron().output)(X), 4.0 * W * X, rtol=1e-15)


def test_argnums_count_without_the_instance():
    by_x, by_gain = irad.grad(neuron().output, argnums=(0, -1))(X, gain=3.0)
    np.testing.assert_allclose(by_x, 6.0 * W * X, rtol=1e-15)
    assert by_gain == pytest.approx(W @ X**2 + 0.25, rel=1e-15)


def test_value_and_grad_and_destination():
    method = neuron().output
    value, gradient = irad.value_and_grad(method)(X)
    assert value == method(X)
    out = np.empty(3)
    assert irad.value_and_grad_into(method)(out, X) == value
    np.testing.assert_array_equal(out, gradient)


def test_vjp_has_no_entry_for_the_instance():
    method = neuron().output
    value, pullback = irad.vjp(method, X, gain=3.0)
    assert value == method(X, 3.0)
    by_x, by_gain = pullback(1.0)
    np.testing.assert_allclose(by_x, 6.0 * W * X, rtol=1e-15)
    assert by_gain == pytest.approx(W @ X**2 + 0.25, rel=1e-15)


def test_the_instance_is_read_when_the_derivative_is_called():
    model = neuron()
    gradient = irad.grad(model.output)
    model.w[:] = 0.0
    np.testing.assert_array_equal(gradient(X), 0.0)


@pytest.mark.parametrize("argnums", [2, -3, (0, 5)])
def test_positions_that_the_method_does_not_have(argnums):
    with pytest.raises(irad.SignatureError, match="has 2 parameters") as caught:
        irad.grad(neuron().output, argnums=argnums)
    assert "use 0 for x, 1 for gain" in caught.value.remedy
