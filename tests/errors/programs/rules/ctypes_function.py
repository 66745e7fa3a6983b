"""A call of a ctypes function without a rule."""

import ctypes

from numba import njit

import irad


@ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)
def measured(x):
    return 0.5 * x


@njit
def loss(x):
    return measured(x) ** 2


def wrong():
    return irad.grad(loss)(3.0)


def mended():
    irad.rules.easy_rule(measured, 0.5)  # (a)
    try:
        assert irad.grad(loss)(3.0) == 1.5
    finally:
        irad.rules.remove(measured)
    irad.rules.inactive(measured)  # (b)
    try:
        assert irad.grad(loss)(3.0) == 0.0
    finally:
        irad.rules.remove(measured)


CHECKED = (loss, (3.0,), 0)
