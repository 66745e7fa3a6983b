"""The function is called before it is differentiated."""

from numba import njit

import irad


@njit
def square(x):
    return x * x


def wrong():
    return irad.grad(square(3.0))


def mended():
    assert irad.grad(square)(3.0) == 6.0
