"""The kernel that reads images between their elements, and its rule.

x (samples, channels, ·, ·, ·), points (samples or 1, points, 3) in elements of x, y (samples, channels, points). What
lies outside is zero. `is_flat`: the first axis has one element and is not one of the image, so nothing lies behind it.

The value is linear in x; between elements it is a product of linear functions of the three coordinates. At an element
its slope is that towards larger coordinates.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

import irad
from irad.rules import AugmentedReturn, is_active

_TO_OUTPUT, _TO_INPUT, _TO_POINTS, _ALONG_POINTS = map(np.int64, range(4))


@njit(error_model="numpy")
def _cell(place, size):
    """The element at or before a place, and how far behind it that is; outside of the image, and for NaN, none."""
    if place > -1.0 and place < size:
        low = math.floor(place)
        return np.int64(low), place - type(place)(low)
    return size, type(place)(0.0)


@njit(error_model="numpy")
def _weigh(side, rest):
    """The weight of one of the two elements around a place, and the slope of that."""
    one = type(rest)(1.0)
    return (rest, one) if side == 1 else (one - rest, -one)


@njit(error_model="numpy")
def _visit(what, y, x, points, change, is_flat):
    """For all points, all elements around them: adds to y, to x, or to the cotangent or from the tangent of points."""
    for n in range(y.shape[0]):
        m = n if points.shape[0] > 1 else 0
        for p in range(y.shape[2]):
            low0, rest0 = _cell(points[m, p, 0], x.shape[2])
            low1, rest1 = _cell(points[m, p, 1], x.shape[3])
            low2, rest2 = _cell(points[m, p, 2], x.shape[4])
            for corner in range(4 if is_flat else 8):
                i, j, k = low0 + corner // 4, low1 + corner // 2 % 2, low2 + corner % 2
                if i < 0 or i >= x.shape[2] or j < 0 or j >= x.shape[3] or k < 0 or k >= x.shape[4]:
                    continue
                w0, slope0 = _weigh(corner // 4, rest0)
                w1, slope1 = _weigh(corner // 2 % 2, rest1)
                w2, slope2 = _weigh(corner % 2, rest2)
                if what == _TO_OUTPUT:
                    w = w0 * w1 * w2
                    if w != 0.0:  # what has no weight may be infinite
                        for c in range(y.shape[1]):
                            y[n, c, p] += w * x[n, c, i, j, k]
                elif what == _TO_INPUT:
                    for c in range(y.shape[1]):
                        x[n, c, i, j, k] += w0 * w1 * w2 * y[n, c, p]
                elif what == _TO_POINTS:
                    product = x.dtype.type(0.0)
                    for c in range(y.shape[1]):
                        product += x[n, c, i, j, k] * y[n, c, p]
                    change[m, p, 0] += slope0 * w1 * w2 * product
                    change[m, p, 1] += w0 * slope1 * w2 * product
                    change[m, p, 2] += w0 * w1 * slope2 * product
                else:
                    rate = slope0 * w1 * w2 * change[m, p, 0]
                    rate += w0 * slope1 * w2 * change[m, p, 1] + w0 * w1 * slope2 * change[m, p, 2]
                    for c in range(y.shape[1]):
                        y[n, c, p] += rate * x[n, c, i, j, k]


@njit
def add_samples(y, x, points, is_flat):
    """``y`` += x at the points."""
    _visit(_TO_OUTPUT, y, x, points, points, is_flat)


@irad.rules.augmented_primal(add_samples)
def _augmented(config, y, x, points, is_flat):
    add_samples(y.value, x.value, points.value, is_flat.value)
    kept_x = x.value.copy() if config.overwritten[1] and is_active(points) else x.value
    return AugmentedReturn(None, None, (kept_x, points.value.copy() if config.overwritten[2] else points.value))


@irad.rules.reverse(add_samples)
def _reverse(config, cotangent, tape, y, x, points, is_flat):
    if is_active(y):
        if is_active(x):
            _visit(_TO_INPUT, y.shadow, x.shadow, tape[1], tape[1], is_flat.value)
        if is_active(points):
            _visit(_TO_POINTS, y.shadow, tape[0], tape[1], points.shadow, is_flat.value)
    return None, None, None, None


@irad.rules.forward(add_samples)
def _forward(config, y, x, points, is_flat):
    if is_active(y):
        if is_active(x):
            _visit(_TO_OUTPUT, y.tangent, x.tangent, points.value, points.value, is_flat.value)
        if is_active(points):
            _visit(_ALONG_POINTS, y.tangent, x.value, points.value, points.tangent, is_flat.value)
    add_samples(y.value, x.value, points.value, is_flat.value)
