"""A read-only array that is passed to a function that writes to it."""

import numpy as np
from numba import njit

import irad


@njit
def pinned(x, y):
    y[0] = 0.0
    return x @ y


fixed = np.ones(3)
fixed.flags.writeable = False


def wrong():
    return irad.grad(pinned)(np.ones(3), fixed)


def mended():
    np.testing.assert_array_equal(irad.grad(pinned)(np.ones(3), fixed.copy()), [0.0, 1.0, 1.0])  # (a)
    writeable = np.ones(3)
    writeable.flags.writeable = True
    np.testing.assert_array_equal(irad.grad(pinned)(np.ones(3), writeable), [0.0, 1.0, 1.0])  # (b)


CHECKED = (pinned, (np.ones(3), fixed), 0)
