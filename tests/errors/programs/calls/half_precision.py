"""Half precision, which Numba does not have on the CPU."""

import numpy as np
from numba import njit

import irad


@njit
def energy(x):
    return np.sum(x * x)


def wrong():
    return irad.grad(energy)(np.ones(3, np.float16))


def mended():
    assert irad.grad(energy)(np.ones(3, np.float16).astype(np.float32)).tolist() == [2.0, 2.0, 2.0]


CHECKED = (energy, (np.ones(3, np.float16),), 0)
