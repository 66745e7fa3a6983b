"""A parallel loop writes active values to an array that was passed as constant."""

import numpy as np
from numba import njit, prange

import irad


@njit(parallel=True)
def squares(out, x):
    for i in prange(x.size):
        out[i] = x[i] * x[i]


def wrong():
    x = np.arange(3.0)
    return irad.autodiff(irad.Reverse, squares, irad.Const(np.zeros(3)), irad.Duplicated(x, np.zeros(3)), seed=None)


def mended():
    out, x = np.zeros(3), np.arange(3.0)
    by_out, by_x = np.ones(3), irad.shadow_like(x)
    irad.autodiff(irad.Reverse, squares, irad.Duplicated(out, by_out), irad.Duplicated(x, by_x), seed=None)
    assert by_x.tolist() == [0.0, 2.0, 4.0]
