"""A Python function is called in compiled code without saying what it returns."""

from numba import njit

import irad


def lookup(x):
    return 0.5 * x


def rule(x):
    return 0.5 * x, lambda cotangent: (0.5 * cotangent,)


def wrong():
    called = irad.rules.import_rule(lookup, rule)
    return irad.grad(njit(lambda x: called(x) ** 2))(3.0)


def mended():
    called = irad.rules.import_rule(lookup, rule, returns="float64")
    assert irad.grad(njit(lambda x: called(x) ** 2))(3.0) == 1.5
