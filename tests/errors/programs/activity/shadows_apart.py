"""Two views of one array that is written, with shadows that do not overlap as they do."""

import numpy as np
from numba import njit

import irad


@njit
def shift(left, right):
    for i in range(left.size):
        left[i] = 2.0 * right[i]


def wrong():
    x = np.ones(4)
    left, right = irad.Duplicated(x[:-1], np.ones(3)), irad.Duplicated(x[1:], np.ones(3))
    return irad.autodiff(irad.Reverse, shift, left, right, seed=None)


def mended():
    x, dx = np.ones(4), np.ones(4)
    left, right = irad.Duplicated(x[:-1], dx[:-1]), irad.Duplicated(x[1:], dx[1:])
    irad.autodiff(irad.Reverse, shift, left, right, seed=None)
    assert dx.tolist() == [0.0, 2.0, 2.0, 3.0]
