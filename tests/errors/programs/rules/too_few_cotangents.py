"""A reverse rule that returns one cotangent for two arguments."""

from numba import njit

import irad
from irad.rules import AugmentedReturn


@njit
def product(x, y):
    return x * y


def augmented(config, x, y):
    return AugmentedReturn(x.value * y.value, None, (x.value, y.value))


def reverse(config, cotangent, tape, x, y):
    return (cotangent * tape[1],)


def reverse_with_both(config, cotangent, tape, x, y):
    return cotangent * tape[1], cotangent * tape[0]


def wrong():
    irad.rules.augmented_primal(product)(augmented)
    irad.rules.reverse(product)(reverse)
    return irad.grad(product)(3.0, 4.0)


def mended():
    irad.rules.reverse(product)(reverse_with_both)
    assert irad.grad(product, (0, 1))(3.0, 4.0) == (4.0, 3.0)
