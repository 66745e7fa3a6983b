"""What np.vectorize made is called in compiled code."""

import numba
import numpy as np
from numba import njit

import irad


def square(x):
    return x * x


squares = np.vectorize(square)


@njit
def loss(x):
    return squares(x).sum()


def wrong():
    return irad.grad(loss)(np.ones(2))


def mended():
    compiled = numba.vectorize(square)
    assert irad.grad(njit(lambda x: compiled(x).sum()))(np.ones(2)).tolist() == [2.0, 2.0]


CHECKED = (loss, (np.ones(2),), 0)
