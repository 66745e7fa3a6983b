"""Rules that users register for device functions hold in kernels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import cuda

import irad
import irad.cuda
from irad import Duplicated

X = np.linspace(0.5, 2.0, 8)


def gradient(kernel: Any, x: np.ndarray = X) -> tuple[np.ndarray, np.ndarray]:
    """Value and gradient of a kernel, one thread for each element."""
    value, shadow, seed = np.zeros_like(x), np.zeros_like(x), np.ones_like(x)
    with irad.cuda.executor(races=True):
        irad.cuda.grad(kernel)[1, x.size](Duplicated(x.copy(), shadow), Duplicated(value, seed))
    return value, shadow


def test_the_partial_derivative_of_the_rule_is_used():
    @cuda.jit(device=True)
    def root(x):
        return x**0.5

    @cuda.jit
    def kernel(x, y):
        i = cuda.grid(1)
        y[i] = 3.0 * root(x[i]) * x[i]

    value, shadow = gradient(kernel)
    np.testing.assert_allclose(shadow, 4.5 * np.sqrt(X))
    irad.rules.easy_rule(root, lambda x, value: 20.0 / value)
    value, shadow = gradient(kernel)
    np.testing.assert_allclose(value, 3.0 * X**1.5)
    np.testing.assert_allclose(shadow, 3.0 * (np.sqrt(X) + 20.0 / np.sqrt(X) * X))
    irad.rules.remove(root)
    np.testing.assert_allclose(gradient(kernel)[1], 4.5 * np.sqrt(X))


def test_several_arguments_numbers_and_none():
    @cuda.jit(device=True)
    def mixed(a, n, b):
        return a * b + n

    @cuda.jit(device=True)
    def slope(x):
        return math.cos(x)

    irad.rules.easy_rule(mixed, lambda a, n, b: slope(b) + n, None, 7.0)

    @cuda.jit
    def kernel(x, y):
        i = cuda.grid(1)
        y[i] = mixed(x[i], i, 2.0 * x[i])

    value, shadow = gradient(kernel)
    np.testing.assert_allclose(value, 2.0 * X * X + np.arange(8))
    np.testing.assert_allclose(shadow, np.cos(2.0 * X) + np.arange(8) + 14.0)


def test_what_a_rule_computes_need_not_have_a_derivative():
    """The body looks at bits; the rule says what the derivative is."""

    @cuda.jit(device=True)
    def rounded(x):
        return float(int(x * 4.0)) / 4.0

    irad.rules.easy_rule(rounded, lambda x: 1.0)

    @cuda.jit
    def kernel(x, y):
        i = cuda.grid(1)
        y[i] = rounded(x[i]) ** 2

    value, shadow = gradient(kernel)
    np.testing.assert_allclose(value, (np.floor(X * 4) / 4) ** 2)
    np.testing.assert_allclose(shadow, 2 * np.floor(X * 4) / 4)


def test_forward_mode():
    @cuda.jit(device=True)
    def root(x):
        return x**0.5

    irad.rules.easy_rule(root, lambda x: 5.0)

    @cuda.jit
    def kernel(x, y):
        i = cuda.grid(1)
        y[i] = root(x[i]) * x[i]

    value, tangent = np.zeros(8), np.zeros(8)
    with irad.cuda.executor():
        irad.cuda.autodiff(irad.Forward, kernel)[1, 8](Duplicated(X, np.ones(8)), Duplicated(value, tangent))
    np.testing.assert_allclose(tangent, 5.0 * X + np.sqrt(X))


def test_inactive_functions():
    @cuda.jit(device=True)
    def weight(x):
        return x * x

    irad.rules.inactive(weight)

    @cuda.jit
    def kernel(x, y):
        i = cuda.grid(1)
        y[i] = weight(x[i]) * x[i]

    np.testing.assert_allclose(gradient(kernel)[1], X * X)


def test_single_precision():
    @cuda.jit(device=True)
    def half(x):
        return x * np.float32(0.5)

    irad.rules.easy_rule(half, 3.0)

    @cuda.jit
    def kernel(x, y):
        i = cuda.grid(1)
        y[i] = half(x[i])

    value, shadow = gradient(kernel, X.astype(np.float32))
    assert value.dtype == np.float32
    np.testing.assert_array_equal(shadow, np.full(8, 3.0, np.float32))


def test_a_slope_of_zero_wins_over_infinity():
    @cuda.jit(device=True)
    def root(x):
        return math.sqrt(x)

    irad.rules.easy_rule(root, lambda x, value: 0.5 / value if value > 0 else math.inf)

    @cuda.jit
    def kernel(x, y):
        i = cuda.grid(1)
        y[i] = root(x[i]) * 0.0

    np.testing.assert_array_equal(gradient(kernel, np.array([0.0, 1.0]))[1], [0.0, 0.0])
