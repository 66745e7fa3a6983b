"""A function to differentiate that calls a derivative."""

from numba import njit

import irad


@njit
def energy(x):
    return x * x * x


slope = irad.grad(energy)


@njit
def penalty(x):
    return slope(x) ** 2


def wrong():
    return irad.grad(penalty)(2.0)


def mended():
    @njit
    def written_out(x):
        return (3.0 * x * x) ** 2

    assert irad.grad(written_out)(1.0) == 36.0
