"""Softmax regression: scores and their tangents side by side."""

from __future__ import annotations

import math

import numpy as np
from numba import njit


@njit(error_model="numpy")
def hand(tangents, weights, bias, features, labels, ridge):
    """Exponentials weigh the tangents of the scores."""
    weights_dot, bias_dot = tangents
    n, width = features.shape
    classes = bias.shape[0]
    scores, scores_dot = np.empty(classes), np.empty(classes)
    total, total_dot = 0.0, 0.0
    for i in range(n):
        for c in range(classes):
            scores[c], scores_dot[c] = bias[c], bias_dot[c]
        for j in range(width):
            feature = features[i, j]
            for c in range(classes):
                scores[c] += feature * weights[j, c]
                scores_dot[c] += feature * weights_dot[j, c]
        largest = scores[0]
        for c in range(1, classes):
            if scores[c] > largest:
                largest = scores[c]
        exponentials, weighted = 0.0, 0.0
        for c in range(classes):
            exponential = math.exp(scores[c] - largest)
            exponentials += exponential
            weighted += exponential * scores_dot[c]
        total += largest + math.log(exponentials) - scores[labels[i]]
        total_dot += weighted / exponentials - scores_dot[labels[i]]
    penalty, penalty_dot = 0.0, 0.0
    for j in range(width):
        for c in range(classes):
            penalty += weights[j, c] * weights[j, c]
            penalty_dot += weights[j, c] * weights_dot[j, c]
    return total / n + 0.5 * ridge * penalty, total_dot / n + ridge * penalty_dot
