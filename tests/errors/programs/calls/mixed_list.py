"""A list of numbers and words, which Numba cannot hold."""

from numba import njit

import irad


@njit
def first(items):
    return items[0] * 2.0


def wrong():
    return irad.grad(first)([1.0, "kg"])


def mended():
    assert irad.grad(first)((1.0, "kg")) == (2.0, None)


CHECKED = (first, ([1.0, "kg"],), 0)
