"""A Hessian-vector product with respect to a list that holds one array twice, and writes to it."""

import numpy as np
from numba import njit
from numba.typed import List

import irad


@njit
def energy(layers):
    layers[0] *= 2.0
    return (layers[0] ** 2 * layers[1]).sum()


def wrong():
    layer = np.array([1.0, 2.0])
    return irad.hvp(energy)(List([layer, layer]), List([np.ones(2)] * 2))


def mended():
    layer = np.array([1.0, 2.0])
    found = irad.hvp(energy)(List([layer, layer.copy()]), List([np.ones(2)] * 2))
    assert found[1].tolist() == [8.0, 16.0]
