"""A gradient that is to overwrite the argument."""

import numpy as np
from numba import njit

import irad


@njit
def energy(x):
    return np.sum(x * x)


def wrong():
    x = np.ones(3)
    return irad.value_and_grad_into(energy)(x, x)


def mended():
    x, gradient = np.ones(3), np.empty(3)
    assert irad.value_and_grad_into(energy)(gradient, x) == 3.0
    assert gradient.tolist() == [2.0, 2.0, 2.0]
