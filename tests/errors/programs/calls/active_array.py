"""An array annotated with irad.Active."""

import numpy as np
from numba import njit

import irad


@njit
def energy(x):
    return np.sum(x * x)


def wrong():
    return irad.autodiff(irad.Reverse, energy, irad.Active(np.ones(3)))


def mended():
    x, dx = np.ones(3), np.zeros(3)
    irad.autodiff(irad.Reverse, energy, irad.Duplicated(x, dx))
    assert dx.tolist() == [2.0, 2.0, 2.0]
