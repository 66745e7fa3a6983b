"""``has_aux=True`` for a function that returns one value."""

from numba import njit

import irad


@njit
def loss(x):
    return x * x


def wrong():
    return irad.grad(loss, has_aux=True)(3.0)


def mended():
    @njit
    def loss_and_name(x):
        return x * x, "loss"

    assert irad.grad(loss_and_name, has_aux=True)(3.0) == (6.0, "loss")
