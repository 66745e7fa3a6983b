"""The gradient of the demo's model written by hand: an independent truth and a yardstick."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from irad.demo.model import Floats, log_sum_exp


@njit(error_model="numpy")
def value_and_gradient(parameters: Floats, points: Floats, components: int) -> tuple[float, Floats]:
    """Value and gradient of `irad.demo.model.negative_log_likelihood` by its parameters.

    One sweep over the points. With r = responsibility of component c for point x, and whitened = L⁻¹(x − mean), the
    cotangent of the whitened point is r·whitened; the triangular solve is reversed row by row.
    """
    n, d = points.shape
    k = components
    means = parameters[k : k + k * d].reshape(k, d)
    log_diagonals = parameters[k + k * d : k + 2 * k * d].reshape(k, d)
    below = parameters[k + 2 * k * d :].reshape(k, d * (d - 1) // 2)
    gradient = np.zeros(parameters.size)
    logits_bar = gradient[:k]
    means_bar = gradient[k : k + k * d].reshape(k, d)
    log_diagonals_bar = gradient[k + k * d : k + 2 * k * d].reshape(k, d)
    below_bar = gradient[k + 2 * k * d :].reshape(k, d * (d - 1) // 2)
    inverse_diagonals = np.exp(-log_diagonals)
    normaliser = log_sum_exp(parameters[:k])
    terms, whitened, whitened_bar = np.empty(k), np.empty((k, d)), np.empty(d)
    total = 0.0
    for i in range(n):
        for c in range(k):
            terms[c] = parameters[c]
            position = 0
            for row in range(d):
                rest = points[i, row] - means[c, row]
                for column in range(row):
                    rest -= below[c, position] * whitened[c, column]
                    position += 1
                whitened[c, row] = rest * inverse_diagonals[c, row]
                terms[c] -= log_diagonals[c, row] + 0.5 * whitened[c, row] ** 2
        evidence = log_sum_exp(terms)
        total -= evidence
        for c in range(k):
            responsibility = math.exp(terms[c] - evidence) / n
            logits_bar[c] -= responsibility
            for row in range(d):
                whitened_bar[row] = responsibility * whitened[c, row]
            for row in range(d - 1, -1, -1):
                log_diagonals_bar[c, row] += responsibility - whitened_bar[row] * whitened[c, row]
                rest_bar = whitened_bar[row] * inverse_diagonals[c, row]
                means_bar[c, row] -= rest_bar
                start = row * (row - 1) // 2
                for column in range(row):
                    below_bar[c, start + column] -= rest_bar * whitened[c, column]
                    whitened_bar[column] -= rest_bar * below[c, start + column]
    for c in range(k):
        logits_bar[c] += math.exp(parameters[c] - normaliser)
    return total / n + normaliser + 0.5 * d * math.log(2.0 * math.pi), gradient
