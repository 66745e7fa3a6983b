"""A number is added to a string."""

from numba import njit

import irad


@njit
def labelled(x):
    return x + "kg"


def wrong():
    return irad.grad(labelled)(3.0)


def mended():
    @njit
    def with_label(x):
        return x, "kg"

    assert irad.grad(with_label, has_aux=True)(3.0) == (1.0, "kg")


CHECKED = (labelled, (3.0,), 0)
