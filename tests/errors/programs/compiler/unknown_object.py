"""An instance of a plain Python class as argument."""

from numba import njit

import irad


class Rectangle:
    width, height = 3.0, 4.0


@njit
def area(rectangle):
    return rectangle.width * rectangle.height


def wrong():
    return irad.grad(area)(Rectangle())


def mended():
    from collections import namedtuple

    Sizes = namedtuple("Sizes", "width height")
    assert irad.grad(area)(Sizes(3.0, 4.0)) == Sizes(4.0, 3.0)


CHECKED = (area, (Rectangle(),), 0)
