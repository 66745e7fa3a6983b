"""Negative log-likelihood of a linear Gaussian state-space model by the Kalman filter; one observation a step."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from bench.case import Case, Size
from bench.cases.vectors import add_product


@njit(error_model="numpy")
def loss(transition, noise, observed, variance, series):
    d = observed.size
    mean, covariance = np.zeros(d), np.eye(d)
    total = 0.0
    for value in series:
        predicted = np.zeros(d)
        half = np.zeros((d, d))
        spread = noise.copy()
        for i in range(d):
            for k in range(d):
                predicted[i] += transition[i, k] * mean[k]
                for j in range(d):
                    half[i, j] += transition[i, k] * covariance[k, j]
        for i in range(d):
            for j in range(d):
                for k in range(d):
                    spread[i, j] += half[i, k] * transition[j, k]
        gain = np.zeros(d)
        innovation, scale = value, variance
        for i in range(d):
            for j in range(d):
                gain[i] += spread[i, j] * observed[j]
            innovation -= observed[i] * predicted[i]
        for i in range(d):
            scale += observed[i] * gain[i]
        total += 0.5 * (math.log(2.0 * math.pi * scale) + innovation**2 / scale)
        for i in range(d):
            mean[i] = predicted[i] + gain[i] * innovation / scale
            for j in range(d):
                covariance[i, j] = spread[i, j] - gain[i] * gain[j] / scale
    return total


@njit(error_model="numpy")
def _filter(transition, noise, observed, variance, series, means, covariances, spreads, gains, scales):
    """The forward sweep; keeps means and covariances before each step, and what the step computes from them."""
    d = observed.size
    half, predicted = np.empty((d, d)), np.empty(d)
    means[0], covariances[0] = 0.0, np.eye(d)
    total = 0.0
    for t in range(series.size):
        mean, covariance, spread, gain = means[t], covariances[t], spreads[t], gains[t]
        for i in range(d):
            for j in range(d):
                half[i, j] = 0.0
            predicted[i] = 0.0
            for k in range(d):
                factor = transition[i, k]
                predicted[i] += factor * mean[k]
                for j in range(d):
                    half[i, j] += factor * covariance[k, j]
        innovation, scale = series[t], variance
        for i in range(d):
            gain[i] = 0.0
            for j in range(d):
                dot = noise[i, j]
                for k in range(d):
                    dot += half[i, k] * transition[j, k]
                spread[i, j] = dot
                gain[i] += dot * observed[j]
            innovation -= observed[i] * predicted[i]
            scale += observed[i] * gain[i]
        scales[t, 0], scales[t, 1] = innovation, scale
        total += 0.5 * (math.log(2.0 * math.pi * scale) + innovation * innovation / scale)
        for i in range(d):
            means[t + 1, i] = predicted[i] + gain[i] * innovation / scale
            for j in range(d):
                covariances[t + 1, i, j] = spread[i, j] - gain[i] * gain[j] / scale
    return total


@njit(error_model="numpy")
def hand(transition, noise, observed, variance, series):
    """Keeps what `_filter` does; the cotangents of mean and covariance run backwards through arrays of their own."""
    n, d = series.size, observed.size
    means, covariances, spreads = np.empty((n + 1, d)), np.empty((n + 1, d, d)), np.empty((n, d, d))
    gains, scales = np.empty((n, d)), np.empty((n, 2))
    total = _filter(transition, noise, observed, variance, series, means, covariances, spreads, gains, scales)
    transition_bar, noise_bar, variance_bar = np.zeros((d, d)), np.zeros((d, d)), 0.0
    mean_bar, covariance_bar = np.zeros(d), np.zeros((d, d))
    gain_bar, half, half_bar = np.empty(d), np.empty((d, d)), np.empty((d, d))
    predicted_bar, spread_bar = np.empty(d), np.empty((d, d))
    for t in range(n - 1, -1, -1):
        mean, covariance, gain = means[t], covariances[t], gains[t]
        innovation, inverse = scales[t, 0], 1.0 / scales[t, 1]
        scale_bar = 0.5 * inverse * (1.0 - innovation * innovation * inverse)
        innovation_bar = innovation * inverse
        for i in range(d):
            gain_bar[i] = mean_bar[i] * innovation * inverse
            innovation_bar += mean_bar[i] * gain[i] * inverse
            scale_bar -= mean_bar[i] * gain[i] * innovation * inverse * inverse
            for j in range(d):
                both = covariance_bar[i, j] + covariance_bar[j, i]
                gain_bar[i] -= both * gain[j] * inverse
                scale_bar += covariance_bar[i, j] * gain[i] * gain[j] * inverse * inverse
        variance_bar += scale_bar
        for i in range(d):
            gain_bar[i] += scale_bar * observed[i]
            predicted_bar[i] = mean_bar[i] - innovation_bar * observed[i]
            for j in range(d):
                spread_bar[i, j] = covariance_bar[i, j] + gain_bar[i] * observed[j]
                noise_bar[i, j] += spread_bar[i, j]
                half[i, j], half_bar[i, j] = 0.0, 0.0
            for k in range(d):
                for j in range(d):
                    half[i, j] += transition[i, k] * covariance[k, j]
        for i in range(d):
            for j in range(d):
                for k in range(d):
                    half_bar[i, k] += spread_bar[i, j] * transition[j, k]
                    transition_bar[j, k] += spread_bar[i, j] * half[i, k]
        for i in range(d):
            mean_bar[i] = 0.0
            for j in range(d):
                covariance_bar[i, j] = 0.0
        for i in range(d):
            for k in range(d):
                dot = predicted_bar[i] * mean[k]
                mean_bar[k] += transition[i, k] * predicted_bar[i]
                for j in range(d):
                    dot += half_bar[i, j] * covariance[k, j]
                    covariance_bar[k, j] += transition[i, k] * half_bar[i, j]
                transition_bar[i, k] += dot
    return total, (transition_bar, noise_bar, variance_bar)


@njit(error_model="numpy", fastmath={"reassoc", "contract"})
def _covariances(transition, noise, observed, variance, covariances, gains, scales):
    """Covariances, gains and variances of the first steps; returns the one from which they stay the same."""
    n, d = gains.shape
    covariances[0] = np.eye(d)
    half, spread, turned = np.empty((d, d)), np.empty((d, d)), transition.T.copy()
    for t in range(n):
        before, after, gain = covariances[t], covariances[t + 1], gains[t]
        np.dot(transition, before, half)
        np.dot(half, turned, spread)
        scale, moved, largest = variance, 0.0, 0.0
        for i in range(d):
            dot = 0.0
            for j in range(d):
                spread[i, j] += noise[i, j]
                dot += spread[i, j] * observed[j]
            gain[i] = dot
            scale += dot * observed[i]
        scales[t] = scale
        for i in range(d):
            for j in range(d):
                after[i, j] = spread[i, j] - gain[i] * gain[j] / scale
                moved = max(moved, abs(after[i, j] - before[i, j]))
                largest = max(largest, abs(after[i, j]))
        if moved <= 1e-14 * largest:
            return t
    return n - 1


@njit(error_model="numpy", fastmath={"reassoc", "contract"})
def _means(transition, observed, series, gains, scales, steady, means, innovations):
    """The filter with known gains; returns minus the logarithm of the likelihood."""
    d = observed.size
    predicted = np.empty(d)
    means[0] = 0.0
    total = 0.5 * (series.size - steady) * math.log(2.0 * math.pi * scales[steady])
    for t in range(series.size):
        k = min(t, steady)
        innovation = series[t]
        for i in range(d):
            dot = 0.0
            for j in range(d):
                dot += transition[i, j] * means[t, j]
            predicted[i] = dot
            innovation -= observed[i] * dot
        ratio = innovation / scales[k]
        for i in range(d):
            means[t + 1, i] = predicted[i] + gains[k, i] * ratio
        innovations[t] = innovation
        total += 0.5 * innovation * ratio
        if t < steady:
            total += 0.5 * math.log(2.0 * math.pi * scales[t])
    return total


@njit(error_model="numpy", fastmath={"reassoc", "contract"})
def _step_back(transition, across, gain, inverse):
    """Map of the covariance's cotangent through a step, as a matrix of entries times entries."""
    d = gain.size
    out = np.empty((d, d, d, d))
    for k in range(d):
        for m in range(d):
            both = inverse * inverse * gain[k] * gain[m]
            for i in range(d):
                straight = transition[k, i]
                turned = both * across[i] - inverse * (gain[m] * straight + gain[k] * transition[m, i])
                for j in range(d):
                    out[k, m, i, j] = straight * transition[m, j] + turned * across[j]
    return out.reshape(d * d, d * d)


@njit(error_model="numpy", fastmath={"reassoc", "contract"})
def _means_back(transition, observed, innovations, gains, scales, steady, sources, scale_bars, predicted_bars):
    """Cotangents of the means, and what each step adds to those of its gain and variance."""
    d = observed.size
    mean_bar = np.zeros(d)
    for t in range(innovations.size - 1, -1, -1):
        k = min(t, steady)
        inverse, along = 1.0 / scales[k], 0.0
        for i in range(d):
            along += mean_bar[i] * gains[k, i]
        ratio = innovations[t] * inverse
        scale_bars[t] = 0.5 * (inverse - ratio * ratio) - along * ratio * inverse
        innovation_bar = ratio + along * inverse
        for i in range(d):
            sources[t, i] = mean_bar[i] * ratio + scale_bars[t] * observed[i]
            predicted_bars[t, i] = mean_bar[i] - innovation_bar * observed[i]
        for i in range(d):
            mean_bar[i] = 0.0
        for j in range(d):
            factor = predicted_bars[t, j]
            for i in range(d):
                mean_bar[i] += transition[j, i] * factor


@njit(error_model="numpy", fastmath={"reassoc", "contract"})
def _steady_bars(matrix, sources, across, bar):
    """Sum of the cotangents of equal covariances; ``bar`` becomes that of the first.

    That needs only the steps after which a power of the matrix vanishes; the sum solves a linear system.
    """
    n, d = sources.shape
    power, reach = matrix, 1
    while reach < n and np.max(np.abs(power)) > 1e-14:
        power = np.dot(power, power)
        reach *= 2
    total, after = np.zeros(d * d), np.empty(d * d)
    for t in range(min(n, reach) - 1, -1, -1):
        for i in range(d):
            for j in range(d):
                total[i * d + j] += bar[i * d + j]
                after[i * d + j] = sources[t, i] * across[j]
        add_product(bar, matrix, after)
        bar[:] = after
    if reach < n:
        right = np.outer(np.sum(sources, axis=0), across).ravel() - bar
        total = np.linalg.solve(np.eye(d * d) - matrix.T, right)
    return total.reshape(d, d)


@njit(error_model="numpy", fastmath={"reassoc", "contract"})
def _spread_bar(bar, gain, inverse, source, observed, out):
    """Cotangent of the spread from that of the covariance; returns what the variance gets by the covariance."""
    d = gain.size
    pressure = 0.0
    for i in range(d):
        for j in range(d):
            pressure += bar[i, j] * gain[i] * gain[j] * inverse * inverse
    for i in range(d):
        factor = source[i] + pressure * observed[i]
        for j in range(d):
            factor -= inverse * (bar[i, j] + bar[j, i]) * gain[j]
        for j in range(d):
            out[i, j] = bar[i, j] + factor * observed[j]
    return pressure


@njit(error_model="numpy", fastmath={"reassoc", "contract"})
def hand_opt(transition, noise, observed, variance, series):
    """Covariances soon stay the same: then steps are of vectors, and only the sum of their cotangents counts."""
    n, d = series.size, observed.size
    covariances, gains, scales = np.empty((n + 1, d, d)), np.empty((n, d)), np.empty(n)
    means, innovations = np.empty((n + 1, d)), np.empty(n)
    steady = _covariances(transition, noise, observed, variance, covariances, gains, scales)
    total = _means(transition, observed, series, gains, scales, steady, means, innovations)
    sources, scale_bars, predicted_bars = np.empty((n, d)), np.empty(n), np.empty((n, d))
    _means_back(transition, observed, innovations, gains, scales, steady, sources, scale_bars, predicted_bars)
    noise_bar, variance_bar = np.zeros((d, d)), np.sum(scale_bars)
    across, bar = np.dot(transition.T, observed), np.zeros((d, d))
    matrix = _step_back(transition, across, gains[steady], 1.0 / scales[steady])
    bar_sum = _steady_bars(matrix, np.dot(sources[steady:], transition), across, bar.reshape(d * d))
    source_sum = np.sum(sources[steady:], axis=0)
    spread_bar, product, turned = np.empty((d, d)), np.empty((d, d)), transition.T.copy()
    transition_bar = np.dot(predicted_bars.T, means[:n])
    for t in range(steady, -1, -1):
        source, cotangent = (source_sum, bar_sum) if t == steady else (sources[t], bar)
        variance_bar += _spread_bar(cotangent, gains[t], 1.0 / scales[t], source, observed, spread_bar)
        noise_bar += spread_bar
        np.dot(transition, covariances[t], product)
        transition_bar += np.dot(spread_bar.T, product)
        np.dot(spread_bar, transition, product)
        transition_bar += np.dot(product, covariances[t].T)
        if t < steady:
            np.dot(turned, product, bar)
    return total, (transition_bar, noise_bar, variance_bar)


def make(size: Size) -> tuple[Any, ...]:
    """A stable model."""
    n, d = {"small": (4, 2), "medium": (100, 4), "full": (1_000, 6)}[size]
    rng = np.random.default_rng(17)
    transition = 0.8 * np.eye(d) + 0.1 * rng.standard_normal((d, d)) / math.sqrt(d)
    return transition, 0.2 * np.eye(d) + 0.01, rng.standard_normal(d), 0.5, rng.standard_normal(n)


CASE = Case("kalman", "Kalman-filter likelihood, 1,000 steps, 6 states", loss, hand, make, (0, 1, 3), hand_opt)
