"""An argument that the function does not have is declared inactive."""

from numba import njit

import irad


@njit
def product(x, y):
    return x * y


def wrong():
    irad.rules.inactive_arg(product, "weight")


def mended():
    irad.rules.inactive_arg(product, "y")
    assert irad.grad(product)(3.0, 4.0) == 4.0
    irad.rules.remove(product)
