"""A name that does not exist."""

from numba import njit

import irad


@njit
def area(width, height):
    return widht * height  # noqa: F821


def wrong():
    return irad.grad(area)(3.0, 4.0)


def mended():
    assert irad.grad(lambda width, height: width * height)(3.0, 4.0) == 4.0


CHECKED = (area, (3.0, 4.0), 0)
