"""An argument of `irad.autodiff` without annotation."""

import numpy as np
from numba import njit

import irad


@njit
def energy(x, scale):
    return scale * np.sum(x * x)


def wrong():
    x, dx = np.ones(3), np.zeros(3)
    return irad.autodiff(irad.Reverse, energy, irad.Duplicated(x, dx), 2.0)


def mended():
    x, dx = np.ones(3), np.zeros(3)
    irad.autodiff(irad.Reverse, energy, irad.Duplicated(x, dx), irad.Const(2.0))
    assert dx.tolist() == [4.0, 4.0, 4.0]
    assert irad.autodiff(irad.Reverse, energy, irad.Const(x), irad.Active(2.0)) == (None, 3.0)
