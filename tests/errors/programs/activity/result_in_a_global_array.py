"""A global array is a constant to Numba, and cannot be written."""

import numpy as np
from numba import njit

import irad

history = np.zeros(10)


@njit
def loss(x):
    history[0] = x * x
    return history[0]


def wrong():
    return irad.grad(loss)(3.0)


def mended():
    @njit
    def with_argument(x, history):
        history[0] = x * x
        return history[0]

    assert irad.grad(with_argument, (0, 1))(3.0, np.zeros(10))[0] == 6.0


CHECKED = (loss, (3.0,), 0)
