"""The gradient of a function that returns a complex number."""

from numba import njit

import irad


@njit
def amplitude(x):
    return (1.0 + 2.0j) * x


def wrong():
    return irad.grad(amplitude)(3.0)


def mended():
    @njit
    def power(x):
        return abs(amplitude(x)) ** 2

    assert abs(irad.grad(power)(3.0) - 30.0) < 1e-12  # (a)
    _, pullback = irad.vjp(amplitude, 3.0)  # (b)
    assert pullback(1.0 + 0.0j) == (1.0,)
