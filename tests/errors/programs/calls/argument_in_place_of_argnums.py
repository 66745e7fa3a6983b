"""A gradient is asked for as if irad.grad took the point."""

import numpy as np
from numba import njit

import irad


@njit
def energy(x):
    return np.sum(x * x)


def wrong():
    return irad.grad(energy, np.array([1.0, 2.0]))


def mended():
    assert irad.grad(energy)(np.array([1.0, 2.0])).tolist() == [2.0, 4.0]
