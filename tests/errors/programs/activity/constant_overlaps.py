"""One array, once as active and once as constant."""

import numpy as np
from numba import njit

import irad


@njit
def step(x, out):
    for i in range(x.size):
        out[i] = 2.0 * out[i]
    return np.sum(x * x)


def wrong():
    x = np.ones(3)
    return irad.grad(step)(x, x)


def mended():
    x = np.ones(3)
    by_x, by_out = irad.grad(step, (0, 1))(x, x)  # (a)
    assert by_x.tolist() == by_out.tolist() == [8.0, 8.0, 8.0]
    x = np.ones(3)
    assert irad.grad(step)(x, x.copy()).tolist() == [2.0, 2.0, 2.0]  # (b)
