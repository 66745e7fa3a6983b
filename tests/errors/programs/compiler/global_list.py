"""A list that is a global variable."""

from numba import njit

import irad

WEIGHTS = [0.5, 1.5]


@njit
def loss(x):
    return WEIGHTS[0] * x + WEIGHTS[1] * x * x


def wrong():
    return irad.grad(loss)(3.0)


def mended():
    weights = tuple(WEIGHTS)
    by_tuple = njit(lambda x: weights[0] * x + weights[1] * x * x)
    assert irad.grad(by_tuple)(3.0) == 9.5
    by_argument = njit(lambda x, weights: weights[0] * x + weights[1] * x * x)
    assert irad.grad(by_argument)(3.0, WEIGHTS) == 9.5


CHECKED = (loss, (3.0,), 0)
