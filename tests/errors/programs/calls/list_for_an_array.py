"""A list is passed to a function of arrays."""

import numpy as np
from numba import njit

import irad


@njit
def energy(x):
    return np.sum(x * x)


@njit
def energy_of_list(x):
    s = 0.0
    for value in x:
        s += value * value
    return s


def wrong():
    return irad.grad(energy)([1.0, 2.0])


def mended():
    assert irad.grad(energy)(np.asarray([1.0, 2.0])).tolist() == [2.0, 4.0]
    assert irad.grad(energy_of_list)([1.0, 2.0]) == [2.0, 4.0]


CHECKED = (energy, ([1.0, 2.0],), 0)
