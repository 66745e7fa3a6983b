"""Arguments that the explicit signature of a function does not take."""

import numpy as np
from numba import njit

import irad


@njit("float64(float64[::1])")
def total(x):
    return x.sum()


def wrong():
    return irad.grad(total)(np.ones((2, 2)))


def mended():
    np.testing.assert_array_equal(irad.grad(total)(np.ones((2, 2)).ravel()), np.ones(4))  # (a)
    np.testing.assert_array_equal(irad.grad(njit(total.py_func))(np.ones((2, 2))), np.ones((2, 2)))  # (b)


CHECKED = (total, (np.ones((2, 2)),), 0)
