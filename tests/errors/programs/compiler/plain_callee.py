"""A helper that was not compiled is called from compiled code."""

from numba import njit

import irad


def helper(x):
    return x * x


@njit
def loss(x):
    return helper(x)


def wrong():
    return irad.grad(loss)(3.0)


def mended():
    compiled = njit(helper)
    assert irad.grad(njit(lambda x: compiled(x)))(3.0) == 6.0


CHECKED = (loss, (3.0,), 0)
