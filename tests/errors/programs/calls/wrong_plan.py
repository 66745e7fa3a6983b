"""A plan that does not exist."""

from numba import njit

import irad


@njit
def square(x):
    return x * x


def wrong():
    return irad.grad(square, options=irad.Options(plan="fast"))(3.0)


def mended():
    assert irad.grad(square, options=irad.Options(plan="default"))(3.0) == 6.0
