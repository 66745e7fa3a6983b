"""Negative log-likelihood of a linear Gaussian state-space model by the Kalman filter; one observation a step."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from bench.case import Case, Size


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


def make(size: Size) -> tuple[Any, ...]:
    """A stable model."""
    n, d = {"small": (4, 2), "medium": (100, 4), "full": (1_000, 6)}[size]
    rng = np.random.default_rng(17)
    transition = 0.8 * np.eye(d) + 0.1 * rng.standard_normal((d, d)) / math.sqrt(d)
    return transition, 0.2 * np.eye(d) + 0.01, rng.standard_normal(d), 0.5, rng.standard_normal(n)


CASE = Case("kalman", "Kalman-filter likelihood, 1,000 steps, 6 states", loss, hand, make, (0, 1, 3))
