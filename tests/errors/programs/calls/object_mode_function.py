"""A function that Numba compiles in object mode."""

import numba

import irad


@numba.jit(forceobj=True)
def square(x):
    return x * x


def wrong():
    return irad.grad(square)(3.0)


def mended():
    assert irad.grad(numba.njit(square.py_func))(3.0) == 6.0
