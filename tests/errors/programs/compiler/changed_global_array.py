"""A global array was changed after Numba had compiled the function."""

import numpy as np
from numba import njit

import irad

TABLE = np.array([2.0, 3.0])


@njit
def energy(x):
    return TABLE[0] * x * x


@njit
def energy_of(x, table):
    return table[0] * x * x


def wrong():
    energy(1.0)
    TABLE[0] = 5.0
    return irad.grad(energy)(1.0)


def mended():
    energy.recompile()  # (a)
    assert irad.grad(energy)(1.0) == 10.0
    assert irad.grad(energy_of)(1.0, TABLE) == 10.0  # (b)
