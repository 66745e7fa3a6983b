"""Several problems in one report."""

import numpy as np
from numba import njit, types

import irad

density = types.ExternalFunction("density_of_state", types.float64(types.float64))
viscosity = types.ExternalFunction("viscosity_of_state", types.float64(types.float64))


@njit
def drag(speed):
    return density(speed) * speed**2


@njit
def loss(speeds):
    total = 0.0
    for speed in speeds:
        total += drag(speed) + viscosity(speed)
    return total


def wrong():
    return irad.grad(loss)(np.ones(3))


def mended():
    @njit
    def compiled(speeds):
        total = 0.0
        for speed in speeds:
            total += speed**2 + speed
        return total

    assert irad.grad(compiled)(np.ones(3)).tolist() == [3.0, 3.0, 3.0]


CHECKED = (loss, (np.ones(3),), 0)
