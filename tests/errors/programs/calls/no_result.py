"""A function that writes its result to an array."""

import numpy as np
from numba import njit

import irad


@njit
def squares(x, out):
    for i in range(x.size):
        out[i] = x[i] * x[i]


def wrong():
    return irad.grad(squares)(np.ones(3), np.zeros(3))


def mended():
    @njit
    def total(x):
        out = np.zeros(x.size)
        squares(x, out)
        return np.sum(out)

    assert irad.grad(total)(np.ones(3)).tolist() == [2.0, 2.0, 2.0]  # (a)
    x, dx = np.ones(3), np.zeros(3)
    out, dout = np.zeros(3), np.ones(3)
    irad.autodiff(irad.Reverse, squares, irad.Duplicated(x, dx), irad.Duplicated(out, dout), seed=None)  # (b)
    assert dx.tolist() == [2.0, 2.0, 2.0]
