"""A call of a C function that irad does not know."""

import ctypes

import llvmlite.binding as llvm
from numba import njit, types

import irad

density = types.ExternalFunction("density_of_state", types.float64(types.float64))


@njit
def drag(speed):
    return density(speed) * speed**2


def wrong():
    return irad.grad(drag)(3.0)


def mended():
    library = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(lambda speed: 0.5 * speed)  # stands for the C library
    llvm.add_symbol("density_of_state", ctypes.cast(library, ctypes.c_void_p).value)
    irad.rules.easy_rule(density, 0.5)
    try:
        assert irad.grad(drag)(2.0) == 6.0  # (a)
    finally:
        irad.rules.remove(density)


CHECKED = (drag, (3.0,), 0)
