"""A method of a jitclass instance, where the instance has to be an annotated argument."""

from numba import float64
from numba.experimental import jitclass

import irad


@jitclass([("stiffness", float64)])
class Spring:
    def __init__(self, stiffness):
        self.stiffness = stiffness

    def energy(self, x):
        return 0.5 * self.stiffness * x * x


spring = Spring(2.0)


def wrong():
    return irad.autodiff(irad.Reverse, spring.energy, irad.Active(1.0))


def mended():
    by_function = irad.autodiff(irad.Reverse, lambda obj, x: obj.energy(x), irad.Const(spring), irad.Active(1.0))
    assert by_function == (None, 2.0)
