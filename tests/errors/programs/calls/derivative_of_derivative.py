"""The second derivative."""

from numba import njit

import irad


@njit
def cube(x):
    return x * x * x


def wrong():
    return irad.grad(irad.grad(cube))(2.0)


def mended():
    @njit
    def slope(x):
        return 3.0 * x * x

    assert irad.grad(slope)(2.0) == 12.0
