"""Too few arguments in the call of a derivative."""

from numba import njit

import irad


@njit
def area(width, height):
    return width * height


def wrong():
    return irad.grad(area)(3.0)


def mended():
    assert irad.grad(area)(3.0, 4.0) == 4.0
