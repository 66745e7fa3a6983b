"""Rows and views of contiguous arrays: their elements lie side by side, and LLVM knows."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit
from numpy.lib.stride_tricks import as_strided

import irad


@njit
def of_rows(a, w):
    total = 0.0
    for row in a:
        for k in range(row.size):
            total += w[k] * row[k] ** 2
    return total


@njit
def of_views(a, w):
    total = 0.0
    for i in range(a.shape[0]):
        part, row = a[i:, 1:], a[i]
        for k in range(part.shape[1]):
            part[0, k] = w[k] * row[k + 1] ** 2
        total += part[0, 0] * part[-1, -1] + row[::2].sum() * row[::-1][0]
    return total


@njit
def of_deep_views(a, w):
    total = 0.0
    for plane in a:
        for column in plane.T:
            total += column[0] * w[0] ** 2
        block = plane[..., :2]
        for k in range(block.shape[1]):
            total += block[1, k] * block[0, k] * w[k]
    return total


def arrays_of(shape: tuple[int, ...]) -> list[np.ndarray]:
    """The same numbers in arrays of either order, and in one whose elements do not lie side by side."""
    a = np.random.default_rng(0).uniform(0.5, 2.0, shape)
    apart = np.zeros((*shape[:-1], 2 * shape[-1]))[..., ::2]
    apart[...] = a
    return [a, np.asfortranarray(a), apart]


@pytest.mark.parametrize(
    ("function", "shape"), [(of_rows, (4, 9)), (of_rows, (3, 1)), (of_views, (3, 10)), (of_deep_views, (2, 3, 4))]
)
def test_gradients_do_not_depend_on_the_order(function, shape: tuple[int, ...]) -> None:
    w = np.linspace(0.5, 1.5, shape[-1])
    first, *others = (irad.grad(function, argnums=(0, 1))(a, w) for a in arrays_of(shape))
    irad.testing.check_gradient(function, arrays_of(shape)[0], w)
    assert not arrays_of(shape)[-1].flags.forc
    for other in others:
        np.testing.assert_allclose(other[0], first[0], rtol=1e-13)
        np.testing.assert_allclose(other[1], first[1], rtol=1e-13)


@pytest.mark.parametrize(
    "a",
    [
        as_strided(np.array([1.0, 2.0, 3.0]), (3, 1), (8, 4096)),
        as_strided(np.array([1.0, 2.0, 3.0]), (1, 3), (-4096, 8)),
        np.empty((0, 3)),
        np.empty((3, 0)),
    ],
)
def test_strides_of_axes_with_one_element_lead_nowhere(a: np.ndarray) -> None:
    assert a.flags.c_contiguous
    w = np.array([0.5, 1.0, 1.5])
    value, (by_a, by_w) = irad.value_and_grad(of_rows, argnums=(0, 1))(a, w)
    count = a.shape[1]
    assert value == pytest.approx((w[:count] * a**2).sum())
    np.testing.assert_allclose(by_a, 2.0 * w[:count] * a)
    np.testing.assert_allclose(by_w[:count], (a**2).sum(axis=0))


@njit
def of_squares(a):
    total = 0.0
    for row in a:
        for k in range(row.size):
            total += row[k] ** 2
    return total


def test_loops_over_rows_that_are_iterated_are_vectors() -> None:
    assert "load <" in irad.inspect(irad.value_and_grad(of_squares), np.ones((3, 9))).optimized
    assert "load <" not in irad.inspect(irad.value_and_grad(of_squares), np.ones((9, 3)).T).optimized


@njit
def strides_of(a):
    return a[:, 1:].strides[1] + a[0].strides[0]


def test_code_of_others_is_compiled_as_ever() -> None:
    irad.grad(of_rows)(np.ones((2, 2)), np.ones(2))
    assert strides_of(as_strided(np.arange(9.0), (1, 1), (8, 64))) == 64 + 64
