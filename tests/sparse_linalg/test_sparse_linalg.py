"""`irad.sparse_linalg`: against dense matrices and SciPy; gradients against differences and forward mode."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit
from scipy import sparse

import irad
from irad import sparse_linalg as lib

# needs pivoting; a stored zero at (2, 1)
MATRIX = np.array([[0.0, 2.0, 0.0, 1.0], [1.0, 0.5, 0.0, 0.0], [0.0, 7.0, 3.0, -1.0], [2.0, 0.0, 1.0, 4.0]])
VECTOR = np.array([1.0, -2.0, 0.5, 3.0])


def stored(matrix, form, zero=None):
    made = sparse.csr_matrix(matrix) if form == "csr" else sparse.csc_matrix(matrix)
    if zero is not None:
        found = sparse.coo_matrix(made)
        made.data[(found.row == zero[0]) & (found.col == zero[1])] = 0.0
    return made.data, made.indices, made.indptr


def dense(data, indices, indptr, form):
    shape = (4, 4)
    made = sparse.csr_matrix if form == "csr" else sparse.csc_matrix
    return made((data, indices, indptr), shape).toarray()


@njit
def csr_product(data, indices, indptr, x):
    return (lib.csr_matvec(data, indices, indptr, x) * VECTOR).sum()


@njit
def csc_product(data, indices, indptr, x):
    return (lib.csc_matvec(data, indices, indptr, x, 4) * VECTOR).sum()


@njit
def csr_products(data, indices, indptr, x):
    return (lib.csr_matmat(data, indices, indptr, x.reshape(-1, 1)).T * VECTOR).sum()


@njit
def csc_products(data, indices, indptr, x):
    return (lib.csc_matmat(data, indices, indptr, x.reshape(-1, 1), 4).T * VECTOR).sum()


@njit
def csr_solution(data, indices, indptr, x):
    return (lib.csr_solve(data, indices, indptr, x) * VECTOR).sum()


@njit
def csc_solution(data, indices, indptr, x):
    return (lib.csc_solve(data, indices, indptr, x) * VECTOR).sum()


def gradients_of_solution(matrix, x):
    multipliers = np.linalg.solve(matrix.T, VECTOR)
    return -np.outer(multipliers, np.linalg.solve(matrix, x)), multipliers


def gradients_of_product(matrix, x):
    return np.outer(VECTOR, x), matrix.T @ VECTOR


CASES = [
    (csr_product, "csr", gradients_of_product),
    (csc_product, "csc", gradients_of_product),
    (csr_products, "csr", gradients_of_product),
    (csc_products, "csc", gradients_of_product),
    (csr_solution, "csr", gradients_of_solution),
    (csc_solution, "csc", gradients_of_solution),
]


@pytest.mark.parametrize(("f", "form", "closed"), CASES)
def test_gradients_on_the_pattern(f, form, closed):
    data, indices, indptr = stored(MATRIX, form, zero=(2, 1))
    assert (data == 0.0).sum() == 1
    matrix, x = dense(data, indices, indptr, form), np.array([1.0, 2.0, -1.0, 0.5])
    by_matrix, by_x = closed(matrix, x)
    value, (by_data, found_by_x) = irad.value_and_grad(f, argnums=(0, 3))(data, indices, indptr, x)
    assert value == pytest.approx(by_x @ x, rel=1e-12)
    rows, columns = sparse.coo_matrix(dense(np.ones(data.size), indices, indptr, form)).coords
    pattern = np.zeros((4, 4))
    pattern[rows, columns] = by_matrix[rows, columns]
    np.testing.assert_allclose(dense(by_data, indices, indptr, form), pattern, rtol=1e-11)
    np.testing.assert_allclose(found_by_x, by_x, rtol=1e-11)
    tangents = np.cos(np.arange(data.size)), np.sin(np.arange(4.0))
    pushed = irad.jvp(f, (data, indices, indptr, x), (tangents[0], None, None, tangents[1]))[1]
    assert pushed == pytest.approx(tangents[0] @ by_data + tangents[1] @ by_x, rel=1e-11)


TRIANGULAR = np.array([[2.0, 0.0, 0.0, 0.0], [1.0, 4.0, 0.0, 0.0], [0.0, -1.0, 0.5, 0.0], [3.0, 0.0, 1.0, 1.5]])


@njit
def csr_triangular(data, indices, indptr, x, lower):
    return (lib.csr_solve_triangular(data, indices, indptr, x, lower) * VECTOR).sum()


@njit
def csc_triangular(data, indices, indptr, x, lower):
    return (lib.csc_solve_triangular(data, indices, indptr, x, lower) * VECTOR).sum()


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize(("f", "form"), [(csr_triangular, "csr"), (csc_triangular, "csc")])
def test_triangular(f, form, lower):
    data, indices, indptr = stored(TRIANGULAR if lower else TRIANGULAR.T, form)
    matrix, x = dense(data, indices, indptr, form), np.array([1.0, 2.0, -1.0, 0.5])
    by_matrix, by_x = gradients_of_solution(matrix, x)
    value, (by_data, found_by_x) = irad.value_and_grad(f, argnums=(0, 3))(data, indices, indptr, x, lower)
    assert value == pytest.approx(by_x @ x, rel=1e-12)
    np.testing.assert_allclose(dense(by_data, indices, indptr, form), by_matrix * (matrix != 0.0), rtol=1e-11)
    np.testing.assert_allclose(found_by_x, by_x, rtol=1e-11)
    tangents = np.cos(np.arange(data.size)), np.sin(np.arange(4.0))
    pushed = irad.jvp(f, (data, indices, indptr, x, lower), (tangents[0], None, None, tangents[1], None))[1]
    assert pushed == pytest.approx(tangents[0] @ by_data + tangents[1] @ by_x, rel=1e-11)
    with pytest.raises(ValueError, match="not triangular"):
        f(data, indices, indptr, x, not lower)
    with pytest.raises(ValueError, match="diagonal"):
        f(*stored(np.diag([1.0, 0.0, 1.0, 1.0]), form), x, lower)


@pytest.mark.parametrize("form", ["csr", "csc"])
def test_random_systems(form):
    solve = lib.csr_solve if form == "csr" else lib.csc_solve
    rng = np.random.default_rng(3)
    for n in (1, 2, 7, 30):
        matrix = rng.normal(size=(n, n)) * (rng.random((n, n)) < 0.3) + np.diag(rng.normal(size=n))
        right = rng.normal(size=n)
        np.testing.assert_allclose(matrix @ solve(*stored(matrix, form), right), right, atol=1e-9)


def test_a_singular_matrix():
    with pytest.raises(ValueError, match="singular"):
        lib.csr_solve(*stored(np.diag([1.0, 1.0, 0.0, 1.0]), "csr"), VECTOR)


def test_second_order_of_a_solution():
    """d²/da² of b/a is 2 b/a³, also where an entry of the factors happens to be zero."""

    @njit
    def f(a):
        data = np.array([a, a - 2.0, 1.0])
        return lib.csr_solve(data, np.array([0, 0, 1]), np.array([0, 1, 3]), np.array([1.0, 1.0]))[1]

    # x0 = 1/a, x1 = 1 - (a - 2)/a = 2/a
    assert irad.grad(f)(2.0) == pytest.approx(-0.5)
    assert irad.grad(irad.grad(f))(2.0) == pytest.approx(0.5)
