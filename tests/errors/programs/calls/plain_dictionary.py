"""A dictionary of Python, which Numba cannot hold."""

from numba import njit

import irad


@njit
def area(sizes):
    return sizes["width"] * sizes["height"]


def wrong():
    return irad.grad(area)({"width": 3.0, "height": 4.0})


def mended():
    from collections import namedtuple

    import numba
    from numba.typed import Dict

    Sizes = namedtuple("Sizes", "width height")

    @njit
    def area_of(sizes):
        return sizes.width * sizes.height

    assert irad.grad(area_of)(Sizes(3.0, 4.0)) == Sizes(4.0, 3.0)
    sizes = Dict.empty(numba.types.unicode_type, numba.float64)
    sizes["width"], sizes["height"] = 3.0, 4.0
    assert irad.grad(area)(sizes)["width"] == 4.0
