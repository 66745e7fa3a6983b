"""A function of scipy.special that was imported by its name."""

import math

from numba import njit
from scipy.special import gammaln

import irad


@njit
def loss(x):
    return gammaln(x)


def wrong():
    return irad.grad(loss)(2.0)


def mended():
    derivative = irad.grad(njit(lambda x: math.lgamma(x)))(2.0)
    assert abs(derivative - 0.42278433509846713) < 1e-14


CHECKED = (loss, (2.0,), 0)
