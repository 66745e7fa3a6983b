"""A function to differentiate that makes a pullback."""

from numba import njit

import irad


@njit
def energy(x):
    return x * x * x


@njit
def penalty(x):
    _, pullback = irad.vjp(energy, x)
    return pullback(1.0)[0] ** 2


def wrong():
    return irad.grad(penalty)(2.0)


def mended():
    slope = irad.grad(energy)

    @njit
    def squared_slope(x):
        return slope(x) ** 2

    assert irad.grad(squared_slope)(1.0) == 36.0
