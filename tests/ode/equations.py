"""The equations of the tests: one function, so that what is compiled for it is compiled once."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numba import njit
from scipy.integrate import RK45

from irad.ode.march import Settings

OSCILLATOR, LORENZ, STIFF, BLOW_UP = range(4)


@njit
def slope(t, y, kind, p, w):
    """Several right-hand sides."""
    found = np.empty(y.size)
    if kind == OSCILLATOR:
        found[0] = y[1]
        found[1] = -p * y[0] + w[0] * np.cos(w[1] * t)
    elif kind == LORENZ:
        found[0] = w[0] * (y[1] - y[0])
        found[1] = y[0] * (p - y[2]) - y[1]
        found[2] = y[0] * y[1] - w[1] * y[2]
    elif kind == STIFF:  # y = cos(t) + … exp(-p t), with a second state that follows slowly
        found[0] = -p * (y[0] - np.cos(t)) - np.sin(t)
        found[1] = w[0] * y[0] - w[1] * y[1]
    else:
        for i in range(y.size):
            found[i] = p * y[i] * y[i]
    return found


@njit
def height(t, y, kind, p, w):
    """An event: the first state falls through a level that moves with the time."""
    return y[0] - 0.1 * w[0] * t


def dormand_prince_along(f, y, t0, t1, places):
    """The last state of Dormand and Prince's method with given steps; also for complex numbers.

    The coefficients are SciPy's.
    """
    for place, following in pairwise(places):
        t, h = t0 + place * (t1 - t0), (following - place) * (t1 - t0)
        slopes = []
        for row, node in zip(RK45.A, RK45.C, strict=True):
            inner = sum((a * k for a, k in zip(row, slopes, strict=False)), 0.0 * y)
            slopes.append(f(t + node * h, y + h * inner))
        y = y + h * sum(b * k for b, k in zip(RK45.B, slopes, strict=True))
    return y


def oscillation(t):
    """The oscillator in closed form, from (1, 0.2) at the time 0 with p = 2 and w = (0.5, 1.3); rows are states."""
    p, (a, b) = 2.0, (0.5, 1.3)
    root, forced = np.sqrt(p), a / (p - b * b)
    one, other = 1.0 - forced, 0.2 / root
    y = one * np.cos(root * t) + other * np.sin(root * t) + forced * np.cos(b * t)
    slope = root * (other * np.cos(root * t) - one * np.sin(root * t)) - b * forced * np.sin(b * t)
    return np.array([y, slope])


def settings(rtol=1e-6, atol=1e-6, steps=1000, longest=np.inf, n=2):
    """Settings without events."""
    return Settings(np.full(n, rtol), np.full(n, atol), 0.0, longest, steps, steps, (), ())
