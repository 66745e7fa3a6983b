"""softmax, logsoftmax, logsumexp."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import njit
from scipy import special

import irad
from irad import nn
from tests.nn.checks import check, check_single

FUNCTIONS = {
    "softmax": (nn.softmax, special.softmax),
    "logsoftmax": (nn.logsoftmax, special.log_softmax),
    "logsumexp": (nn.logsumexp, lambda x, axis: special.logsumexp(x, axis, keepdims=True)),
}


@njit
def _all_three(x, axis):
    """Each of them counts, in each element, in one function: most of the time goes into compiling."""
    y, logarithms, of_sums = nn.softmax(x, axis), nn.logsoftmax(x, axis), nn.logsumexp(x, axis)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            for k in range(x.shape[2]):
                y[i, j, k] += x.dtype.type(0.3) * logarithms[i, j, k] * of_sums[i, 0, k]
    return y


def test_in_every_mode_order_and_precision():
    def reference(x: Any, axis: int) -> Any:
        return special.softmax(x, axis) + 0.3 * special.log_softmax(x, axis) * special.logsumexp(x, axis, keepdims=True)

    x = 3.0 * np.random.default_rng(0).standard_normal((2, 5, 3))
    check(_all_three, x, 1, reference=reference)
    check_single(_all_three, np.random.default_rng(2).standard_normal((3, 37, 1)), 1)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_axes(name: str):
    f, reference = FUNCTIONS[name]
    x = np.random.default_rng(1).standard_normal((2, 5, 3))
    for axis in (0, 1, 2, -1, -3):
        np.testing.assert_allclose(f(x, axis), reference(x, axis), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(f(x.transpose(2, 0, 1), 0), reference(x.transpose(2, 0, 1), 0), rtol=1e-12)
    np.testing.assert_allclose(f(x[:, ::2, ::-1], 1), reference(x[:, ::2, ::-1], 1), rtol=1e-12)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_single_precision(name: str):
    f, reference = FUNCTIONS[name]
    x = np.random.default_rng(2).standard_normal((3, 37, 1))
    found = f(x.astype(np.float32), 1)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, reference(x, 1), rtol=2e-5, atol=2e-6)


def test_fully_masked_rows():
    x = np.array([[-np.inf, -np.inf], [-np.inf, 1.0], [-1e300, 1e300]])
    np.testing.assert_array_equal(nn.softmax(x, 1), [[0.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    np.testing.assert_array_equal(nn.logsumexp(x, 1), [[-np.inf], [1.0], [1e300]])
    np.testing.assert_array_equal(nn.logsoftmax(x, 1)[0], [-np.inf, -np.inf])

    @njit
    def last_rows(x):  # what is not finite or not zero in one of the three is so in the sum
        total = 0.0
        y, logarithms, of_sums = nn.softmax(x, 1), nn.logsoftmax(x, 1), nn.logsumexp(x, 1)
        for i in range(1, 3):
            for j in range(2):
                total += y[i, j] + 0.3 * logarithms[i, j] + 0.7 * of_sums[i, 0]
        return total

    gradient = irad.grad(last_rows)(x)
    assert np.isfinite(gradient).all()
    np.testing.assert_array_equal(gradient[0], 0.0)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_not_a_number_is_passed_on(name: str):
    found = FUNCTIONS[name][0](np.array([[np.nan, 1.0], [0.0, 1.0]]), 1)
    assert np.isnan(found[0]).all()
    assert np.isfinite(found[1]).all()


def test_empty_arrays():
    assert nn.softmax(np.empty((0, 3)), 1).shape == (0, 3)
    assert nn.softmax(np.empty((3, 0)), 1).shape == (3, 0)
    np.testing.assert_array_equal(nn.logsumexp(np.empty((2, 0)), 1), [[-np.inf], [-np.inf]])


def test_an_axis_that_is_not_there():
    with pytest.raises(IndexError, match="axis 2 of an array with 2 axes"):
        nn.softmax(np.ones((2, 2)), 2)
