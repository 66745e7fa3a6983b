"""Derivatives as values: compiled code chooses between them and calls them through pointers."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
import pytest
from numba import float32, float64, njit, types
from numba.core.errors import NumbaExperimentalFeatureWarning

import irad

FUNCTION = types.FunctionType(float64(float64))


@njit
def wave(x):
    return np.sin(x) * x


@njit
def cube(x):
    return x**3


@njit
def reciprocal(x):
    return 1 / x


d_wave, d_cube = irad.grad(wave), irad.grad(cube)


@pytest.fixture(autouse=True)
def _without_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NumbaExperimentalFeatureWarning)
        yield


def test_chosen_by_condition() -> None:
    @njit
    def derivative(first, x):
        chosen = d_wave if first else d_cube
        return chosen(x)

    assert derivative(True, 0.7) == pytest.approx(np.cos(0.7) * 0.7 + np.sin(0.7))
    assert derivative(False, 0.7) == pytest.approx(3 * 0.7**2)


def test_passed_from_python_and_from_compiled_code() -> None:
    @njit(float64(FUNCTION, float64))
    def twice(function, x):
        return function(x) + function(2 * x)

    @njit
    def inside(x):
        return twice(d_cube, x)

    assert twice(d_wave, 0.7) == pytest.approx(sum(np.cos(x) * x + np.sin(x) for x in (0.7, 1.4)))
    assert inside(0.7) == pytest.approx(15 * 0.7**2)


def test_of_a_derivative_that_has_been_called_before() -> None:
    """What Python calls has no entry for pointers, which must not be taken for one that has."""
    derivative = irad.grad(cube)
    assert derivative(2.0) == 12.0

    @njit(float64(FUNCTION))
    def at_three(function):
        return function(3.0)

    assert at_three(derivative) == 27.0
    assert derivative(2.0) == 12.0


def test_of_another_signature() -> None:
    @njit(float32(types.FunctionType(float32(float32)), float32))
    def call(function, x):
        return function(x)

    assert call(d_cube, np.float32(2)) == 12


def test_exceptions_pass_through_pointers() -> None:
    derivative = irad.grad(reciprocal)

    @njit(float64(FUNCTION, float64))
    def call(function, x):
        return function(x)

    assert call(derivative, 2.0) == -0.25
    with pytest.raises(ZeroDivisionError):
        call(derivative, 0.0)
