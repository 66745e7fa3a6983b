"""A function that takes any keywords."""

from collections import namedtuple

import irad


def growth(x, **parameters):
    return x * parameters["rate"]


def growth_of(x, rate):
    return x * rate


Parameters = namedtuple("Parameters", ["rate"])


def growth_of_tuple(x, parameters):
    return x * parameters.rate


def wrong():
    return irad.grad(growth)(2.0, rate=3.0)


def mended():
    assert irad.grad(growth_of)(2.0, rate=3.0) == 3.0
    assert irad.grad(growth_of_tuple)(2.0, Parameters(3.0)) == 3.0
