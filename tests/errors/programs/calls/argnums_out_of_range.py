"""Positions counted from 1."""

from numba import njit

import irad


@njit
def area(width, height):
    return width * height


def wrong():
    return irad.grad(area, argnums=(1, 2))(3.0, 4.0)


def mended():
    assert irad.grad(area, argnums=(0, 1))(3.0, 4.0) == (4.0, 3.0)
