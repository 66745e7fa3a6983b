"""A method of an object that compiled code cannot hold."""

from numba import float64, njit
from numba.experimental import jitclass

import irad


class Spring:
    def __init__(self, stiffness):
        self.stiffness = stiffness

    def energy(self, x):
        return 0.5 * self.stiffness * x * x


def wrong():
    return irad.grad(Spring(2.0).energy)(1.0)


@njit
def energy(stiffness, x):
    return 0.5 * stiffness * x * x


def mended():
    assert irad.grad(energy, argnums=1)(2.0, 1.0) == 2.0  # (a)
    compiled = jitclass([("stiffness", float64)])(Spring)
    assert irad.grad(compiled(2.0).energy)(1.0) == 2.0  # (b)
