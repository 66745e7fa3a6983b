"""One array as its own shadow."""

import numpy as np
from numba import njit

import irad


@njit
def energy(x):
    return np.sum(x * x)


def wrong():
    x = np.ones(3)
    return irad.autodiff(irad.Reverse, energy, irad.Duplicated(x, x))


def mended():
    x = np.ones(3)
    dx = np.zeros_like(x)
    irad.autodiff(irad.Reverse, energy, irad.Duplicated(x, dx))
    assert dx.tolist() == [2.0, 2.0, 2.0]
