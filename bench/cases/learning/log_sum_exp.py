"""Softmax regression with ten classes: cross-entropy by log-sum-exp, and a ridge penalty."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from bench.case import Case, Size


@njit(error_model="numpy")
def loss(weights, bias, features, labels, ridge):
    n, width = features.shape
    classes = bias.shape[0]
    scores = np.empty(classes)
    total = 0.0
    for i in range(n):
        for c in range(classes):
            scores[c] = bias[c]
        for j in range(width):
            for c in range(classes):
                scores[c] += features[i, j] * weights[j, c]
        largest = scores[0]
        for c in range(1, classes):
            if scores[c] > largest:
                largest = scores[c]
        exponentials = 0.0
        for c in range(classes):
            exponentials += math.exp(scores[c] - largest)
        total += largest + math.log(exponentials) - scores[labels[i]]
    penalty = 0.0
    for j in range(width):
        for c in range(classes):
            penalty += weights[j, c] * weights[j, c]
    return total / n + 0.5 * ridge * penalty


@njit(error_model="numpy")
def hand(weights, bias, features, labels, ridge):
    """Each row's forward and adjoint together; the maximum cancels and carries no cotangent."""
    n, width = features.shape
    classes = bias.shape[0]
    weights_bar, bias_bar = np.zeros((width, classes)), np.zeros(classes)
    scores = np.empty(classes)
    total = 0.0
    for i in range(n):
        scores[:] = bias
        for j in range(width):
            feature = features[i, j]
            for c in range(classes):
                scores[c] += feature * weights[j, c]
        largest = scores[0]
        for c in range(1, classes):
            largest = max(largest, scores[c])
        total += largest - scores[labels[i]]
        exponentials = 0.0
        for c in range(classes):
            scores[c] = math.exp(scores[c] - largest)
            exponentials += scores[c]
        total += math.log(exponentials)
        factor = 1.0 / (exponentials * n)
        for c in range(classes):
            scores[c] *= factor
        scores[labels[i]] -= 1.0 / n
        for c in range(classes):
            bias_bar[c] += scores[c]
        for j in range(width):
            feature = features[i, j]
            for c in range(classes):
                weights_bar[j, c] += feature * scores[c]
    penalty = 0.0
    for j in range(width):
        for c in range(classes):
            penalty += weights[j, c] * weights[j, c]
            weights_bar[j, c] += ridge * weights[j, c]
    return total / n + 0.5 * ridge * penalty, (weights_bar, bias_bar)


@njit(error_model="numpy", fastmath={"reassoc", "contract"})
def hand_opt(weights, bias, features, labels, ridge):
    """All rows at once: the scores are a product of matrices, and so is the gradient."""
    n = features.shape[0]
    classes = bias.shape[0]
    scores = np.dot(features, weights)
    bias_bar = np.zeros(classes)
    total = 0.0
    for i in range(n):
        row, label = scores[i], labels[i]
        largest = -np.inf
        for c in range(classes):
            row[c] += bias[c]
            largest = max(largest, row[c])
        total += largest - row[label]
        exponentials = 0.0
        for c in range(classes):
            row[c] = math.exp(row[c] - largest)
            exponentials += row[c]
        total += math.log(exponentials)
        factor = 1.0 / (exponentials * n)
        for c in range(classes):
            row[c] *= factor
        row[label] -= 1.0 / n
        for c in range(classes):
            bias_bar[c] += row[c]
    weights_bar = np.dot(features.T, scores)
    penalty = 0.0
    for j in range(weights.shape[0]):
        for c in range(classes):
            penalty += weights[j, c] * weights[j, c]
            weights_bar[j, c] += ridge * weights[j, c]
    return total / n + 0.5 * ridge * penalty, (weights_bar, bias_bar)


def flops(weights, bias, features, labels, ridge):
    return 4 * features.size * bias.size


def make(size: Size) -> tuple[Any, ...]:
    """Standard normal features, random labels."""
    n, width, classes = {"small": (8, 5, 3), "medium": (100, 20, 5), "full": (1000, 50, 10)}[size]
    rng = np.random.default_rng(5)
    weights, bias = 0.1 * rng.standard_normal((width, classes)), 0.1 * rng.standard_normal(classes)
    return weights, bias, rng.standard_normal((n, width)), rng.integers(0, classes, n), 0.01


CASE = Case("log-sum-exp", "Softmax regression, 1000×50, 10 classes", loss, hand, make, (0, 1), hand_opt, flops)
