"""Log-likelihood of a Gaussian mixture with a Wishart prior, the GMM objective of ADBench.

Source: Šrajer, Kukelova, Fitzgibbon 2018, 'A benchmark of selected algorithmic differentiation tools on some problems
in computer vision and machine learning'. The inverse covariance factor of component k is the lower triangular matrix
with diagonal exp(q) and the entries l below it, stored column by column: ``factors[k] = (q, l)``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from bench.case import Case, Size


@njit(error_model="numpy")
def log_sum_exp(values):
    largest = values[0]
    for value in values:
        largest = max(largest, value)
    total = 0.0
    for value in values:
        total += math.exp(value - largest)
    return largest + math.log(total)


@njit(error_model="numpy")
def log_wishart_prior(factors, d, gamma, m):
    k = factors.shape[0]
    degrees = d + m + 1
    log_gamma = 0.25 * d * (d - 1) * math.log(math.pi)
    for j in range(1, d + 1):
        log_gamma += math.lgamma(0.5 * degrees + 0.5 * (1 - j))
    constant = degrees * d * (math.log(gamma) - 0.5 * math.log(2.0)) - log_gamma
    out = 0.0
    for ik in range(k):
        frobenius = 0.0
        sum_q = 0.0
        for i in range(d):
            frobenius += math.exp(factors[ik, i]) ** 2
            sum_q += factors[ik, i]
        for i in range(d, factors.shape[1]):
            frobenius += factors[ik, i] ** 2
        out += 0.5 * gamma * gamma * frobenius - m * sum_q
    return out - k * constant


@njit(error_model="numpy")
def log_likelihood(alphas, means, factors, points, gamma, m):
    n, d = points.shape
    k = alphas.shape[0]
    diagonals = np.exp(factors[:, :d])
    sum_q = np.zeros(k)
    for ik in range(k):
        for i in range(d):
            sum_q[ik] += factors[ik, i]
    centred = np.empty(d)
    scaled = np.empty(d)
    terms = np.empty(k)
    total = 0.0
    for ix in range(n):
        for ik in range(k):
            for i in range(d):
                centred[i] = points[ix, i] - means[ik, i]
                scaled[i] = diagonals[ik, i] * centred[i]
            position = d
            for i in range(d):
                for j in range(i + 1, d):
                    scaled[j] += factors[ik, position] * centred[i]
                    position += 1
            norm = 0.0
            for i in range(d):
                norm += scaled[i] * scaled[i]
            terms[ik] = alphas[ik] + sum_q[ik] - 0.5 * norm
        total += log_sum_exp(terms)
    constant = -0.5 * n * d * math.log(2.0 * math.pi)
    return constant + total - n * log_sum_exp(alphas) + log_wishart_prior(factors, d, gamma, m)


@njit(error_model="numpy")
def hand(alphas, means, factors, points, gamma, m):
    """One sweep: each point's forward and adjoint run together, the scaled differences of its k components are kept.

    The factors are unpacked to columns first: the packed position would hide from LLVM that accesses are contiguous.
    """
    n, d = points.shape
    k = alphas.shape[0]
    alphas_bar, means_bar, factors_bar = np.zeros(k), np.zeros(means.shape), np.zeros(factors.shape)
    diagonals = np.exp(factors[:, :d])
    columns, columns_bar = np.zeros((k, d, d)), np.zeros((k, d, d))
    offsets = np.empty(k)
    for ik in range(k):
        offsets[ik] = alphas[ik] + np.sum(factors[ik, :d])
        position = d
        for i in range(d):
            columns[ik, i, i] = diagonals[ik, i]
            for j in range(i + 1, d):
                columns[ik, i, j] = factors[ik, position]
                position += 1
    weight_sums = np.zeros(k)
    centred, scaled = np.empty((k, d)), np.zeros((k, d))
    terms = np.empty(k)
    total = 0.0
    for ix in range(n):
        largest = -np.inf
        for ik in range(k):
            for i in range(d):
                centred[ik, i] = points[ix, i] - means[ik, i]
                scaled[ik, i] = 0.0
            for i in range(d):
                difference = centred[ik, i]
                for j in range(i, d):
                    scaled[ik, j] += columns[ik, i, j] * difference
            norm = 0.0
            for i in range(d):
                norm += scaled[ik, i] * scaled[ik, i]
            terms[ik] = offsets[ik] - 0.5 * norm
            largest = max(largest, terms[ik])
        exponentials = 0.0
        for ik in range(k):
            terms[ik] = math.exp(terms[ik] - largest)
            exponentials += terms[ik]
        total += largest + math.log(exponentials)
        for ik in range(k):
            weight = terms[ik] / exponentials
            weight_sums[ik] += weight
            for i in range(d):
                scaled[ik, i] *= -weight
            for i in range(d):
                difference = centred[ik, i]
                difference_bar = 0.0
                for j in range(i, d):
                    columns_bar[ik, i, j] += scaled[ik, j] * difference
                    difference_bar += scaled[ik, j] * columns[ik, i, j]
                means_bar[ik, i] -= difference_bar
    for ik in range(k):
        position = d
        for i in range(d):
            diagonal = diagonals[ik, i]
            factors_bar[ik, i] = weight_sums[ik] + columns_bar[ik, i, i] * diagonal + (gamma * diagonal) ** 2 - m
            for j in range(i + 1, d):
                factors_bar[ik, position] = columns_bar[ik, i, j] + gamma * gamma * columns[ik, i, j]
                position += 1
    largest = np.max(alphas)
    exponentials = np.sum(np.exp(alphas - largest))
    for ik in range(k):
        alphas_bar[ik] = weight_sums[ik] - n * math.exp(alphas[ik] - largest) / exponentials
    normaliser = n * (largest + math.log(exponentials))
    value = total - normaliser - 0.5 * n * d * math.log(2.0 * math.pi) + log_wishart_prior(factors, d, gamma, m)
    return value, (alphas_bar, means_bar, factors_bar)


@njit(error_model="numpy", fastmath={"reassoc", "contract"})
def hand_opt(alphas, means, factors, points, gamma, m):
    """Blocks of points, of which the scaled differences are kept: per component three products of matrices."""
    n, d = points.shape
    k = alphas.shape[0]
    lower, lower_bar = np.zeros((k, d, d)), np.zeros((k, d, d))
    offsets, weight_sums, means_bar = np.empty(k), np.zeros(k), np.zeros((k, d))
    for ik in range(k):
        offsets[ik] = alphas[ik] + np.sum(factors[ik, :d])
        position = d
        for i in range(d):
            lower[ik, i, i] = math.exp(factors[ik, i])
            for j in range(i + 1, d):
                lower[ik, j, i] = factors[ik, position]
                position += 1
    block = min(n, 64)
    centred, scaled = np.empty((k, block, d)), np.empty((k, block, d))
    terms, back, outer = np.empty((k, block)), np.empty((block, d)), np.empty((d, d))
    total = 0.0
    for start in range(0, n, block):
        size = min(block, n - start)
        for ik in range(k):
            for ix in range(size):
                for i in range(d):
                    centred[ik, ix, i] = points[start + ix, i] - means[ik, i]
            np.dot(centred[ik, :size], lower[ik].T, scaled[ik, :size])
            for ix in range(size):
                norm = 0.0
                for i in range(d):
                    norm += scaled[ik, ix, i] * scaled[ik, ix, i]
                terms[ik, ix] = offsets[ik] - 0.5 * norm
        for ix in range(size):
            largest, exponentials = -np.inf, 0.0
            for ik in range(k):
                largest = max(largest, terms[ik, ix])
            for ik in range(k):
                terms[ik, ix] = math.exp(terms[ik, ix] - largest)
                exponentials += terms[ik, ix]
            total += largest + math.log(exponentials)
            for ik in range(k):
                terms[ik, ix] /= exponentials
        for ik in range(k):
            for ix in range(size):
                weight_sums[ik] += terms[ik, ix]
                for i in range(d):
                    scaled[ik, ix, i] *= -terms[ik, ix]
            np.dot(scaled[ik, :size].T, centred[ik, :size], outer)
            np.dot(scaled[ik, :size], lower[ik], back[:size])
            for i in range(d):
                for j in range(d):
                    lower_bar[ik, i, j] += outer[i, j]
            for ix in range(size):
                for i in range(d):
                    means_bar[ik, i] -= back[ix, i]
    alphas_bar, factors_bar = np.empty(k), np.empty(factors.shape)
    for ik in range(k):
        position = d
        for i in range(d):
            diagonal = lower[ik, i, i]
            factors_bar[ik, i] = weight_sums[ik] + lower_bar[ik, i, i] * diagonal + (gamma * diagonal) ** 2 - m
            for j in range(i + 1, d):
                factors_bar[ik, position] = lower_bar[ik, j, i] + gamma * gamma * lower[ik, j, i]
                position += 1
    normaliser = log_sum_exp(alphas)
    for ik in range(k):
        alphas_bar[ik] = weight_sums[ik] - n * math.exp(alphas[ik] - normaliser)
    prior = log_wishart_prior(factors, d, gamma, m)
    return total - n * normaliser - 0.5 * n * d * math.log(2.0 * math.pi) + prior, (alphas_bar, means_bar, factors_bar)


def flops(alphas, means, factors, points, gamma, m):
    n, d = points.shape
    return n * alphas.size * (3 * d * (d + 1) + 5 * d)


def make(size: Size) -> tuple[Any, ...]:
    """Standard normal parameters and points, as ADBench draws them."""
    d, k, n = {"small": (3, 4, 7), "medium": (8, 5, 200), "full": (20, 25, 1000)}[size]
    rng = np.random.default_rng(1)
    factors = 0.3 * rng.standard_normal((k, d + d * (d - 1) // 2))
    return rng.standard_normal(k), rng.standard_normal((k, d)), factors, rng.standard_normal((n, d)), 1.0, 0


CASE = Case("gmm", "GMM log-likelihood, d=20, K=25, n=1000", log_likelihood, hand, make, (0, 1, 2), hand_opt, flops)
