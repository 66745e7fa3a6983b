"""An array of no dimension is passed to a function that calls a method of what it computes with it."""

import numpy as np
from numba import njit

import irad


@njit
def energy(x):
    return (x * x).sum()


@njit
def energy_of_number(x):
    return x * x


x = np.array(3.0)


def wrong():
    return irad.grad(energy)(x)


def mended():
    assert irad.grad(energy)(np.atleast_1d(x)).tolist() == [6.0]
    assert irad.grad(energy_of_number)(x) == 6.0


CHECKED = (energy, (x,), 0)
