"""A variable with two types."""

from numba import njit

import irad


@njit
def loss(x):
    if x > 0.0:
        scale = 2.0
    else:
        scale = "none"
    return x * x if scale == "none" else scale * x * x


def wrong():
    return irad.grad(loss)(3.0)


def mended():
    @njit
    def one_type(x):
        scale = 2.0 if x > 0.0 else 1.0
        return scale * x * x

    assert irad.grad(one_type)(3.0) == 12.0


CHECKED = (loss, (3.0,), 0)
