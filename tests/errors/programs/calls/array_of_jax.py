"""An array of JAX in a tuple. This one only looks like it: irad tells by the name of the package."""

import numpy as np
from numba import njit

import irad


class ArrayImpl:
    __module__ = "jaxlib._jax"

    def __array__(self, dtype=None, copy=None):
        return np.array([1.0, 2.0])


@njit
def energy(pair):
    return pair[1] * np.sum(pair[0] * pair[0])


x = ArrayImpl()


def wrong():
    return irad.grad(energy)((x, 3.0))


def mended():
    by_x, by_factor = irad.grad(energy)((np.asarray(x), 3.0))
    assert by_x.tolist() == [6.0, 12.0]
    assert by_factor == 5.0


CHECKED = (energy, ((x, 3.0),), 0)
