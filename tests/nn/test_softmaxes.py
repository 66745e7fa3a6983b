"""softmax, logsoftmax, logsumexp."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import special

import irad
from irad import nn
from tests.nn.checks import check, check_single

FUNCTIONS = {
    "softmax": (nn.softmax, special.softmax),
    "logsoftmax": (nn.logsoftmax, special.log_softmax),
    "logsumexp": (nn.logsumexp, lambda x, axis: special.logsumexp(x, axis, keepdims=True)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_against_scipy_and_in_every_mode(name: str):
    f, reference = FUNCTIONS[name]
    x = 3.0 * np.random.default_rng(0).standard_normal((2, 5, 3))
    check(f, x, 1, reference=reference)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_axes(name: str):
    f, reference = FUNCTIONS[name]
    x = np.random.default_rng(1).standard_normal((2, 5, 3))
    for axis in (0, 1, 2, -1, -3):
        np.testing.assert_allclose(f(x, axis), reference(x, axis), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(f(x.transpose(2, 0, 1), 0), reference(x.transpose(2, 0, 1), 0), rtol=1e-12)
    np.testing.assert_allclose(f(x[:, ::2, ::-1], 1), reference(x[:, ::2, ::-1], 1), rtol=1e-12)


def test_single_precision():
    x = np.random.default_rng(2).standard_normal((3, 37, 1))
    check_single(nn.softmax, x, 1)
    for f in (nn.logsoftmax, nn.logsumexp):
        found = f(x.astype(np.float32), 1)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, f(x, 1), rtol=2e-5, atol=2e-6)


def test_fully_masked_rows():
    x = np.array([[-np.inf, -np.inf], [-np.inf, 1.0], [-1e300, 1e300]])
    np.testing.assert_array_equal(nn.softmax(x, 1), [[0.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    np.testing.assert_array_equal(nn.logsumexp(x, 1), [[-np.inf], [1.0], [1e300]])
    np.testing.assert_array_equal(nn.logsoftmax(x, 1)[0], [-np.inf, -np.inf])
    for f in (nn.softmax, nn.logsoftmax, nn.logsumexp):

        def last_row(x: Any, f: Any = f) -> Any:
            return f(x, 1)[1:].sum()

        gradient = irad.grad(last_row)(x)
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
