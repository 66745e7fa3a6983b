"""A `numpy.vectorize` object, which runs in Python."""

import numpy as np
from numba import njit

import irad


def square(x):
    return x * x


def wrong():
    return irad.grad(np.vectorize(square))(np.ones(3))


compiled = njit(square)


@njit
def total(x):
    result = 0.0
    for i in range(x.size):
        result += compiled(x[i])
    return result


def mended():
    np.testing.assert_array_equal(irad.grad(total)(np.ones(3)), 2.0)
