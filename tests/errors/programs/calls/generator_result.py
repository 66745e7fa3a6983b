"""A generator as the result."""

import numpy as np
from numba import njit

import irad


@njit
def partial_sums(x):
    total = 0.0
    for value in x:
        total += value
        yield total


def wrong():
    return irad.grad(partial_sums)(np.ones(3))


def mended():
    @njit
    def sum_of_squares(x):
        result = 0.0
        for value in partial_sums(x):
            result += value * value
        return result

    assert irad.grad(sum_of_squares)(np.ones(3)).tolist() == [12.0, 10.0, 6.0]
