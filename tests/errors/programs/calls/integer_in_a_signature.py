"""A function that is declared for an integer."""

from numba import njit

import irad


@njit("float64(int64)")
def square(x):
    return 1.0 * x * x


def wrong():
    return irad.grad(square)(3.0)


def mended():
    declared = njit("float64(float64)")(square.py_func)
    assert irad.grad(declared)(3.0) == 6.0
