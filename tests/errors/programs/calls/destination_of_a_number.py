"""A number as the place of a gradient: numbers cannot be overwritten."""

from numba import njit

import irad


@njit
def square(x):
    return x * x


def wrong():
    return irad.value_and_grad_into(square)(0.0, 3.0)


def mended():
    import numpy as np

    out = np.zeros(1)
    assert irad.value_and_grad_into(square)(out, 3.0) == 9.0
    assert out.tolist() == [6.0]
