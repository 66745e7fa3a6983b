"""A function of SciPy by an argument of which no derivative is known."""

import ctypes

from numba import njit
from numba.extending import get_cython_function_address

import irad

address = get_cython_function_address("scipy.special.cython_special", "gammainc")
gammainc = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double, ctypes.c_double)(address)


@njit
def probability(shape, x):
    return gammainc(shape, x)


def wrong():
    return irad.grad(probability)(2.0, 1.5)


def mended():
    assert irad.grad(probability, 1)(1.0, 0.0) == 1.0


CHECKED = (probability, (2.0, 1.5), 0)
