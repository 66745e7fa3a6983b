"""One class of exceptions is caught in compiled code."""

import math

from numba import njit

import irad


@njit
def loss(x):
    try:
        return math.log(x)
    except ValueError:
        return 0.0


def wrong():
    return irad.grad(loss)(2.0)


def mended():
    @njit
    def catches_all(x):
        try:
            return math.log(x)
        except Exception:
            return 0.0

    assert irad.grad(catches_all)(2.0) == 0.5
    tested = njit(lambda x: math.log(x) if x > 0.0 else 0.0)
    assert irad.grad(tested)(2.0) == 0.5


CHECKED = (loss, (2.0,), 0)
