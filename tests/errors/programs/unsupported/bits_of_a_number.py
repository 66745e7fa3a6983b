"""A square root by arithmetic on the bits of a number."""

import numpy as np
from numba import njit

import irad


@njit
def fast_root(x):
    bits = np.empty(1)
    bits[0] = x
    guess = (bits.view(np.int64)[0] >> 1) + (1023 << 51)
    number = np.empty(1, np.int64)
    number[0] = guess
    return number.view(np.float64)[0]


def wrong():
    return irad.grad(fast_root)(4.0)


def mended():
    @njit
    def root(x):
        return np.sqrt(x)

    assert irad.grad(root)(4.0) == 0.25  # (a)
    irad.rules.easy_rule(fast_root, lambda x, root: 0.5 / root)  # (b)
    try:
        assert irad.grad(fast_root)(4.0) == 0.25
    finally:
        irad.rules.remove(fast_root)


CHECKED = (fast_root, (4.0,), 0)
