"""A function of NumPy that Numba does not have."""

import numpy as np
from numba import njit

import irad


@njit
def contracted(a, b):
    return np.einsum("ij,ij->", a, b)


def wrong():
    return irad.grad(contracted)(np.ones((2, 2)), np.ones((2, 2)))


def mended():
    @njit
    def written_out(a, b):
        return np.sum(a * b)

    assert irad.grad(written_out)(np.ones((2, 2)), np.ones((2, 2))).tolist() == [[1.0, 1.0], [1.0, 1.0]]


CHECKED = (contracted, (np.ones((2, 2)), np.ones((2, 2))), 0)
