"""An annotation of irad.autodiff is passed to a gradient."""

from numba import njit

import irad


@njit
def area(width, height):
    return width * height


def wrong():
    return irad.grad(area)(irad.Active(3.0), irad.Const(4.0))


def mended():
    assert irad.grad(area)(3.0, 4.0) == 4.0  # (a)
    assert irad.autodiff(irad.Reverse, area, irad.Active(3.0), irad.Const(4.0)) == (4.0, None)  # (b)
