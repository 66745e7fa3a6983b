"""An option that is on or off is given a word."""

import numpy as np
from numba import njit

import irad


@njit
def energy(x):
    return np.sum(x * x)


def wrong():
    return irad.grad(energy, options=irad.Options(boundscheck="yes"))(np.ones(2))


def mended():
    assert irad.grad(energy, options=irad.Options(boundscheck=True))(np.ones(2)).tolist() == [2.0, 2.0]
