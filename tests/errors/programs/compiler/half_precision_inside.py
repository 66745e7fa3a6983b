"""Half precision inside a function, which Numba knows by name only."""

import numpy as np
from numba import njit

import irad


@njit
def rounded(x):
    return x.astype(np.float16).sum()


def wrong():
    return irad.grad(rounded)(np.ones(3))


def mended():
    gradient = irad.grad(lambda x: x.astype(np.float32).sum())(np.ones(3))
    np.testing.assert_array_equal(gradient, 1.0)


CHECKED = (rounded, (np.ones(3),), 0)
