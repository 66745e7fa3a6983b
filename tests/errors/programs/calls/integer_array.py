"""An array of integers, as np.arange gives it."""

import numpy as np
from numba import njit

import irad


@njit
def energy(positions):
    return np.sum(positions * positions)


def wrong():
    return irad.grad(energy)(np.arange(3))


def mended():
    assert irad.grad(energy)(np.arange(3).astype(float)).tolist() == [0.0, 2.0, 4.0]


CHECKED = (energy, (np.arange(3),), 0)
