"""A function with a rule whose library is not loaded."""

from numba import njit, types

import irad

density = types.ExternalFunction("irad_test_density_of_state", types.float64(types.float64))


@njit
def drag(speed):
    return density(speed) * speed**2


def wrong():
    irad.rules.easy_rule(density, 0.5)
    return irad.grad(drag)(3.0)


def mended():
    import ctypes

    import llvmlite.binding as llvm

    library = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(lambda speed: 0.5 * speed)
    llvm.add_symbol("irad_test_density_of_state", ctypes.cast(library, ctypes.c_void_p).value)
    assert irad.grad(drag)(2.0) == 6.0
    irad.rules.remove(density)
