"""Results that are written to arrays of the caller, given as ``out=``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import njit

import irad
from irad import nn
from tests.nn.checks import check

_RANDOM = np.random.default_rng(0)
_X, _W = _RANDOM.standard_normal((2, 1, 6, 6)), _RANDOM.standard_normal((3, 1, 3, 3))
_Y, _DST, _SRC = (_RANDOM.standard_normal(shape) for shape in ((2, 3, 4, 4), (5, 2), (3, 2)))
_IDX, _INTO = np.array([5, 0, 3]), np.array([1, 4, 1])


@njit
def _new(x, idx, into):
    means = nn.meanpool(nn.maxpool(x, 2, 1), 2, 1).reshape(6, 4, 4)
    products = nn.batched_mul(nn.softmax(means, (0, 2)), nn.logsoftmax(means, 1), False, True)
    rows = nn.scatter("+", 5, nn.gather(products, idx), into)
    np.random.seed(1)
    return nn.dropout(nn.scatter("min", rows, rows[:3], into), 0.3)


@njit
def _given(x, idx, into):
    """`_new` with an array for the result of each function; one of them is also what rows are added to."""
    most = np.empty((2, 3, 5, 5), x.dtype)
    means = np.empty((2, 3, 4, 4), x.dtype)
    left, right, products = np.empty((6, 4, 4), x.dtype), np.empty((6, 4, 4), x.dtype), np.empty((6, 4, 4), x.dtype)
    chosen, rows, out = np.empty((3, 4, 4), x.dtype), np.empty((5, 4, 4), x.dtype), np.empty((5, 4, 4), x.dtype)
    nn.maxpool(x, 2, 1, 0, most)
    nn.meanpool(most, 2, 1, 0, True, means)
    nn.softmax(means.reshape(6, 4, 4), (0, 2), left)
    nn.logsoftmax(means.reshape(6, 4, 4), 1, right)
    nn.batched_mul(left, right, False, True, products)
    nn.gather(products, idx, chosen)
    nn.scatter("+", 5, chosen, into, None, rows)
    first = rows[:3].copy()
    nn.scatter("min", rows, first, into, None, rows)
    np.random.seed(1)
    return nn.dropout(rows, 0.3, True, False, None, out)


def test_the_gradient():
    x = _RANDOM.standard_normal((2, 3, 6, 6))
    check(_given, x, _IDX, _INTO, reference=_new, second=False, forward=False)


# What writes to the last of its arguments.
CALLS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "batched_mul": (nn.batched_mul, (_X[:, 0], _X[:1, 0, :, :2], False, False)),
    "conv_data": (nn.conv_data, (_Y, _W, _X.shape, 1, 0, 1, 1, True)),
    "conv_filter": (nn.conv_filter, (_X, _Y, _W.shape, 1, 0, 1, 1, True)),
    "depthwiseconv": (nn.depthwiseconv, (_X, _W, 1, 1, 1, True)),
    "dropout": (nn.dropout, (_X, 1.0, True, False, (0, 2))),
    "scatter": (nn.scatter, ("mean", _DST, _SRC, _INTO, None)),
    "softmax": (nn.softmax, (_X, 3)),
}


@pytest.mark.parametrize("name", CALLS)
def test_values_and_memory(name: str):
    f, arguments = CALLS[name]
    wanted = f(*arguments)
    out = np.full(wanted.shape, np.nan)
    found = f(*arguments, out)
    np.testing.assert_array_equal(out, wanted)
    assert np.shares_memory(found, out)


def test_initial_rows_that_are_written_to():
    for op in ("mean", "-", "*"):
        wanted, out = nn.scatter(op, _DST, _SRC, _INTO), _DST.copy()
        nn.scatter(op, out, _SRC, _INTO, None, out)
        np.testing.assert_array_equal(out, wanted)


@njit
def _sum_in_place(dst, src, idx):
    return nn.scatter("*", dst, src, idx, None, dst).sum()


def test_the_derivative_of_rows_that_are_written_to():
    dst, src = np.array([2.0, 3.0]), np.array([5.0, 7.0])
    gradient = irad.grad(_sum_in_place, argnums=(0, 1))(dst, src, np.array([1, 1]))
    np.testing.assert_allclose(gradient[0], [1.0, 35.0])
    np.testing.assert_allclose(gradient[1], [21.0, 15.0])


def test_what_is_refused():
    x = _X.copy()
    with pytest.raises(ValueError, match="out shares memory with an argument"):
        nn.softmax(x, 3, x)
    with pytest.raises(ValueError, match=r"out has the shape \(2, 1, 6, 5\), the result \(2, 1, 6, 6\)"):
        nn.softmax(x, 3, np.empty((2, 1, 6, 5)))
    read_only = np.empty_like(x)
    read_only.flags.writeable = False
    for wrong in (np.empty_like(x, np.float32), np.empty((2, 1, 6, 12))[..., ::2], np.empty(3), read_only):
        with pytest.raises(irad.SignatureError, match=r"softmax: .* as out="):
            nn.softmax(x, 3, wrong)
