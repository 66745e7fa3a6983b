"""A convolutional network of loops: 3 × 3 filters, a ramp, the largest of 2 × 2, a dense layer, squared loss."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from bench.case import Case, Size


@njit(error_model="numpy")
def loss(filters, dense, images, targets):
    channels, height, width = filters.shape[0], images.shape[1] - 2, images.shape[2] - 2
    pooled = np.empty((channels, height // 2, width // 2))
    mapped = np.empty((height, width))
    total = 0.0
    for b in range(images.shape[0]):
        for c in range(channels):
            for i in range(height):
                for j in range(width):
                    value = 0.0
                    for p in range(3):
                        for q in range(3):
                            value += filters[c, p, q] * images[b, i + p, j + q]
                    mapped[i, j] = max(value, 0.0)
            for i in range(height // 2):
                for j in range(width // 2):
                    top = max(mapped[2 * i, 2 * j], mapped[2 * i, 2 * j + 1])
                    bottom = max(mapped[2 * i + 1, 2 * j], mapped[2 * i + 1, 2 * j + 1])
                    pooled[c, i, j] = max(top, bottom)
        features = pooled.ravel()
        for k in range(dense.shape[0]):
            score = 0.0
            for i in range(features.size):
                score += dense[k, i] * features[i]
            total += (score - targets[b, k]) ** 2
    return 0.5 * total


@njit(error_model="numpy")
def hand(filters, dense, images, targets):
    """An image at a time; of each maximum its place is kept, and a filter's cotangent meets only these."""
    channels, height, width = filters.shape[0], images.shape[1] - 2, images.shape[2] - 2
    rows, columns = height // 2, width // 2
    filters_bar, dense_bar = np.zeros(filters.shape), np.zeros(dense.shape)
    features, features_bar = np.empty(channels * rows * columns), np.empty(channels * rows * columns)
    places = np.empty((features.size, 2), np.int64)
    mapped = np.empty((height, width))
    total = 0.0
    for b in range(images.shape[0]):
        image = images[b]
        at = 0
        for c in range(channels):
            f00, f01, f02 = filters[c, 0, 0], filters[c, 0, 1], filters[c, 0, 2]
            f10, f11, f12 = filters[c, 1, 0], filters[c, 1, 1], filters[c, 1, 2]
            f20, f21, f22 = filters[c, 2, 0], filters[c, 2, 1], filters[c, 2, 2]
            for i in range(height):
                for j in range(width):
                    value = f00 * image[i, j] + f01 * image[i, j + 1] + f02 * image[i, j + 2]
                    value += f10 * image[i + 1, j] + f11 * image[i + 1, j + 1] + f12 * image[i + 1, j + 2]
                    value += f20 * image[i + 2, j] + f21 * image[i + 2, j + 1] + f22 * image[i + 2, j + 2]
                    mapped[i, j] = value
            for i in range(rows):
                for j in range(columns):
                    best, row, column = 0.0, -1, -1
                    for p in range(2 * i, 2 * i + 2):
                        for q in range(2 * j, 2 * j + 2):
                            if mapped[p, q] > best:
                                best, row, column = mapped[p, q], p, q
                    features[at], features_bar[at] = best, 0.0
                    places[at, 0], places[at, 1] = row, column
                    at += 1
        for k in range(dense.shape[0]):
            score = 0.0
            for i in range(features.size):
                score += dense[k, i] * features[i]
            difference = score - targets[b, k]
            total += difference * difference
            for i in range(features.size):
                dense_bar[k, i] += difference * features[i]
                features_bar[i] += difference * dense[k, i]
        at = 0
        for c in range(channels):
            for _ in range(rows * columns):
                row, column, factor = places[at, 0], places[at, 1], features_bar[at]
                at += 1
                if row >= 0:
                    for p in range(3):
                        for q in range(3):
                            filters_bar[c, p, q] += factor * image[row + p, column + q]
    return 0.5 * total, (filters_bar, dense_bar)


def make(size: Size) -> tuple[Any, ...]:
    """Noise."""
    batch, channels, side, outputs = {"small": (2, 2, 6, 2), "medium": (4, 4, 14, 5), "full": (16, 8, 30, 10)}[size]
    rng = np.random.default_rng(19)
    features = channels * ((side - 2) // 2) ** 2
    return (
        rng.standard_normal((channels, 3, 3)) / 3.0,
        rng.standard_normal((outputs, features)) / np.sqrt(features),
        rng.standard_normal((batch, side, side)),
        rng.standard_normal((batch, outputs)),
    )


CASE = Case("cnn", "convolutional network of loops, 16 images of 30 × 30, 8 filters", loss, hand, make, (0, 1))
