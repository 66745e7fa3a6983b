"""A function of a library is passed to compiled code."""

import math

import numba
from numba import njit

import irad


@njit
def twice(function, x):
    return function(x) * 2.0


def wrong():
    return irad.grad(twice, argnums=1)(math.sin, 0.0)


def mended():
    assert irad.grad(twice, argnums=1)(numba.njit(lambda x: math.sin(x)), 0.0) == 2.0


CHECKED = (twice, (math.sin, 0.0), 1)
