"""A block in object mode."""

import numpy as np
from numba import njit, objmode

import irad


@njit
def loss(x):
    with objmode(total="float64"):
        total = float(np.sum(x**2))
    return 0.5 * total


def wrong():
    return irad.grad(loss)(np.ones(3))


def mended():
    @njit
    def compiled(x):
        return 0.5 * np.sum(x**2)

    assert irad.grad(compiled)(np.ones(3)).tolist() == [1.0, 1.0, 1.0]


CHECKED = (loss, (np.ones(3),), 0)
