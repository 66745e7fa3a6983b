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
                of_sum = of_sums[i % of_sums.shape[0], j % of_sums.shape[1], k % of_sums.shape[2]]
                y[i, j, k] += x.dtype.type(0.3) * logarithms[i, j, k] * of_sum
    return y


def test_jacobian():
    """The rule takes one direction at a time, and so do the columns."""
    x = np.array([1.0, 2.0, 3.0])
    y = special.softmax(x)
    np.testing.assert_allclose(irad.jacobian(lambda x: nn.softmax(x))(x), np.diag(y) - np.outer(y, y), rtol=1e-12)


def _all_three_by_scipy(x: Any, axis: Any) -> Any:
    return special.softmax(x, axis) + 0.3 * special.log_softmax(x, axis) * special.logsumexp(x, axis, keepdims=True)


def test_in_every_mode_order_and_precision():
    x = 3.0 * np.random.default_rng(0).standard_normal((2, 5, 3))
    check(_all_three, x, 1, reference=_all_three_by_scipy)
    check_single(_all_three, np.random.default_rng(2).standard_normal((3, 37, 1)), 1)


def test_several_axes():
    """Neighbours, which are one axis, and others, in any order; a tuple of each length is one program."""
    x = 3.0 * np.random.default_rng(0).standard_normal((2, 5, 3))
    check(_all_three, x, (0, 2), reference=_all_three_by_scipy)
    for axis in ((2, 0), (1, 2), (0, 1), (-2, -1), (-1, 0)):
        np.testing.assert_allclose(_all_three(x, axis), _all_three_by_scipy(x, axis), rtol=1e-12, atol=1e-13)
    check_single(_all_three, x, (0, 2))
    for empty in (np.empty((0, 3, 2)), np.empty((2, 0, 3)), np.empty((3, 2, 0))):
        assert _all_three(empty, (0, 2)).shape == empty.shape
    with pytest.raises(IndexError, match="axis 3 of an array with 3 axes"):
        _all_three(x, (0, 3))
    with pytest.raises(ValueError, match="axis -1 is given twice"):
        _all_three(x, (2, -1))


@njit
def _of_literal_axes(x):
    return nn.logsumexp(x, (0, 1, 2))[0, 0, 0], nn.logsumexp(x, None)[0, 0, 0], nn.logsumexp(x, ()).ravel()


def test_all_axes_and_none():
    x = np.random.default_rng(0).standard_normal((2, 5, 3))
    by_tuple, by_none, of_each = _of_literal_axes(x)
    assert by_tuple == by_none == pytest.approx(special.logsumexp(x), rel=1e-14)
    np.testing.assert_array_equal(of_each, x.ravel())


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


@njit
def _all_of(rows):
    return nn.softmax(rows, 1), nn.logsoftmax(rows, 1), nn.logsumexp(rows, 1)


@njit
def _first_column(number, rows):
    if number == 0:
        return nn.softmax(rows, 1)[:, 0].copy()
    if number == 1:
        return nn.logsoftmax(rows, 1)[:, 0].copy()
    return nn.logsumexp(rows, 1)[:, 0].copy()


@njit
def _sum_of_column(number, rows):
    return _first_column(number, rows).sum()


INFINITE = np.array(
    [
        [-np.inf, -np.inf],
        [-np.inf, 1.0],
        [-1e30, 1e30],
        [np.inf, 0.0],
        [np.inf, -np.inf],
        [np.inf, np.inf],
        [np.nan, np.inf],
        [-np.nan, np.inf],
        [np.nan, 1.0],
    ]
)


def test_infinite_rows():
    """As SciPy and PyTorch have them."""
    with np.errstate(all="ignore"):
        wanted = [reference(INFINITE, axis=1) for _, reference in FUNCTIONS.values()]
    for type_ in (np.float64, np.float32):
        for found, expected in zip(_all_of(INFINITE.astype(type_)), wanted, strict=True):
            np.testing.assert_array_equal(found, expected.astype(type_))
        for found, expected in zip(_all_of(INFINITE[1:3].T.astype(type_).T), wanted, strict=True):
            np.testing.assert_array_equal(found, expected[1:3].astype(type_))


def test_derivatives_of_infinite_rows():
    """Forward and reverse; that of logsumexp is exp(x - logsumexp), as in PyTorch."""
    weights = np.array([1.0, 0.0])
    with np.errstate(all="ignore"):
        softmax = special.softmax(INFINITE, axis=1)
        slopes = np.exp(INFINITE - special.logsumexp(INFINITE, axis=1, keepdims=True))
    for number, wanted in enumerate((softmax * (weights - softmax[:, :1]), weights - softmax, slopes)):
        np.testing.assert_allclose(irad.grad(_sum_of_column, argnums=1)(number, INFINITE), wanted, rtol=1e-13)
        for direction in np.eye(2):
            tangent = np.tile(direction, (len(INFINITE), 1))
            pushed = irad.jvp(_first_column, (number, INFINITE), (None, tangent))[1]
            np.testing.assert_allclose(pushed, (wanted * direction).sum(1), rtol=1e-13)


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
