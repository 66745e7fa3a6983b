"""An augmented primal without reverse."""

from numba import njit

import irad
from irad.rules import AugmentedReturn


@njit
def cube(x):
    return x * x * x


def augmented(config, x):
    return AugmentedReturn(x.value**3, None, None)


def reverse(config, cotangent, tape, x):
    return (cotangent * 3.0 * x.value**2,)


def wrong():
    irad.rules.augmented_primal(cube)(augmented)
    return irad.grad(cube)(2.0)


def mended():
    irad.rules.reverse(cube)(reverse)
    assert irad.grad(cube)(2.0) == 12.0
