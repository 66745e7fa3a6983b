"""Recursive radix-2 Fourier transform; loss on the spectrum."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from bench.case import Case, Size


@njit(error_model="numpy")
def transform(x):
    n = x.size
    if n == 1:
        return x.copy()
    even, odd = transform(x[::2].copy()), transform(x[1::2].copy())
    out = np.empty(n, np.complex128)
    for k in range(n // 2):
        angle = -2.0 * math.pi * k / n
        turned = complex(math.cos(angle), math.sin(angle)) * odd[k]
        out[k] = even[k] + turned
        out[k + n // 2] = even[k] - turned
    return out


@njit(error_model="numpy")
def loss(signal, weights):
    spectrum = transform(signal.astype(np.complex128))
    total = 0.0
    for k in range(signal.size):
        total += weights[k] * math.log(1.0 + spectrum[k].real ** 2 + spectrum[k].imag ** 2)
    return total


@njit(error_model="numpy")
def hand(signal, weights):
    """The adjoint is the transform with the other sign, of the cotangents, which are conjugated for that."""
    n = signal.size
    spectrum = transform(signal.astype(np.complex128))
    total = 0.0
    for k in range(n):
        real, imaginary = spectrum[k].real, spectrum[k].imag
        size = 1.0 + real * real + imaginary * imaginary
        total += weights[k] * math.log(size)
        factor = 2.0 * weights[k] / size
        spectrum[k] = complex(factor * real, -factor * imaginary)
    back = transform(spectrum)
    signal_bar = np.empty(n)
    for k in range(n):
        signal_bar[k] = back[k].real
    return total, (signal_bar,)


def make(size: Size) -> tuple[Any, ...]:
    """A noisy signal."""
    n = {"small": 8, "medium": 128, "full": 4_096}[size]
    rng = np.random.default_rng(16)
    return rng.standard_normal(n), rng.uniform(0.5, 1.5, n)


CASE = Case("fft", "recursive Fourier transform of 4,096 numbers", loss, hand, make, (0,))
