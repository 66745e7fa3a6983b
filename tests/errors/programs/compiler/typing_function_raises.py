"""An overload of the user's whose typing function raises."""

from numba import njit
from numba.extending import overload

import irad


def scaled(x):
    raise NotImplementedError


@overload(scaled)
def scaled_typed(x):
    raise ValueError("no scale is set")


@njit
def loss(x):
    return scaled(x)


def wrong():
    return irad.grad(loss)(1.0)


def mended():
    assert irad.grad(lambda x: 2.0 * x)(1.0) == 2.0
