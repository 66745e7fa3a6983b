"""A Hessian-vector product with respect to a list of arrays."""

import numpy as np
from numba import njit
from numba.typed import List

import irad


@njit
def energy(layers):
    total = 0.0
    for layer in layers:
        total += (layer**3).sum()
    return total


LAYERS = np.array([1.0, 2.0]), np.array([3.0])
DIRECTION = np.ones(2), np.ones(1)


def wrong():
    return irad.hvp(energy)(List(DIRECTION), List(LAYERS))


def mended():
    @njit
    def inside(layers):
        made = List()
        for layer in layers:
            made.append(layer * 1.0)
        return energy(made)

    @njit
    def constant(layers, x):
        return x * x * energy(layers)

    assert irad.hvp(inside)(DIRECTION, LAYERS)[1][0] == 18.0  # (a)
    assert irad.hvp(constant, 1)(1.0, List(LAYERS), 2.0) == 72.0  # (b)
