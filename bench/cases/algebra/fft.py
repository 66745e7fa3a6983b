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


@njit(error_model="numpy", fastmath={"reassoc", "contract"})
def _roots(n):
    """Powers of exp(-2πi / n) up to half a turn, by doubling: a sine and a cosine for each bit."""
    half = n // 2
    cosines, sines = np.ones(half + 1), np.zeros(half + 1)
    size = 1
    while size < half:
        c, s = math.cos(2.0 * math.pi * size / n), -math.sin(2.0 * math.pi * size / n)
        for k in range(size):
            cosines[size + k] = c * cosines[k] - s * sines[k]
            sines[size + k] = c * sines[k] + s * cosines[k]
        size *= 2
    cosines[half] = -1.0
    return cosines, sines


@njit(error_model="numpy", fastmath={"reassoc", "contract"})
def _transform_parts(real, imaginary, cosines, sines):
    """Stockham's transform, real and imaginary parts apart: both sides of a step are contiguous, nothing is sorted."""
    n = real.size
    real_out, imaginary_out = np.empty(n), np.empty(n)
    groups, size = n // 2, 1
    while groups > 0:
        for j in range(groups):
            c, s = cosines[2 * j * size], sines[2 * j * size]
            low, high, to = j * size, (j + groups) * size, 2 * j * size
            a, b, a2, b2 = real[low:], imaginary[low:], real[high:], imaginary[high:]
            u, v, u2, v2 = real_out[to:], imaginary_out[to:], real_out[to + size :], imaginary_out[to + size :]
            for k in range(size):
                x, y = a[k] - a2[k], b[k] - b2[k]
                u[k], v[k] = a[k] + a2[k], b[k] + b2[k]
                u2[k], v2[k] = c * x - s * y, c * y + s * x
        real, imaginary, real_out, imaginary_out = real_out, imaginary_out, real, imaginary
        groups, size = groups // 2, 2 * size
    return real, imaginary


@njit(error_model="numpy", fastmath={"reassoc", "contract"})
def hand_opt(signal, weights):
    """Two real numbers are one complex number: transforms of half the size, without recursion, one table of sines.

    The spectrum of a real signal is symmetric: half of it, with the sums of two weights, is enough.
    """
    n = signal.size
    if n < 4:
        return hand(signal, weights)
    half = n // 2
    cosines, sines = _roots(n)
    real, imaginary = _transform_parts(signal[::2].copy(), signal[1::2].copy(), cosines, sines)
    real_bar, imaginary_bar = np.empty(half + 1), np.empty(half + 1)
    total = 0.0
    for k in range(half + 1):
        a, b = real[k % half], imaginary[k % half]
        c, d = real[(half - k) % half], imaginary[(half - k) % half]
        x = 0.5 * (a + c + cosines[k] * (b + d) + sines[k] * (a - c))
        y = 0.5 * (b - d - cosines[k] * (a - c) + sines[k] * (b + d))
        size = 1.0 + x * x + y * y
        weight = 0.5 * (weights[k % n] + weights[(n - k) % n])
        total += (2.0 if 0 < k < half else 1.0) * weight * math.log(size)
        factor = 2.0 * weight / size
        real_bar[k], imaginary_bar[k] = factor * x, -factor * y
    for k in range(half):
        a, b, c, d = real_bar[k], imaginary_bar[k], real_bar[half - k], imaginary_bar[half - k]
        x, y = a - c, b + d
        real[k] = a + c - cosines[k] * y - sines[k] * x
        imaginary[k] = b - d + cosines[k] * x - sines[k] * y
    real, imaginary = _transform_parts(real, imaginary, cosines, sines)
    signal_bar = np.empty(n)
    for k in range(half):
        signal_bar[2 * k], signal_bar[2 * k + 1] = real[k], imaginary[k]
    return total, (signal_bar,)


def make(size: Size) -> tuple[Any, ...]:
    """A noisy signal."""
    n = {"small": 8, "medium": 128, "full": 4_096}[size]
    rng = np.random.default_rng(16)
    return rng.standard_normal(n), rng.uniform(0.5, 1.5, n)


CASE = Case("fft", "recursive Fourier transform of 4,096 numbers", loss, hand, make, (0,), hand_opt)
