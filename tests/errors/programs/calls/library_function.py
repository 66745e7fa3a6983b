"""A function of NumPy itself, which is no function that Numba compiles."""

import numpy as np
from numba import njit

import irad


def wrong():
    return irad.grad(np.sin)(1.0)


def mended():
    assert irad.grad(njit(lambda x: np.sin(x)))(0.0) == 1.0  # (a)
    assert irad.grad(lambda x: np.sin(x))(0.0) == 1.0  # (b)
