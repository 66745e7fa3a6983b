"""A global variable is assigned to in compiled code."""

import numpy as np
from numba import njit

import irad

calls = 0


@njit
def loss(x):
    global calls
    calls = calls + 1
    return x * x


def wrong():
    return irad.grad(loss)(3.0)


def mended():
    @njit
    def counted(x, calls):
        calls[0] += 1
        return x * x

    calls = np.zeros(1, np.int64)
    assert irad.grad(counted)(3.0, calls) == 6.0
    assert calls[0] == 1


CHECKED = (loss, (3.0,), 0)
