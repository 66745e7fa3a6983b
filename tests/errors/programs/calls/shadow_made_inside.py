"""irad.shadow_like is called in compiled code."""

import numpy as np
from numba import njit

import irad


@njit
def energy(x):
    return np.sum(x * x)


@njit
def slope(x):
    dx = irad.shadow_like(x)
    irad.autodiff(irad.Reverse, energy, irad.Duplicated(x, dx))
    return dx


def wrong():
    return slope(np.ones(2))


def mended():
    @njit
    def with_zeros(x):
        dx = np.zeros_like(x)
        irad.autodiff(irad.Reverse, energy, irad.Duplicated(x, dx))
        return dx

    assert with_zeros(np.ones(2)).tolist() == [2.0, 2.0]

    @njit
    def with_argument(x, dx):
        irad.autodiff(irad.Reverse, energy, irad.Duplicated(x, dx))
        return dx

    x = np.ones(4)[::2]
    assert with_argument(x, irad.shadow_like(x)).tolist() == [2.0, 2.0]
