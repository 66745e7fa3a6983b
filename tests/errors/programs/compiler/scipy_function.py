"""A SciPy function that Numba does not support."""

from numba import njit
from scipy import special

import irad


@njit
def probability(x):
    return 0.5 * (1.0 + special.erf(x))


def wrong():
    return irad.grad(probability)(0.5)


def mended():
    import math

    @njit
    def compiled(x):
        return 0.5 * (1.0 + math.erf(x))

    assert abs(irad.grad(compiled)(0.0) - 1.0 / math.sqrt(math.pi)) < 1e-15


CHECKED = (probability, (0.5,), 0)
