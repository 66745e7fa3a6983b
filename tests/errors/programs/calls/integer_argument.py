"""A derivative with respect to an integer."""

from numba import njit

import irad


@njit
def area(width, height):
    return width * height


def wrong():
    return irad.grad(area)(3, 4.0)


def mended():
    assert irad.grad(area)(3.0, 4.0) == 4.0  # (a)
    assert irad.grad(area, 1)(3, 4.0) == 3.0  # (b)


CHECKED = (area, (3, 4.0), 0)
