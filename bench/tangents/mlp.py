"""Perceptron: products by BLAS, the rest in one loop for each layer."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(error_model="numpy")
def _activate(sums, sums_dot, bias, bias_dot):
    """In place: tanh of the sums and the bias, and its tangent."""
    for i in range(sums.shape[0]):
        for j in range(sums.shape[1]):
            value = np.tanh(sums[i, j] + bias[j])
            sums[i, j] = value
            sums_dot[i, j] = (1.0 - value * value) * (sums_dot[i, j] + bias_dot[j])


@njit(error_model="numpy")
def _layer_dot(values, values_dot, weights, weights_dot):
    sums_dot = values @ weights_dot
    sums_dot += values_dot @ weights
    return sums_dot


@njit(error_model="numpy")
def hand(tangents, w1, b1, w2, b2, w3, b3, inputs, targets):
    """Two products by BLAS more for each layer."""
    w1_dot, b1_dot, w2_dot, b2_dot, w3_dot, b3_dot = tangents
    first, first_dot = inputs @ w1, inputs @ w1_dot
    _activate(first, first_dot, b1, b1_dot)
    second, second_dot = first @ w2, _layer_dot(first, first_dot, w2, w2_dot)
    _activate(second, second_dot, b2, b2_dot)
    output, output_dot = second @ w3, _layer_dot(second, second_dot, w3, w3_dot)
    total, total_dot = 0.0, 0.0
    for i in range(output.shape[0]):
        for j in range(output.shape[1]):
            difference = output[i, j] + b3[j] - targets[i, j]
            total += difference * difference
            total_dot += difference * (output_dot[i, j] + b3_dot[j])
    return total / output.size, 2.0 * total_dot / output.size
