"""Nothing to differentiate by at all."""

from numba import njit

import irad


@njit
def factorial(n):
    product = 1
    for i in range(2, n + 1):
        product *= i
    return product


def wrong():
    return irad.vjp(factorial, 5)


def mended():
    @njit
    def scaled(n, scale):
        return factorial(n) * scale

    value, pullback = irad.vjp(scaled, 5, 2.0)
    assert (value, pullback(1.0)) == (240.0, (None, 120.0))


CHECKED = (factorial, (5,), None)
