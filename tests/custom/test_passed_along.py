"""What a function that is passed to another one is given besides: in a tuple, alone, and in a structure."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

import irad
from irad.integrate import quad


@njit
def power(x, parameters):
    return parameters["weights"][1] * x ** parameters["exponent"]


PARAMETERS = {"weights": np.array([5.0, 2.0]), "exponent": 3.0}


@njit
def area(parameters):
    return quad(power, 0.0, 1.0, parameters)[0]


def test_a_structure_is_one_argument():
    """∫ w xⁿ = w / (n + 1)"""
    assert quad(power, 0.0, 1.0, (PARAMETERS,))[0] == pytest.approx(0.5)
    assert quad(power, 0.0, 1.0, PARAMETERS)[0] == pytest.approx(0.5)
    value, slope = irad.value_and_grad(area)(PARAMETERS)
    assert value == pytest.approx(0.5)
    np.testing.assert_allclose(slope["weights"], [0.0, 0.25], rtol=1e-10)
    assert slope["exponent"] == pytest.approx(-2.0 / 16.0, rel=1e-8)  # the tolerance of the integral
