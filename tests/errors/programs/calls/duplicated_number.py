"""A number annotated as an array is."""

from numba import njit

import irad


@njit
def square(x):
    return x * x


def wrong():
    return irad.autodiff(irad.Reverse, square, irad.Duplicated(3.0, 0.0))


def mended():
    assert irad.autodiff(irad.Reverse, square, irad.Active(3.0)) == (6.0,)
