"""Step sizes: how large an error is, and what that makes the next step. All of it is constant to the derivative."""

from __future__ import annotations

import numpy as np
from numba import njit

from irad.api.custom.declarations import inactive

_SAFETY, _SMALLEST, _LARGEST = 0.9, 0.2, 10.0
_MEMORY = 0.04  # how much the last error counts, in powers of errors: Hairer's beta for Dormand–Prince


@inactive
@njit
def error_size(error, y, y1, rtol, atol):  # type: ignore[no-untyped-def]
    """The root mean square of an error relative to what is tolerated; at most 1 if the step is accepted, or NaN."""
    if y.size == 0:
        return 0.0
    total = 0.0
    for i in range(y.size):
        size = error[i] / (atol + rtol * max(abs(y[i]), abs(y1[i])))
        total += size * size
    return np.sqrt(total / y.size)


@inactive
@njit
def first_share(y, slope, length, rtol, atol, first):  # type: ignore[no-untyped-def]
    """The first step as a share of the whole length: what is asked for, or else a hundredth of what changes ``y``."""
    if length == 0.0:
        return 1.0
    if first > 0.0:
        return min(first / abs(length), 1.0)
    size = speed = 0.0
    for i in range(y.size):
        scale = atol + rtol * abs(y[i])
        size += (y[i] / scale) ** 2
        speed += (slope[i] / scale) ** 2
    step = 0.01 * np.sqrt(size / speed) if size > 1e-10 and speed > 1e-10 else 1e-6
    return min(step / abs(length), 1.0)


@inactive
@njit
def factor(size, before, order):  # type: ignore[no-untyped-def]
    """By what the next step is longer, after an accepted one: a PI controller.

    Args:
        size: of the error.
        before: of the error of the step before.
        order: of the error estimate, and 1.
    """
    if size == 0.0:
        return _LARGEST
    found = _SAFETY * size ** -(1.0 / order - 0.75 * _MEMORY) * before**_MEMORY
    return min(max(found, _SMALLEST), _LARGEST)


@inactive
@njit
def shrinking(size, order):  # type: ignore[no-untyped-def]
    """By what a rejected step is shorter when it is tried again."""
    if not np.isfinite(size):
        return 0.1
    return min(max(_SAFETY * size ** (-1.0 / order), _SMALLEST), 0.9)
