"""GMM log-likelihood: the tangents of the centred and scaled points beside them, softmax weights for the sums."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from bench.cases.learning.gmm import log_wishart_prior


@njit(error_model="numpy")
def _log_sum_exp(values, values_dot):
    largest = values[0]
    for value in values:
        largest = max(largest, value)
    total, total_dot = 0.0, 0.0
    for i in range(values.size):
        exponential = math.exp(values[i] - largest)
        total += exponential
        total_dot += exponential * values_dot[i]
    return largest + math.log(total), total_dot / total


@njit(error_model="numpy")
def _prior_dot(factors, factors_dot, diagonals, d, gamma, m):
    out = 0.0
    for ik in range(factors.shape[0]):
        for i in range(d):
            out += (gamma * gamma * diagonals[ik, i] ** 2 - m) * factors_dot[ik, i]
        for i in range(d, factors.shape[1]):
            out += gamma * gamma * factors[ik, i] * factors_dot[ik, i]
    return out


@njit(error_model="numpy")
def hand(tangents, alphas, means, factors, points, gamma, m):
    """The tangent of a norm is a product of the scaled point and its tangent."""
    alphas_dot, means_dot, factors_dot = tangents
    n, d = points.shape
    k = alphas.shape[0]
    diagonals = np.exp(factors[:, :d])
    diagonals_dot = diagonals * factors_dot[:, :d]
    sums, sums_dot = np.zeros(k), np.zeros(k)
    for ik in range(k):
        for i in range(d):
            sums[ik] += factors[ik, i]
            sums_dot[ik] += factors_dot[ik, i]
    centred, scaled, scaled_dot = np.empty(d), np.empty(d), np.empty(d)
    terms, terms_dot = np.empty(k), np.empty(k)
    total, total_dot = 0.0, 0.0
    for ix in range(n):
        for ik in range(k):
            for i in range(d):
                centred[i] = points[ix, i] - means[ik, i]
                scaled[i] = diagonals[ik, i] * centred[i]
                scaled_dot[i] = diagonals_dot[ik, i] * centred[i] - diagonals[ik, i] * means_dot[ik, i]
            position = d
            for i in range(d):
                for j in range(i + 1, d):
                    factor = factors[ik, position]
                    scaled[j] += factor * centred[i]
                    scaled_dot[j] += factors_dot[ik, position] * centred[i] - factor * means_dot[ik, i]
                    position += 1
            norm, norm_dot = 0.0, 0.0
            for i in range(d):
                norm += scaled[i] * scaled[i]
                norm_dot += scaled[i] * scaled_dot[i]
            terms[ik] = alphas[ik] + sums[ik] - 0.5 * norm
            terms_dot[ik] = alphas_dot[ik] + sums_dot[ik] - norm_dot
        value, value_dot = _log_sum_exp(terms, terms_dot)
        total += value
        total_dot += value_dot
    constant = -0.5 * n * d * math.log(2.0 * math.pi)
    weight, weight_dot = _log_sum_exp(alphas, alphas_dot)
    prior = log_wishart_prior(factors, d, gamma, m)
    prior_dot = _prior_dot(factors, factors_dot, diagonals, d, gamma, m)
    return constant + total - n * weight + prior, total_dot - n * weight_dot + prior_dot
