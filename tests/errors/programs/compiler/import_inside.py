"""A module is imported in compiled code."""

import math

from numba import njit

import irad


@njit
def loss(x):
    from math import exp

    return exp(x)


def wrong():
    return irad.grad(loss)(0.0)


def mended():
    assert irad.grad(njit(lambda x: math.exp(x)))(0.0) == 1.0


CHECKED = (loss, (0.0,), 0)
