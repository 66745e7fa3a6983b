"""A parallel loop that reads arrays out of a list."""

import numpy as np
from numba import njit, prange

import irad


@njit(parallel=True)
def energies(x, weights):
    rows = [x * 2.0, x * 3.0]
    total = 0.0
    for i in prange(2):
        total += np.sum(rows[i]) * weights[i]
    return total


def wrong():
    return irad.grad(energies)(np.ones(3), np.ones(2))


def mended():
    @njit(parallel=True)
    def from_an_array(x, weights):
        rows = np.empty((2, x.size))
        rows[0], rows[1] = x * 2.0, x * 3.0
        total = 0.0
        for i in prange(2):
            total += np.sum(rows[i]) * weights[i]
        return total

    assert irad.grad(from_an_array)(np.ones(3), np.ones(2)).tolist() == [5.0, 5.0, 5.0]


CHECKED = (energies, (np.ones(3), np.ones(2)), 0)
