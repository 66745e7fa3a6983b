"""A perceptron of three layers, tanh between them, mean squared loss: products of matrices, which are calls of BLAS."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from bench.case import Case, Size
from bench.cases.vectors import exponential


@njit(error_model="numpy")
def loss(w1, b1, w2, b2, w3, b3, inputs, targets):
    first = np.tanh(inputs @ w1 + b1)
    second = np.tanh(first @ w2 + b2)
    difference = second @ w3 + b3 - targets
    return np.sum(difference**2) / difference.size


@njit(error_model="numpy")
def hand(w1, b1, w2, b2, w3, b3, inputs, targets):
    """Activations in place of the products, cotangents in place of the differences; each gradient is one product."""
    first = np.dot(inputs, w1)
    for i in range(first.shape[0]):
        for j in range(first.shape[1]):
            first[i, j] = np.tanh(first[i, j] + b1[j])
    second = np.dot(first, w2)
    for i in range(second.shape[0]):
        for j in range(second.shape[1]):
            second[i, j] = np.tanh(second[i, j] + b2[j])
    return _from_activations(w2, w3, b3, inputs, targets, first, second)


@njit(error_model="numpy")
def _from_activations(w2, w3, b3, inputs, targets, first, second):
    """Value and gradient, from the activations of both hidden layers."""
    third_bar = np.dot(second, w3)
    total, factor = 0.0, 2.0 / third_bar.size
    b3_bar = np.zeros_like(b3)
    for i in range(third_bar.shape[0]):
        for j in range(third_bar.shape[1]):
            difference = third_bar[i, j] + b3[j] - targets[i, j]
            total += difference * difference
            third_bar[i, j] = factor * difference
            b3_bar[j] += third_bar[i, j]
    w3_bar = np.dot(second.T, third_bar)
    second_bar = np.dot(third_bar, w3.T)
    b2_bar = _through_tanh(second, second_bar)
    w2_bar = np.dot(first.T, second_bar)
    first_bar = np.dot(second_bar, w2.T)
    b1_bar = _through_tanh(first, first_bar)
    w1_bar = np.dot(inputs.T, first_bar)
    return total / third_bar.size, (w1_bar, b1_bar, w2_bar, b2_bar, w3_bar, b3_bar)


@njit(error_model="numpy")
def _through_tanh(activations, bar):
    """Turns cotangents of activations into those of what tanh was taken of; returns those of the bias."""
    bias_bar = np.zeros(bar.shape[1])
    for i in range(bar.shape[0]):
        for j in range(bar.shape[1]):
            bar[i, j] *= 1.0 - activations[i, j] * activations[i, j]
            bias_bar[j] += bar[i, j]
    return bias_bar


@njit(error_model="numpy", fastmath={"reassoc", "contract"})
def _activate(sums, bias):
    for i in range(sums.shape[0]):
        row = sums[i]
        for j in range(bias.size):
            row[j] = 1.0 - 2.0 / (1.0 + exponential(2.0 * (row[j] + bias[j])))


@njit(error_model="numpy", fastmath={"reassoc", "contract"})
def hand_opt(w1, b1, w2, b2, w3, b3, inputs, targets):
    """As by hand, which is products of matrices already, but with a hyperbolic tangent for vectors."""
    first = np.dot(inputs, w1)
    _activate(first, b1)
    second = np.dot(first, w2)
    _activate(second, b2)
    return _from_activations(w2, w3, b3, inputs, targets, first, second)


def flops(w1, b1, w2, b2, w3, b3, inputs, targets):
    return 2 * inputs.shape[0] * (2 * w1.size + 3 * w2.size + 3 * w3.size)


def make(size: Size) -> tuple[Any, ...]:
    """Standard normal inputs and targets, weights that keep the variance."""
    batch, width = {"small": (4, 3), "medium": (16, 32), "full": (64, 256)}[size]
    rng = np.random.default_rng(6)
    layers: list[Any] = []
    for _ in range(3):
        layers += [rng.standard_normal((width, width)) / np.sqrt(width), 0.1 * rng.standard_normal(width)]
    return *layers, rng.standard_normal((batch, width)), rng.standard_normal((batch, width))


CASE = Case(
    "mlp", "Perceptron, 3 layers, batch 64, width 256, tanh", loss, hand, make, tuple(range(6)), hand_opt, flops
)
