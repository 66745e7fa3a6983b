"""A masked array."""

import numpy as np
from numba import njit

import irad


@njit
def energy(x):
    return np.sum(x * x)


x = np.ma.array([1.0, 2.0], mask=[False, True])


def wrong():
    return irad.grad(energy)(x)


def mended():
    assert irad.grad(energy)(x.filled(0.0)).tolist() == [2.0, 0.0]
    assert irad.grad(energy)(x.compressed()).tolist() == [2.0]


CHECKED = (energy, (x,), 0)
