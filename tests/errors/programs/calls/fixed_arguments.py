"""A `functools.partial`, which Numba does not compile."""

import functools

from numba import njit

import irad


@njit
def energy(stiffness, x):
    return 0.5 * stiffness * x * x


def wrong():
    return irad.grad(functools.partial(energy, 2.0))(1.0)


def mended():
    assert irad.grad(lambda x: energy(2.0, x))(1.0) == 2.0
