"""A keyword that the function does not have."""

from numba import njit

import irad


@njit
def energy(x, stiffness):
    return 0.5 * stiffness * x * x


def wrong():
    return irad.vjp(energy, 1.0, stifness=2.0)


def mended():
    value, pullback = irad.vjp(energy, 1.0, stiffness=2.0)
    assert value == 1.0
    assert pullback(1.0) == (2.0, 0.5)
