"""``np.zeros_like`` of a column is contiguous, the column is not."""

import numpy as np
from numba import njit

import irad


@njit
def energy(x):
    return np.sum(x * x)


def wrong():
    column = np.ones((3, 2))[:, 0]
    return irad.autodiff(irad.Reverse, energy, irad.Duplicated(column, np.zeros_like(column)))


def mended():
    column = np.ones((3, 2))[:, 0]
    alone = irad.shadow_like(column)
    irad.autodiff(irad.Reverse, energy, irad.Duplicated(column, alone))  # (a)
    assert alone.tolist() == [2.0, 2.0, 2.0]
    matrix = np.ones((3, 2))
    shadow = np.zeros_like(matrix)
    irad.autodiff(irad.Reverse, energy, irad.Duplicated(matrix[:, 0], shadow[:, 0]))
    assert shadow.tolist() == [[2.0, 0.0], [2.0, 0.0], [2.0, 0.0]]
    assert irad.grad(energy)(matrix[:, 0]).tolist() == [2.0, 2.0, 2.0]
