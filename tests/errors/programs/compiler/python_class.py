"""An attribute of a plain Python class is read in compiled code."""

from numba import njit

import irad


class Settings:
    scale = 2.0


@njit
def loss(x):
    return Settings.scale * x


def wrong():
    return irad.grad(loss)(3.0)


def mended():
    scale = Settings.scale
    assert irad.grad(njit(lambda x: scale * x))(3.0) == 2.0


CHECKED = (loss, (3.0,), 0)
