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


@njit(error_model="numpy", fastmath={"reassoc", "contract"})
def _split(image, windows, rows, columns):
    """The 16 pixels under the four filters of a maximum, each as a vector over all maxima."""
    for p in range(4):
        for i in range(rows):
            row, at = image[2 * i + p], i * columns
            w0, w1, w2, w3 = windows[4 * p], windows[4 * p + 1], windows[4 * p + 2], windows[4 * p + 3]
            for j in range(columns):
                w0[at + j] = row[2 * j]
                w1[at + j] = row[2 * j + 1]
                w2[at + j] = row[2 * j + 2]
                w3[at + j] = row[2 * j + 3]


@njit(error_model="numpy", fastmath={"reassoc", "contract"})
def _convolve(f, w, best, places):
    """Largest of four filtered values or 0, and which it was; -1 where it was none."""
    f0, f1, f2, f3, f4, f5, f6, f7, f8 = f[0], f[1], f[2], f[3], f[4], f[5], f[6], f[7], f[8]
    for r in range(best.size):
        v0 = f0 * w[0, r] + f1 * w[1, r] + f2 * w[2, r] + f3 * w[4, r] + f4 * w[5, r] + f5 * w[6, r]
        v0 += f6 * w[8, r] + f7 * w[9, r] + f8 * w[10, r]
        v1 = f0 * w[1, r] + f1 * w[2, r] + f2 * w[3, r] + f3 * w[5, r] + f4 * w[6, r] + f5 * w[7, r]
        v1 += f6 * w[9, r] + f7 * w[10, r] + f8 * w[11, r]
        v2 = f0 * w[4, r] + f1 * w[5, r] + f2 * w[6, r] + f3 * w[8, r] + f4 * w[9, r] + f5 * w[10, r]
        v2 += f6 * w[12, r] + f7 * w[13, r] + f8 * w[14, r]
        v3 = f0 * w[5, r] + f1 * w[6, r] + f2 * w[7, r] + f3 * w[9, r] + f4 * w[10, r] + f5 * w[11, r]
        v3 += f6 * w[13, r] + f7 * w[14, r] + f8 * w[15, r]
        value, place = 0.0, -1
        value, place = (v0, 0) if v0 > value else (value, place)
        value, place = (v1, 1) if v1 > value else (value, place)
        value, place = (v2, 2) if v2 > value else (value, place)
        value, place = (v3, 3) if v3 > value else (value, place)
        best[r], places[r] = value, place


@njit(error_model="numpy", fastmath={"reassoc", "contract"})
def _add_filter_bar(bar, w, best_bar, places):
    """Each cotangent of a maximum meets the nine pixels under the filter that gave it; masks in place of jumps."""
    s0, s1, s2, s3, s4, s5, s6, s7, s8 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for r in range(best_bar.size):
        factor, place = best_bar[r], places[r]
        m0, m1 = factor if place == 0 else 0.0, factor if place == 1 else 0.0
        m2, m3 = factor if place == 2 else 0.0, factor if place == 3 else 0.0
        s0 += m0 * w[0, r] + m1 * w[1, r] + m2 * w[4, r] + m3 * w[5, r]
        s1 += m0 * w[1, r] + m1 * w[2, r] + m2 * w[5, r] + m3 * w[6, r]
        s2 += m0 * w[2, r] + m1 * w[3, r] + m2 * w[6, r] + m3 * w[7, r]
        s3 += m0 * w[4, r] + m1 * w[5, r] + m2 * w[8, r] + m3 * w[9, r]
        s4 += m0 * w[5, r] + m1 * w[6, r] + m2 * w[9, r] + m3 * w[10, r]
        s5 += m0 * w[6, r] + m1 * w[7, r] + m2 * w[10, r] + m3 * w[11, r]
        s6 += m0 * w[8, r] + m1 * w[9, r] + m2 * w[12, r] + m3 * w[13, r]
        s7 += m0 * w[9, r] + m1 * w[10, r] + m2 * w[13, r] + m3 * w[14, r]
        s8 += m0 * w[10, r] + m1 * w[11, r] + m2 * w[14, r] + m3 * w[15, r]
    for p, s in enumerate((s0, s1, s2, s3, s4, s5, s6, s7, s8)):
        bar[p] += s


@njit(error_model="numpy", fastmath={"reassoc", "contract"})
def hand_opt(filters, dense, images, targets):
    """Maxima side by side in vectors, with masks for their places; the dense layer is products of matrices."""
    batch, channels, outputs = images.shape[0], filters.shape[0], dense.shape[0]
    rows, columns = (images.shape[1] - 2) // 2, (images.shape[2] - 2) // 2
    size = rows * columns
    flat, filters_bar = filters.reshape(channels, 9), np.zeros((channels, 9))
    windows = np.empty((16, size))
    features, places = np.empty((batch, channels * size)), np.empty((batch, channels * size), np.int8)
    for b in range(batch):
        _split(images[b], windows, rows, columns)
        for c in range(channels):
            part = slice(c * size, (c + 1) * size)
            _convolve(flat[c], windows, features[b, part], places[b, part])
    scores = np.dot(features, dense.T)
    total = 0.0
    for b in range(batch):
        for k in range(outputs):
            scores[b, k] -= targets[b, k]
            total += scores[b, k] * scores[b, k]
    dense_bar = np.dot(scores.T, features)
    np.dot(scores, dense, features)
    for b in range(batch):
        _split(images[b], windows, rows, columns)
        for c in range(channels):
            part = slice(c * size, (c + 1) * size)
            _add_filter_bar(filters_bar[c], windows, features[b, part], places[b, part])
    return 0.5 * total, (filters_bar.reshape(filters.shape), dense_bar)


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


CASE = Case(
    "cnn", "convolutional network of loops, 16 images of 30 × 30, 8 filters", loss, hand, make, (0, 1), hand_opt
)
