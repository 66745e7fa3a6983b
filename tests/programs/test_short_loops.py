"""Loops whose number of iterations is known to be small, but not how small: LLVM may cut off their vectors by masks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import njit

import irad

_ORACLE = irad.Options(plan="save_all")


@njit
def read_before_stored(x, n):
    """Each element is added up before it is overwritten."""
    k, total = np.zeros(2), 0.0
    for i in range(min(n, 2)):
        total += k[i]
        k[i] = x[0]
    return total


@njit
def read_again(x, n):
    k, total = np.zeros(4), 0.0
    for j in range(3):
        for i in range(min(n, 4)):
            total += k[i] * (1.0 + j)
            k[i] = x[i]
    return total


@njit
def stored_and_scaled(x, n):
    k, total = np.zeros(n), 0.0
    for _ in range(2):
        for i in range(min(n, 3)):
            total += k[i]
            k[i] = 2.0 * x[1]
    return total * x[2]


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 5])
@pytest.mark.parametrize("function", [read_before_stored, read_again, stored_and_scaled])
def test_sums_of_what_is_overwritten(function: Any, n: int):
    x = np.linspace(0.5, 1.2, 5)
    value, gradient = irad.value_and_grad(function)(x, n)
    assert value == function.py_func(x, n)
    np.testing.assert_allclose(gradient, irad.grad(function, options=_ORACLE)(x, n), rtol=1e-14)
    differences = [(function.py_func(x + step, n) - function.py_func(x - step, n)) / 2e-6 for step in 1e-6 * np.eye(5)]
    np.testing.assert_allclose(gradient, differences, atol=1e-8)
