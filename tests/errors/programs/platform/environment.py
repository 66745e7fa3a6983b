"""An environment variable with an invalid value."""

import os

from numba import njit

import irad


@njit
def square(x):
    return x * x


def wrong():
    os.environ["IRAD_VERIFY"] = "perhaps"
    try:
        return irad.grad(square)(3.0)
    finally:
        del os.environ["IRAD_VERIFY"]


def mended():
    os.environ["IRAD_VERIFY"] = "0"
    try:
        assert irad.grad(square)(3.0) == 6.0
    finally:
        del os.environ["IRAD_VERIFY"]
