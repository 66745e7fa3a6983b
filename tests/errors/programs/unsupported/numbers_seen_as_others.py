"""The bytes of an array read as numbers of another type."""

import numpy as np
from numba import njit

import irad


@njit
def halves(x):
    seen = x.view(np.float32)
    return seen[0] * seen[1]


def wrong():
    return irad.grad(halves)(np.ones(4))


def mended():
    @njit
    def converted(x):
        seen = x.astype(np.float32)
        return seen[0] * seen[1]

    assert irad.grad(converted)(np.ones(4)).tolist() == [1.0, 1.0, 0.0, 0.0]


CHECKED = (halves, (np.ones(4),), 0)
