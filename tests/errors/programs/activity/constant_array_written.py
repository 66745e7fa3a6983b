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
    return irad.autodiff(irad.Reverse, loss, irad.Duplicated(np.ones(3), np.zeros(3)), irad.Const(np.zeros(3)))


def mended():
    work, dx = np.zeros(6)[::2], np.zeros(3)
    irad.autodiff(
        irad.Reverse,
        loss,
        irad.Duplicated(np.ones(3), dx),
        irad.Duplicated(work, irad.shadow_like(work)),  # (a)
    )
    assert dx.tolist() == [2.0, 2.0, 2.0]
    assert irad.grad(loss)(np.ones(3), work).tolist() == [2.0, 2.0, 2.0]  # (b)

    @njit
    def own_array(x):
        work = np.zeros(3)
        for i in range(x.size):
            work[i] = x[i] * x[i]
        return np.sum(work)

    assert irad.grad(own_array)(np.ones(3)).tolist() == [2.0, 2.0, 2.0]  # (c)
