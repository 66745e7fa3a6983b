"""Bodies of functions with a rule may call derivatives of every kind: they are run, not differentiated."""

from __future__ import annotations

import numpy as np
from numba import njit

import irad
from irad.frontend import resident
from irad.frontend.numba.library import is_loaded_symbol
from irad.frontend.numba.private import shadow


@njit
def curve(x):
    return np.array([x[0] ** 2 * x[1], x[1] ** 3])


jacobian, rows = irad.jacobian(curve), irad.jacobian(curve, mode="reverse")


@njit
def slopes(x):
    return jacobian(x).sum() + rows(x).sum() + irad.vjp(curve, x)[1](np.ones(2))[0].sum()


irad.rules.easy_rule(slopes, lambda x: np.array([10.0, 20.0]))


@njit
def loss(x):
    return slopes(x) * x[0]


def test_the_rule_decides_and_the_body_runs():
    x = np.array([1.0, 2.0])
    value, gradient = irad.value_and_grad(loss)(x)
    assert value == 3 * 17.0
    np.testing.assert_array_equal(gradient, [10.0 + 3 * 17.0, 20.0])
    np.testing.assert_array_equal(irad.hessian(loss)(x), [[20.0, 20.0], [20.0, 0.0]])


def test_support_is_looked_for_where_the_machine_code_is():
    """Not among what is compiled to be differentiated, of which there is none."""
    name = "irad.arena_grow"
    resident.load([name])
    with shadow().active():
        assert is_loaded_symbol(name)
        assert not is_loaded_symbol(f"{name}.unknown")
