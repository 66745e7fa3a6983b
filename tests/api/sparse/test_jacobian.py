"""`irad.sparse_jacobian` against dense Jacobians: patterns, colours, and what happens where a pattern does not fit."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from numba import float64, njit
from numba.experimental import jitclass
from scipy import sparse

import irad
from irad.api.sparse.colouring import colours_of


@jitclass([("u", float64[::1])])
class Held:
    def __init__(self, u):
        self.u = u


@njit
def tridiagonal(u):
    r = np.empty_like(u)
    for i in range(u.size):
        r[i] = 2.0 * u[i] + u[i] ** 3
        if i > 0:
            r[i] -= u[i - 1]
        if i < u.size - 1:
            r[i] -= 3.0 * u[i + 1]
    return r


@njit
def laplacian(out, u, rate):
    n = u.shape[0]
    for i in range(n):
        for j in range(n):
            s = -4.0 * u[i, j] ** 2
            if i > 0:
                s += u[i - 1, j]
            if j > 0:
                s += u[i, j - 1]
            if i < n - 1:
                s += u[i + 1, j]
            if j < n - 1:
                s += u[i, j + 1]
            out[i, j] = rate * s


@njit
def upwind(u):
    r = np.zeros_like(u)
    for i in range(1, u.size - 1):
        if u[i] > 0.0:
            r[i] = u[i] * (u[i] - u[i - 1])
        else:
            r[i] = u[i] * (u[i + 1] - u[i])
    return r


def test_a_tridiagonal_matrix_takes_three_products_whatever_its_size():
    derivative = irad.sparse_jacobian(tridiagonal)
    u = np.linspace(0.0, 1.0, 12)
    found = derivative(u)
    assert (found.format, found.nnz) == ("csc", 34)
    np.testing.assert_array_equal(found.toarray(), irad.jacobian(tridiagonal, chunk=2)(u))
    u = np.linspace(0.0, 1.0, 100_000)
    prepared = derivative.prepare(u)
    assert (prepared.products, prepared.pattern.nnz) == (3, 299_998)
    found = prepared(u)
    expected = sparse.diags_array(
        [np.full(u.size - 1, -1.0), 2.0 + 3.0 * u**2, np.full(u.size - 1, -3.0)], offsets=[-1, 0, 1]
    )
    assert abs(found - expected).max() < 1e-14
    again = prepared(u + 1.0)  # the preparation is reused
    np.testing.assert_allclose(again.diagonal(), 2.0 + 3.0 * (u + 1.0) ** 2, rtol=1e-14)
    assert repr(prepared) == "<<irad.sparse_jacobian of tridiagonal>, prepared: 3 products>"


def test_results_in_an_argument_in_two_dimensions():
    u = np.random.default_rng(1).uniform(size=(9, 9))
    out = np.empty_like(u)
    prepared = irad.sparse_jacobian(laplacian, argnums=1, outputs=0).prepare(out, u, 2.0)
    assert prepared.products <= 9
    np.testing.assert_array_equal(
        prepared(out, u, 2.0).toarray(),
        irad.jacobian(laplacian, argnames="u", chunk=1, outputs=0)(out, u, 2.0).reshape(81, 81),
    )
    expected = np.empty_like(u)
    laplacian(expected, u, 2.0)
    np.testing.assert_array_equal(out, expected)


def test_random_patterns_are_found_and_coloured():
    rng = np.random.default_rng(2)

    @njit
    def entries(x, rows, columns, n):
        y = np.zeros(n)
        for k in range(rows.size):
            y[rows[k]] += np.sin(x[columns[k]] * (rows[k] + 1.0))
        return y

    derivative = irad.sparse_jacobian(entries)
    dense = irad.jacobian(entries, mode="forward", chunk=4)
    for rows, columns, count in ((30, 50, 90), (50, 7, 20), (3, 40, 60), (5, 5, 0)):
        places = rng.integers(0, rows, count), rng.integers(0, columns, count)
        x = rng.uniform(0.1, 1.0, columns)
        prepared = derivative.prepare(x, *places, rows)
        assert set(zip(*prepared.pattern.nonzero(), strict=True)) == set(zip(*places, strict=True))
        np.testing.assert_array_equal(prepared(x, *places, rows).toarray(), dense(x, *places, rows))
        colours = colours_of(prepared.pattern)
        for colour in range(prepared.products):
            assert prepared.pattern[:, colours == colour].sum(axis=1).max() <= 1


def test_a_pattern_that_is_given():
    u = np.linspace(-1.0, 1.0, 10)
    band = sparse.diags_array([1.0, 1.0, 1.0], offsets=[-1, 0, 1], shape=(10, 10))
    for pattern in (band, band.toarray(), np.ones((10, 10))):
        prepared = irad.sparse_jacobian(upwind, pattern=pattern).prepare(u)
        assert prepared.products == (10 if pattern is not band and pattern.all() else 3)
        np.testing.assert_array_equal(prepared(u).toarray(), irad.jacobian(upwind, chunk=1)(u))
    with pytest.raises(irad.SignatureError, match=r"has the shape \(10, 10\), the Jacobian has \(11, 11\)"):
        irad.sparse_jacobian(upwind, pattern=band).prepare(np.ones(11))


def test_where_another_branch_is_taken_a_missing_entry_is_an_error():
    u = np.linspace(1.0, 2.0, 8)
    derivative = irad.sparse_jacobian(upwind)
    forwards, backwards = derivative.prepare(u), derivative.prepare(-u)
    with pytest.raises(irad.SignatureError, match="lacks an entry in row 1"):
        forwards(-u)
    both = irad.sparse_jacobian(upwind, pattern=forwards.pattern + backwards.pattern).prepare(u)
    for each in (u, -u):
        np.testing.assert_array_equal(both(each).toarray(), irad.jacobian(upwind, chunk=1)(each))
    unchecked = irad.sparse_jacobian(upwind, check=False)
    assert unchecked.prepare(u)(-u).nnz == forwards.pattern.nnz


def test_fastmath_numbers_in_single_precision_and_a_float_as_the_value():
    @njit(fastmath=True)
    def norm(x):
        return (x[::2] ** 2).sum()

    x = np.arange(1.0, 8.0, dtype=np.float32)
    found = irad.sparse_jacobian(norm)(x)
    assert (found.dtype, found.shape, found.nnz) == (np.float32, (1, 7), 4)
    np.testing.assert_array_equal(found.toarray()[0], np.where(np.arange(7) % 2, 0.0, 2.0 * x))


def test_arguments_that_are_overwritten_are_left_as_by_a_plain_call():
    @njit
    def relaxed(u):
        for i in range(1, u.size):
            u[i] = 0.5 * u[i] ** 2 + 0.25 * u[i - 1] * (i % 2)

    u = np.linspace(1.0, 2.0, 9)
    plain = u.copy()
    relaxed(plain)
    derivative = irad.sparse_jacobian(relaxed, outputs=0)
    prepared, given = derivative.prepare(u), u.copy()
    np.testing.assert_array_equal(u, given)
    np.testing.assert_array_equal(prepared(given).toarray(), irad.jacobian(relaxed, chunk=1, outputs=0)(u.copy()))
    np.testing.assert_array_equal(given, plain)


def test_what_does_not_fit():
    @njit
    def several(x):
        return x, x

    u = np.ones(4)
    with pytest.raises(irad.SignatureError, match="not one matrix of floats"):
        irad.sparse_jacobian(several)(u)
    for structure in ({"u": u}, [1.0, 2.0], Held(u)):
        with pytest.raises(irad.SignatureError, match=r"argument 0 of tridiagonal is an? [DdlH].*, not an array"):
            irad.sparse_hessian(tridiagonal)(structure)
    with pytest.raises(irad.SignatureError, match="not a pattern"):
        irad.sparse_jacobian(tridiagonal, pattern="exact")
    prepared = irad.sparse_jacobian(tridiagonal).prepare(u)
    with pytest.raises(irad.SignatureError, match=r"(?s)has 4 columns, the argument 5 numbers.*prepare for"):
        prepared(np.ones(5))

    @njit
    def compiled(x):
        return irad.sparse_jacobian(tridiagonal)(x)

    with pytest.raises(irad.SignatureError, match=r"compiled code calls irad\.sparse_jacobian"):
        compiled(u)


def test_dense_and_sparse_jacobians_can_be_pickled():
    u = np.linspace(0.0, 1.0, 5)
    dense = pickle.loads(pickle.dumps(irad.jacobian(tridiagonal, chunk=2)))
    assert dense is irad.jacobian(tridiagonal, chunk=2)
    prepared = pickle.loads(pickle.dumps(irad.sparse_jacobian(tridiagonal).prepare(u)))
    np.testing.assert_array_equal(prepared(u).toarray(), dense(u))
