"""Windows of short-time Fourier transforms."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from irad.nn.array import Array


@njit
def hamming_window(size: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46) -> Array:
    """``alpha`` − beta · cos(2πk / n).

    Args:
        size: the number of elements; a single one is 1.
        periodic: whether n is that number, as it should be for spectra; otherwise n is one less, the window symmetric.
        alpha: the mean of the window.
        beta: its amplitude.

    Examples:
        >>> import irad
        >>> irad.nn.hamming_window(4).round(2)
        array([0.08, 0.54, 1.  , 0.54])
    """
    if size < 0:
        raise ValueError(f"a window of {size} elements")
    if size < 2:  # as in SciPy and PyTorch: a cosine has nothing to begin and end with
        return np.ones(size)
    window, steps = np.empty(size), size if periodic else size - 1
    for k in range(size):
        window[k] = alpha - beta * math.cos(2.0 * math.pi * k / steps)
    return window


@njit
def hann_window(size: int, periodic: bool = True) -> Array:
    """(1 − cos(2πk / n)) / 2.

    Args:
        size: the number of elements.
        periodic: as of `hamming_window`.

    Examples:
        >>> import irad
        >>> irad.nn.hann_window(4)
        array([0. , 0.5, 1. , 0.5])
    """
    return hamming_window(size, periodic, 0.5, 0.5)
