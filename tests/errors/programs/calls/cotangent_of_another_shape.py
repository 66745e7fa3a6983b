"""A cotangent that is longer than the value."""

import numpy as np
from numba import njit

import irad


@njit
def differences(x):
    return x[1:] - x[:-1]


def wrong():
    x = np.array([1.0, 4.0, 9.0])
    _, pullback = irad.vjp(differences, x)
    return pullback(np.ones_like(x))


def mended():
    x = np.array([1.0, 4.0, 9.0])
    value, pullback = irad.vjp(differences, x)
    assert pullback(np.ones_like(value))[0].tolist() == [-1.0, 0.0, 1.0]
