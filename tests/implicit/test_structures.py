"""Unknowns that are dictionaries and objects: solutions have their structure, with derivatives against closed forms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numba import njit

import irad
from irad import data, implicit

START = {"low": np.ones(2), "high": np.zeros(1)}


@njit
def powers(x, a):
    """Roots of a, and a times the first of them."""
    return x["low"] * x["low"] - a, x["high"] - x["low"][0] * a


@implicit.solves(powers)
def own(guess, a):
    """Its own code has another derivative: it rounds."""
    x = data.copy(guess)
    x["low"][:] = round(np.sqrt(a), 9)
    x["high"][0] = round(a * np.sqrt(a), 9)
    return x


@njit
def seen(start, a):
    x = own(start, a)
    return x["high"][0] + 2.0 * x["low"].sum()


def test_a_dictionary():
    found = own(START, 4.0)
    assert set(found) == {"low", "high"}
    np.testing.assert_array_equal(found["low"], [2.0, 2.0])
    np.testing.assert_array_equal(START["low"], [1.0, 1.0])
    slope = 1.5 * 2.0 + 4.0 * 0.25  # a**1.5 + 4 a**0.5
    assert irad.grad(seen, argnums=1)(START, 4.0) == pytest.approx(slope, rel=1e-10)
    assert irad.jvp(seen, (START, 4.0), (None, 2.0))[1] == pytest.approx(2.0 * slope, rel=1e-10)


@dataclass
class Point:
    x: float
    y: float


@njit
def circle(p, r):
    return p.x * p.x + p.y * p.y - r, p.x - 2.0 * p.y


def test_an_object_from_python():
    found = implicit.newton(circle, Point(1.0, 1), (5.0,))  # an integer is a number
    assert isinstance(found, Point)
    assert (found.x, found.y) == pytest.approx((2.0, 1.0), rel=1e-9)


@pytest.mark.parametrize("guess", [(1.0, None), (1.0, 1j), {"x": 1.0, "y": "one"}, ()])
def test_what_holds_no_real_numbers_is_refused(guess):
    with pytest.raises(irad.SignatureError, match="the solver of an equation starts from"):
        implicit.newton(circle, guess, (5.0,))


def literal(x, a):
    return {"low": x["low"] * x["low"] - a, "high": 1.0}


def test_a_dictionary_made_in_compiled_code_is_refused():
    wrong: Any = njit(literal)
    with pytest.raises(irad.SignatureError, match="the function of an equation returns a dictionary made"):
        implicit.newton(wrong, START, (4.0,))
    with pytest.raises(irad.SignatureError, match="newton is given a dictionary made"):
        irad.grad(lambda a: implicit.newton(powers, {"low": np.ones(2), "high": a}, (a,))["high"])(4.0)
    ending = implicit.solves(powers)(lambda guess, a: {"low": a, "high": np.ones(1)})
    with pytest.raises(irad.SignatureError, match="the solver of an implicit equation returns a dictionary made"):
        ending(START, 4.0)
