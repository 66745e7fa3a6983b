"""The gradient of a function that returns an array."""

import numpy as np
from numba import njit

import irad


@njit
def forces(x):
    return -2.0 * x


def wrong():
    return irad.grad(forces)(np.ones(3))


def mended():
    _, pullback = irad.vjp(forces, np.ones(3))  # (a)
    assert pullback(np.ones(3))[0].tolist() == [-2.0, -2.0, -2.0]

    @njit
    def total(x):
        return np.sum(forces(x))

    assert irad.grad(total)(np.ones(3)).tolist() == [-2.0, -2.0, -2.0]  # (b)
