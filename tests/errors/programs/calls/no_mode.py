"""`irad.autodiff` without a mode."""

import numpy as np
from numba import njit

import irad


@njit
def total(x):
    return x.sum()


def wrong():
    return irad.autodiff(total, irad.Duplicated(np.ones(3), np.zeros(3)))


def mended():
    shadow = np.zeros(3)
    irad.autodiff(irad.Reverse, total, irad.Duplicated(np.ones(3), shadow))  # (a)
    assert irad.autodiff(irad.ReverseWithPrimal, total, irad.Duplicated(np.ones(3), shadow))[1] == 3.0  # (b)
    np.testing.assert_array_equal(shadow, 2.0)
