"""A draw from a distribution of which no derivative is known."""

import numpy as np
from numba import njit

import irad


@njit
def mean_angle(concentration):
    total = 0.0
    for _ in range(100):
        total += np.random.vonmises(0.0, concentration)
    return total / 100


def wrong():
    return irad.grad(mean_angle)(2.0)


def mended():
    @njit
    def by_direction(direction, concentration):
        return np.random.vonmises(direction, concentration)

    assert irad.grad(by_direction)(0.5, 2.0) == 1.0


CHECKED = (mean_angle, (2.0,), 0)
