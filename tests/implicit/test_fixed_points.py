"""`fixed_point`: Anderson's method against closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

import irad
from irad.implicit import fixed_point


@njit
def affine(x, m, b):
    """A map whose plain iteration does not converge."""
    return np.array([m[0] * x[0] + m[1] * x[1] + b, m[2] * x[0] + 0.1 * b])


@njit
def total(m, b):
    return fixed_point(affine, np.zeros(2), (m, b), memory=2).sum()


def closed(m, b):
    matrix = np.array([[1.0 - m[0], -m[1]], [-m[2], 1.0]])
    return np.linalg.solve(matrix, np.array([b, 0.1 * b])).sum()


def test_a_vector():
    m, b, h = np.array([-1.5, 0.4, 0.3]), 2.0, 1e-30
    value, (by_m, by_b) = irad.value_and_grad(total, argnums=(0, 1))(m, b)
    assert value == pytest.approx(closed(m, b), rel=1e-9)
    expected = [closed(m + h * 1j * unit, b).imag / h for unit in np.eye(3)]
    np.testing.assert_allclose(by_m, expected, rtol=1e-8)
    assert by_b == pytest.approx(closed(m, b + h * 1j).imag / h, rel=1e-8)


@njit
def damped(x, a):
    return 0.5 * np.cos(x) + a


def test_a_number():
    def settled(a):
        return fixed_point(damped, 0.0, a)

    value, slope = irad.value_and_grad(settled)(0.1)
    assert value == pytest.approx(0.5 * np.cos(value) + 0.1, abs=1e-10)
    assert slope == pytest.approx(1.0 / (1.0 + 0.5 * np.sin(value)), rel=1e-8)


def test_no_fixed_point():
    with pytest.raises(ValueError, match="found no fixed point"):
        fixed_point(damped, 0.0, 0.1, maxiter=2)
    with pytest.raises(ValueError, match="found no fixed point"):
        fixed_point(affine, np.zeros(2), (np.array([-1.5, 0.4, 0.3]), 2.0), memory=0)
