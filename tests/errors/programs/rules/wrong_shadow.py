"""An augmented primal that returns an array without its shadow."""

import numpy as np
from numba import njit

import irad
from irad.rules import AugmentedReturn


@njit
def doubled(x):
    return 2.0 * x


@njit
def loss(x):
    return np.sum(doubled(x))


def augmented(config, x):
    return AugmentedReturn(2.0 * x.value, None, None)


def augmented_with_shadow(config, x):
    return AugmentedReturn(2.0 * x.value, np.zeros_like(x.value), None)


def reverse(config, cotangent, tape, x):
    x.shadow[:] += 2.0 * cotangent
    return (None,)


def wrong():
    irad.rules.augmented_primal(doubled)(augmented)
    irad.rules.reverse(doubled)(reverse)
    return irad.grad(loss)(np.ones(3))


def mended():
    irad.rules.augmented_primal(doubled)(augmented_with_shadow)
    assert irad.grad(loss)(np.ones(3)).tolist() == [2.0, 2.0, 2.0]
