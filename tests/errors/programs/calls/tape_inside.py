"""A function to differentiate that keeps a tape."""

from numba import njit

import irad


@njit
def energy(x):
    return x * x * x


augmented, reverse = irad.split(irad.ReverseSplit, energy, irad.Active)


@njit
def penalty(x):
    return reverse(augmented(irad.Active(x)))[0] ** 2


def wrong():
    return irad.grad(penalty)(2.0)


def mended():
    @njit
    def squared_slope(x):
        _, pullback = irad.vjp(energy, x)
        return pullback(1.0)[0] ** 2

    assert irad.grad(squared_slope)(1.0) == 36.0
