"""A name that a library does not have."""

import numpy as np
from numba import njit

import irad


@njit
def blurred(x):
    return np.convolve2(x, x).sum()


def wrong():
    return irad.grad(blurred)(np.ones(3))


def mended():
    gradient = irad.grad(lambda x: np.convolve(x, x).sum())(np.ones(3))
    np.testing.assert_allclose(gradient, 6.0)


CHECKED = (blurred, (np.ones(3),), 0)
