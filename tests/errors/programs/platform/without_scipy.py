"""A product of matrices where SciPy is not installed."""

import sys
from unittest import mock

import numpy as np
from numba import njit

import irad


@njit
def quadratic(a, x):
    return x @ (a @ x)


def wrong():
    with mock.patch.dict(sys.modules, {"scipy.linalg.cython_blas": None}):
        return irad.grad(quadratic)(np.eye(2), np.ones(2))


def mended():
    np.testing.assert_array_equal(irad.grad(quadratic)(np.eye(2), np.ones(2)), np.ones((2, 2)))
