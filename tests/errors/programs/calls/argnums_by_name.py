"""An argument named where irad wants its position."""

from numba import njit

import irad


@njit
def area(width, height):
    return width * height


def wrong():
    return irad.grad(area, argnums="height")(3.0, 4.0)


def mended():
    assert irad.grad(area, argnames="height")(3.0, 4.0) == 3.0
    assert irad.grad(area, argnums=1)(3.0, 4.0) == 3.0
