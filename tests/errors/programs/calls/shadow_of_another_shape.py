"""A shadow shorter than its array."""

import numpy as np
from numba import njit

import irad


@njit
def energy(x):
    return np.sum(x * x)


def wrong():
    x, dx = np.ones(4), np.zeros(3)
    return irad.autodiff(irad.Reverse, energy, irad.Duplicated(x, dx))


def mended():
    x, dx = np.ones(4), np.zeros(4)
    irad.autodiff(irad.Reverse, energy, irad.Duplicated(x, dx))
    assert dx.tolist() == [2.0, 2.0, 2.0, 2.0]
