"""`irad.sparse_hessian` against dense Hessians and closed forms; star colourings against their definition."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from numba import float64, njit
from numba.experimental import jitclass
from scipy import sparse

import irad
from irad.api.sparse.colouring import by_symmetry, star_colours_of


@njit
def surface(u, weight):
    """A sum over the edges of a grid, with a term for each node."""
    n, total = u.shape[0], 0.0
    for i in range(n):
        for j in range(n):
            if i + 1 < n:
                total += 0.5 * (u[i + 1, j] - u[i, j]) ** 2
            if j + 1 < n:
                total += 0.5 * (u[i, j + 1] - u[i, j]) ** 2
            total += weight * np.exp(u[i, j])
    return total


@njit
def arrow(x):
    total = 3.0 * x.sum()
    for i in range(1, x.size):
        total += x[0] * x[i] ** 2
    return total


def laplacian(n):
    degrees = np.full(n, 2.0)
    degrees[[0, -1]] = 1.0
    line = sparse.diags_array([-np.ones(n - 1), degrees, -np.ones(n - 1)], offsets=[-1, 0, 1])
    return sparse.kron(line, sparse.eye_array(n)) + sparse.kron(sparse.eye_array(n), line)


def test_a_grid_takes_a_few_products_whatever_its_size():
    derivative = irad.sparse_hessian(surface)
    u = np.random.default_rng(5).normal(size=(6, 6))
    np.testing.assert_allclose(
        derivative(u, 2.0).toarray(), irad.hessian(surface)(u, 2.0).reshape(36, 36), rtol=1e-14, atol=1e-14
    )
    u = np.random.default_rng(5).normal(size=(300, 300))
    prepared = derivative.prepare(u, 2.0)
    assert (prepared.products, prepared.pattern.nnz) == (6, 5 * 300**2 - 4 * 300)
    for weight in (2.0, 3.0):  # the preparation is reused
        found = prepared(u, weight)
        assert found.format == "csc"
        assert abs(found - laplacian(300) - sparse.diags_array(weight * np.exp(u.ravel()))).max() < 1e-13
    again = pickle.loads(pickle.dumps(prepared))
    assert abs(again(u, 3.0) - found).max() == 0.0
    assert repr(prepared) == "<<irad.sparse_hessian of surface>, prepared: 6 products>"


def test_an_arrow_takes_two_products():
    x = np.random.default_rng(6).normal(size=5000)
    prepared = irad.sparse_hessian(arrow).prepare(x)
    assert prepared.products == 2
    found = prepared(x)
    np.testing.assert_allclose(found[[0], 1:].toarray()[0], 2.0 * x[1:], rtol=1e-14)
    np.testing.assert_allclose(found[1:, [0]].toarray()[:, 0], 2.0 * x[1:], rtol=1e-14)
    np.testing.assert_allclose(found.diagonal(), np.append(0.0, np.full(4999, 2.0 * x[0])), rtol=1e-14)
    small = x[:40].copy()
    by = [irad.sparse_hessian(arrow, pattern=each).prepare(small).pattern for each in ("dependence", "probe")]
    assert (by[0] != by[1]).nnz == 0
    assert by[0].nnz == 3 * 39


def test_star_colourings_of_random_matrices():
    rng = np.random.default_rng(7)
    for n, count in ((2, 1), (30, 40), (60, 300), (200, 250)):
        entries = sparse.coo_array((np.ones(count, bool), rng.integers(0, n, (2, count))), shape=(n, n)).tocsc()
        pattern = (entries + entries.T).tocsc()
        pattern.sum_duplicates()
        colours = star_colours_of(pattern)
        for i in range(n):
            for j in pattern.indices[pattern.indptr[i] : pattern.indptr[i + 1]]:
                assert i == j or colours[i] != colours[j]
        values = pattern.astype(float)
        values.data = rng.normal(size=values.nnz)
        values = (values + values.T).tocsc()
        where = by_symmetry(pattern)
        products = [values @ (colours == colour) for colour in range(where.count)]
        found = [products[p][at] for p, at in zip(where.product, where.place, strict=True)]
        np.testing.assert_allclose(found, values.data, rtol=1e-13)


def test_something_besides_a_method_names_and_a_given_pattern():
    @njit
    def energy(scale, x):
        return scale * (x[1:] * x[:-1]).sum() ** 2 + x[0] ** 3, x.size

    x = np.linspace(1.0, 2.0, 5, dtype=np.float32)
    found, aux = irad.sparse_hessian(energy, argnames="x", has_aux=True)(2.0, x)
    dense, same = irad.hessian(energy, 1, has_aux=True)(2.0, x)
    assert (aux, same, found.dtype) == (5, 5, np.float32)
    np.testing.assert_allclose(found.toarray(), dense, rtol=1e-5)

    @jitclass([("stiffness", float64)])
    class Chain:
        def __init__(self, stiffness):
            self.stiffness = stiffness

        def energy(self, x):
            return 0.5 * self.stiffness * ((x[1:] - x[:-1]) ** 2).sum()

    found = irad.sparse_hessian(Chain(2.0).energy)(np.zeros(4))
    expected = 2.0 * (np.diag([1.0, 2.0, 2.0, 1.0]) - np.eye(4, k=1) - np.eye(4, k=-1))
    np.testing.assert_array_equal(found.toarray(), expected)
    u = np.ones((2, 2))
    with pytest.raises(irad.SignatureError, match="is not symmetric"):
        irad.sparse_hessian(surface, pattern=np.triu(np.ones((4, 4))))(u, 1.0)
    with pytest.raises(irad.SignatureError, match="Hessian of surface lacks an entry in row 0"):
        irad.sparse_hessian(surface, pattern=np.eye(4))(u, 1.0)
