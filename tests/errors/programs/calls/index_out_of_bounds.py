"""An index out of bounds, with bounds checks."""

import numpy as np
from numba import njit

import irad

OPTIONS = irad.Options(boundscheck=True)


@njit
def roughness(x):
    total = 0.0
    for i in range(x.size):
        total += (x[i + 1] - x[i]) ** 2
    return total


def wrong():
    return irad.grad(roughness, options=OPTIONS)(np.array([0.0, 1.0, 3.0]))


@njit
def mended_roughness(x):
    total = 0.0
    for i in range(x.size - 1):
        total += (x[i + 1] - x[i]) ** 2
    return total


def mended():
    gradient = irad.grad(mended_roughness, options=OPTIONS)(np.array([0.0, 1.0, 3.0]))
    np.testing.assert_array_equal(gradient, [-2.0, -2.0, 4.0])
