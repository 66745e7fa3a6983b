"""A misspelled name in a function that is called by a callee."""

import numpy as np
from numba import njit

import irad


@njit
def inner(x):
    return np.sine(x)


@njit
def middle(x):
    return inner(x) * 2.0


@njit
def loss(x):
    return middle(x)


def wrong():
    return irad.grad(loss)(0.0)


def mended():
    assert irad.grad(njit(lambda x: 2.0 * np.sin(x)))(0.0) == 2.0


CHECKED = (loss, (0.0,), 0)
