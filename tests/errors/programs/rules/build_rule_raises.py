"""A `build_rule` that fails for a signature."""

from numba import njit

import irad
from irad.rules import AugmentedReturn, StatefulRule


@njit
def cube(x):
    return x * x * x


FACTORS = {"float32": 3.0}


def wrong():
    @irad.rules.build_rule(cube)
    def build(signature):
        factor = FACTORS[str(signature.args[0])]
        return make_rule(factor)

    return irad.grad(cube)(2.0)


def make_rule(factor):
    def augmented(config, state, x):
        return AugmentedReturn(x.value**3, None, None)

    def reverse(config, state, cotangent, tape, x):
        return (cotangent * factor * x.value**2,)

    return StatefulRule(augmented, reverse, lambda: 0)


def mended():
    irad.rules.build_rule(cube)(lambda signature: make_rule(3.0))
    assert irad.grad(cube)(2.0) == 12.0
    irad.rules.remove(cube)
