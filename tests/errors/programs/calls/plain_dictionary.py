"""A dictionary of Python whose keys are not strings."""

from numba import njit

import irad


@njit
def area(sizes):
    return sizes[0] * sizes[1]


def wrong():
    return irad.grad(area)({0: 3.0, 1: 4.0})


def mended():
    import numba
    from numba.typed import Dict

    @njit
    def area_of(sizes):
        return sizes["width"] * sizes["height"]

    assert irad.grad(area_of)({"width": 3.0, "height": 4.0}) == {"width": 4.0, "height": 3.0}
    sizes = Dict.empty(numba.types.int64, numba.float64)
    sizes[0], sizes[1] = 3.0, 4.0
    assert irad.grad(area)(sizes)[0] == 4.0
