"""A list of lists, which Numba cannot take apart."""

import numpy as np
from numba import njit

import irad


@njit
def energy(rows):
    s = 0.0
    for row in rows:
        for value in row:
            s += value * value
    return s


rows = [[1.0, 2.0], [3.0, 4.0]]


def wrong():
    return irad.grad(energy)(rows)


def mended():
    assert irad.grad(energy)(np.array(rows)).tolist() == [[2.0, 4.0], [6.0, 8.0]]
    first, second = irad.grad(energy)([np.asarray(row) for row in rows])
    assert first.tolist() == [2.0, 4.0]
    assert second.tolist() == [6.0, 8.0]


CHECKED = (energy, (rows,), 0)
