"""A generator in place of an array."""

import numpy as np
from numba import njit

import irad


@njit
def energy(x):
    return np.sum(x * x)


def wrong():
    return irad.grad(energy)(i * 0.5 for i in range(3))


def mended():
    x = (i * 0.5 for i in range(3))
    assert irad.grad(energy)(np.array(list(x))).tolist() == [0.0, 1.0, 2.0]
