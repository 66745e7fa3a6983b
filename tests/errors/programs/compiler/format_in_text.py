"""A number is formatted in an f-string."""

from numba import njit

import irad


@njit
def loss(x):
    y = x * x
    print(f"loss: {y:.3f}")
    return y


def wrong():
    return irad.grad(loss)(3.0)


def mended():
    @njit
    def plain(x):
        y = x * x
        print("loss:", y)
        return y

    assert irad.grad(plain)(3.0) == 6.0


CHECKED = (loss, (3.0,), 0)
