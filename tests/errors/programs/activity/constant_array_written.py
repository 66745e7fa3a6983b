"""A result is stored in an array that was passed as constant."""

import numpy as np
from numba import njit

import irad


@njit
def loss(x, work):
    for i in range(x.size):
        work[i] = x[i] * x[i]
    return np.sum(work)


def wrong():
    return irad.grad(loss)(np.ones(3), np.zeros(3))


def mended():
    by_x, _ = irad.grad(loss, (0, 1))(np.ones(3), np.zeros(3))  # (a)
    assert by_x.tolist() == [2.0, 2.0, 2.0]
    x, work = np.ones(3), np.zeros(3)
    dx, dwork = np.zeros(3), np.zeros(3)
    irad.autodiff(irad.Reverse, loss, irad.Duplicated(x, dx), irad.Duplicated(work, dwork))  # (b)
    assert dx.tolist() == [2.0, 2.0, 2.0]
