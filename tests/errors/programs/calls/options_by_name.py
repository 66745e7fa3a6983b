"""A plan given as the options themselves."""

from numba import njit

import irad


@njit
def square(x):
    return x * x


def wrong():
    return irad.grad(square, options="save_all")(3.0)


def mended():
    assert irad.grad(square, options=irad.Options(plan="save_all"))(3.0) == 6.0
