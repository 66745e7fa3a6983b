"""Sparse Jacobians by rows: which mode is chosen, and that both give the same."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

import irad


@njit
def banded(x, scale):
    """Each result depends on five numbers, each number reaches one result or two."""
    y = np.empty(x.size // 4)
    for i in range(y.size):
        y[i] = scale * np.prod(x[4 * i : 4 * i + 5])
    return y


@njit
def written(out, x, scale):
    out[:] = 0.0
    for i in range(x.size):
        out[i // 4] += scale * x[i] ** 2
    return x.size, out.sum()


def test_the_mode_with_fewer_products_is_chosen():
    x = np.random.default_rng(4).uniform(0.5, 1.5, 41)
    dense = irad.jacobian(banded, mode="reverse")(x, 2.0)
    products = {None: 2, "reverse": 2, "forward": 5}
    for mode, count in products.items():
        prepared = irad.sparse_jacobian(banded, mode=mode).prepare(x, 2.0)
        assert (prepared.mode, prepared.products) == (mode or "reverse", count)
        for by in ("dependence", "probe"):
            again = irad.sparse_jacobian(banded, mode=mode, pattern=by).prepare(x, 2.0)
            np.testing.assert_array_equal(again.pattern.toarray(), dense != 0.0)
        np.testing.assert_allclose(prepared(x, 2.0).toarray(), dense, rtol=1e-15)
        with pytest.raises(irad.SignatureError, match=r"has 41 columns|has 10 rows"):
            prepared(np.ones(45), 2.0)


def test_results_in_an_argument_with_something_besides_in_single_precision():
    x, out = np.linspace(1.0, 2.0, 12, dtype=np.float32), np.empty(3, np.float32)
    expected = np.zeros((3, 12), np.float32)
    for i in range(12):
        expected[i // 4, i] = 6.0 * x[i]
    for mode in ("forward", "reverse"):
        found, aux = irad.sparse_jacobian(written, 1, has_aux=True, outputs=0, mode=mode)(out, x, np.float32(3.0))
        assert found.dtype == np.float32
        np.testing.assert_allclose(found.toarray(), expected, rtol=1e-6)
        assert aux == (12, out.sum())
    np.testing.assert_allclose(out, 3.0 * (x * x).reshape(3, 4).sum(axis=1), rtol=1e-6)


def test_a_missing_entry_is_an_error_in_rows_as_well():
    x = np.ones(9)
    pattern = np.ones((2, 9))
    pattern[1, 8] = 0.0
    with pytest.raises(irad.SignatureError, match="lacks an entry in column 8"):
        irad.sparse_jacobian(banded, mode="reverse", pattern=pattern)(x, 2.0)


def test_the_mode_that_passes_through_what_is_called():
    @irad.custom_vjp
    def cube(a):
        return a**3

    @irad.jit
    def forward(a):
        return a**3, a

    @irad.jit
    def backward(kept, cotangent):
        return (3.0 * kept**2 * cotangent,)

    cube.defvjp(forward, backward)

    @irad.custom_jvp
    def square(a):
        return a**2

    @irad.jit
    def tangent(primals, tangents):
        return primals[0] ** 2, 2.0 * primals[0] * tangents[0]

    square.defjvp(tangent)

    @njit
    def by_rows(x):
        y = np.zeros(x.size)
        for i in range(x.size):
            y[i] += cube(x[i])
            y[i] += x[0]
            y[0] += x[i] ** 2
            y[1] += x[i]
        return y

    @njit
    def by_columns(x):
        y = np.zeros(x.size)
        for i in range(x.size):
            y[0] += square(x[i])
            y[i] += x[i]
        return y

    x = np.linspace(1.0, 2.0, 7)
    prepared = irad.sparse_jacobian(by_rows).prepare(x)
    assert (prepared.mode, prepared.products) == ("reverse", 7)
    expected = np.diag(3.0 * x**2)
    expected[:, 0] += 1.0
    expected[0] += 2.0 * x
    expected[1] += 1.0
    np.testing.assert_allclose(prepared(x).toarray(), expected, rtol=1e-14)
    prepared = irad.sparse_jacobian(by_columns).prepare(x)
    assert (prepared.mode, prepared.products) == ("forward", 7)
    expected = np.eye(7)
    expected[0] += 2.0 * x
    np.testing.assert_allclose(prepared(x).toarray(), expected, rtol=1e-14)


def test_side_effects_are_refused_in_both_modes():
    @njit
    def noisy(x, generator):
        return x * generator.normal()

    x = np.ones(3)
    for mode in (None, "forward", "reverse"):
        with pytest.raises(irad.UnsupportedError, match="has side effects, and its sparse Jacobian"):
            irad.sparse_jacobian(noisy, mode=mode)(x, np.random.default_rng(1))
