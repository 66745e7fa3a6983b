"""In compiled code, ``argnums`` that is known only when it runs."""

from numba import njit

import irad


@njit
def area(width, height):
    return width * height


@njit
def slope(which):
    return irad.grad(area, which)(3.0, 4.0)


def wrong():
    return slope(1)


def mended():
    @njit
    def literal():
        return irad.grad(area, 1)(3.0, 4.0)

    assert literal() == 3.0  # (a)
    by_width, by_height = irad.grad(area), irad.grad(area, 1)

    @njit
    def chosen(which):
        return by_height(3.0, 4.0) if which else by_width(3.0, 4.0)

    assert chosen(1) == 3.0  # (b)
