"""A function that calls itself on every path."""

from numba import njit

import irad


@njit
def power(x, n):
    return x * power(x, n - 1)


def wrong():
    return irad.grad(power)(2.0, 3)


@njit
def ended(x, n):
    if n == 0:
        return 1.0
    return x * ended(x, n - 1)


def mended():
    assert irad.grad(ended)(2.0, 3) == 12.0


CHECKED = (power, (2.0, 3), 0)
