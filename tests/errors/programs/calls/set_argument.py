"""A set of floats: irad has no gradient for it."""

from numba import njit

import irad


@njit
def total(values):
    result = 0.0
    for value in values:
        result += value * value
    return result


def wrong():
    return irad.grad(total)({1.0, 2.0})


def mended():
    import numpy as np

    assert irad.grad(total)(np.array([1.0, 2.0])).tolist() == [2.0, 4.0]


CHECKED = (total, ({1.0, 2.0},), 0)
