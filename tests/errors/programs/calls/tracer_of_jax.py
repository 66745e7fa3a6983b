"""A derivative of irad is called within jax.jit. The tracer only looks like one: irad tells by the name of its type."""

import numpy as np
from numba import njit

import irad


class JVPTracer:
    __module__ = "jax._src.interpreters.ad"


@njit
def energy(x):
    return np.sum(x * x)


def wrong():
    return irad.grad(energy)(JVPTracer())


def mended():
    assert irad.grad(energy)(np.array([1.0, 2.0])).tolist() == [2.0, 4.0]


CHECKED = (energy, (JVPTracer(),), 0)
