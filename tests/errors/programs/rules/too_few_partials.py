"""One partial derivative for a function of two arguments."""

from numba import njit

import irad


@njit
def product(x, y):
    return x * y


def wrong():
    irad.rules.easy_rule(product, lambda x, y: y)


def mended():
    irad.rules.easy_rule(product, lambda x, y: y, None)
    assert irad.grad(product)(3.0, 4.0) == 4.0
    irad.rules.remove(product)
