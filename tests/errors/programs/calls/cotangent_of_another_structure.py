"""One number as the cotangent of an array."""

import numpy as np
from numba import njit

import irad


@njit
def forces(x):
    return -2.0 * x


def wrong():
    _, pullback = irad.vjp(forces, np.ones(3))
    return pullback(1.0)


def mended():
    _, pullback = irad.vjp(forces, np.ones(3))
    assert pullback(np.ones(3))[0].tolist() == [-2.0, -2.0, -2.0]
