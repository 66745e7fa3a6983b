"""Factorisations: orders and fill, several right-hand sides, many systems with the same factors."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit
from scipy import sparse
from scipy.sparse.linalg import splu

import irad
from irad import sparse_linalg as lib
from irad.sparse_linalg.ordering import column_order

# needs pivoting, with a stored zero
MATRIX = np.array([[0.0, 2.0, 0.0, 1.0], [1.0, 0.5, 0.0, 0.0], [0.0, 7.0, 3.0, -1.0], [2.0, 0.0, 1.0, 4.0]])
SIDES = np.array([[1.0, 2.0, -1.0], [0.5, 0.0, 2.0], [-1.0, 1.0, 1.0], [3.0, -2.0, 0.3]])
WEIGHTS = np.array([[1.0, -1.0, 2.0], [0.5, 1.0, -2.0], [2.0, 0.1, 1.0], [-1.0, 3.0, 0.7]])


def laplacian(m):
    """Minus the Laplace operator on m × m points."""
    line = sparse.diags_array([2.0, -1.0, -1.0], offsets=[0, 1, -1], shape=(m, m))
    return (sparse.kron(line, sparse.eye(m)) + sparse.kron(sparse.eye(m), line)).tocsr()


def parts(matrix):
    return matrix.data, matrix.indices, matrix.indptr


def fill_of(matrix):
    return int(lib.csr_lu_factor(*parts(matrix)).starts[-1])


@njit
def order_of(data, indices, indptr):
    return column_order(data, indices.astype(np.int64), indptr.astype(np.int64))


def hard_cases():
    rng = np.random.default_rng(2)
    yield sparse.csr_matrix(MATRIX)
    yield laplacian(7)
    yield (laplacian(6) - 3.7 * sparse.eye(36)).tocsr()  # not dominant
    arrow = sparse.lil_matrix(np.diag(np.arange(1.0, 41.0)))
    arrow[0, :], arrow[:, 0] = 0.1, 0.1
    yield arrow.tocsr()
    yield sparse.csr_matrix(np.eye(30)[rng.permutation(30)])
    for n, density in ((1, 1.0), (5, 0.5), (30, 0.1), (60, 0.05), (60, 0.6)):
        yield sparse.csr_matrix(
            rng.normal(size=(n, n)) * (rng.random((n, n)) < density) + np.eye(n)[rng.permutation(n)]
        )
    yield sparse.csr_matrix(rng.normal(size=(40, 40)) * np.geomspace(1.0, 1e-12, 40))


def test_solutions_of_all_kinds_of_matrices():
    for matrix in hard_cases():
        n, right = matrix.shape[0], np.cos(np.arange(matrix.shape[0]))
        assert sorted(order_of(*parts(matrix))) == list(range(n))
        scale = np.abs(matrix.toarray()).sum(axis=1).max()
        for x, solved in (
            (lib.csr_solve(*parts(matrix), right), matrix),
            (lib.csc_solve(*parts(matrix), right), matrix.T),
        ):
            assert np.abs(solved @ x - right).max() <= 1e-11 * (scale * np.abs(x).max() + 1.0)
    twice = np.array([1.0, 1.0, 5.0]), np.array([0, 0, 1], np.int32), np.array([0, 2, 3], np.int32)
    np.testing.assert_allclose(lib.csr_solve(*twice, np.array([4.0, 10.0])), [2.0, 2.0])
    assert lib.csr_solve(np.zeros(0), np.zeros(0, np.int64), np.zeros(1, np.int64), np.zeros(0)).size == 0
    for singular in (np.ones((3, 3)), np.diag([1.0, 0.0, 2.0]), np.zeros((2, 2))):
        with pytest.raises(ValueError, match="singular"):
            lib.csc_solve(*parts(sparse.csc_matrix(singular)), np.ones(singular.shape[0]))


def test_factors_stay_sparse():
    """Against SciPy with the orders of SuperLU, whose counts include the diagonal twice."""
    matrix = laplacian(20)
    best = splu(matrix.tocsc(), permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True}, diag_pivot_thresh=0.0)
    assert fill_of(matrix) <= 1.2 * (best.L.nnz + best.U.nnz)
    lost = (matrix - 1.3 * sparse.eye(400)).tocsr()  # some pivots leave the diagonal
    colamd = splu(lost.tocsc(), permc_spec="COLAMD")
    assert fill_of(lost) <= 1.3 * (colamd.L.nnz + colamd.U.nnz)
    arrow = sparse.lil_matrix(np.diag(np.full(400, 500.0)))
    arrow[0, :], arrow[:, 0] = 1.0, 1.0
    arrow[0, 0] = 500.0
    assert fill_of(arrow.tocsr()) <= 1600  # without an order 160000
    full_row = sparse.lil_matrix(np.diag(np.full(400, 0.5)))
    full_row[0, :] = 1.0
    full_row[:, 0] = 1.0
    assert fill_of(full_row.tocsr()) <= 2500


@njit
def pooled(data, indices, indptr, b, form):
    """Sums of solutions with several right-hand sides, by the four functions that take them."""
    if form == 0:
        return (lib.csr_solve(data, indices, indptr, b) * WEIGHTS).sum()
    if form == 1:
        return (lib.csc_solve(data, indices, indptr, b) * WEIGHTS).sum()
    if form == 2:
        return (lib.csr_solve_triangular(data, indices, indptr, b) * WEIGHTS).sum()
    return (lib.csc_solve_triangular(data, indices, indptr, b, False) * WEIGHTS).sum()


@njit
def reused(data, indices, indptr, b, form):
    """The same factors for a system, for the transposed one, and for the solution of the first."""
    factors = lib.csc_lu_factor(data, indices, indptr) if form else lib.csr_lu_factor(data, indices, indptr)
    x = lib.lu_solve(factors, b)
    y = lib.lu_solve(factors, x)
    z = lib.lu_solve(factors, b[:, 0].copy(), True)
    return (y * WEIGHTS).sum() + (z * WEIGHTS[:, 0]).sum()


def closed_pooled(matrix, b, form):
    return (np.linalg.solve(matrix, b) * WEIGHTS).sum()


def closed_reused(matrix, b, form):
    y = np.linalg.solve(matrix, np.linalg.solve(matrix, b))
    return (y * WEIGHTS).sum() + (np.linalg.solve(matrix.T, b[:, 0]) * WEIGHTS[:, 0]).sum()


def complex_step(f, pattern, matrix, b):
    """Slopes with respect to the entries, in the order of a matrix in CSR, and with respect to b."""
    h = 1e-30
    of_data = []
    for i, j in zip(*np.nonzero(pattern), strict=True):
        moved = matrix.astype(complex)
        moved[i, j] += 1j * h
        of_data.append(f(moved, b, 0).imag / h)
    of_b = np.zeros(b.shape)
    for place in np.ndindex(b.shape):
        moved = b.astype(complex)
        moved[place] += 1j * h
        of_b[place] = f(matrix, moved, 0).imag / h
    return np.array(of_data), of_b


LOWER = np.tril(np.array([[2.0, 0, 0, 0], [1.0, 4.0, 0, 0], [0, -1.0, 0.5, 0], [3.0, 0, 1.0, 1.5]]))


@pytest.mark.slow
@pytest.mark.parametrize(("f", "closed", "forms"), [(pooled, closed_pooled, 4), (reused, closed_reused, 2)])
def test_first_order(f, closed, forms):
    gradient = irad.value_and_grad(f, argnums=(0, 3))
    for form in range(forms):
        matrix = MATRIX if form < 2 else LOWER
        stored = sparse.csr_matrix(matrix)
        # The rows of a matrix are the columns of its transpose.
        solved = (matrix, matrix.T)[form % 2]
        slopes, of_b = complex_step(closed, stored.toarray().T if form % 2 else stored.toarray(), solved, SIDES)
        if form % 2:
            order = np.zeros(matrix.shape)
            order[np.nonzero(stored.toarray().T)] = slopes
            slopes = order.T[np.nonzero(stored.toarray())]
        value, (found, found_b) = gradient(*parts(stored), SIDES, form)
        assert value == pytest.approx(closed(solved, SIDES, form), rel=1e-11)
        np.testing.assert_allclose(found, slopes, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(found_b, of_b, rtol=1e-10, atol=1e-12)
        tangents = np.cos(np.arange(found.size)), np.sin(np.arange(12.0)).reshape(4, 3)
        given = (*parts(stored), SIDES, form)
        pushed = irad.jvp(f, given, (tangents[0], None, None, tangents[1], None))[1]
        assert pushed == pytest.approx(tangents[0] @ slopes + (tangents[1] * of_b).sum(), rel=1e-10)


@pytest.mark.slow
def test_second_order():
    """By differences of gradients."""
    stored = sparse.csr_matrix(MATRIX)
    gradient = irad.grad(reused)
    direction, h = np.cos(np.arange(stored.nnz)), 1e-6
    along = [gradient(stored.data + sign * h * direction, stored.indices, stored.indptr, SIDES, 1) for sign in (1, -1)]
    expected = (along[0] - along[1]) / (2.0 * h)
    given = (*parts(stored), SIDES, 1)
    tangent = irad.jvp(gradient, given, (direction, None, None, None, None))[1]
    np.testing.assert_allclose(tangent, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.slow
def test_complex_matrices():
    """Of a real loss, against its closed form."""

    @njit
    def loss(data, indices, indptr, b):
        x = lib.csr_solve(data, indices, indptr, b)
        return (x.real * VECTOR).sum() + (x.imag**2).sum()

    stored = sparse.csr_matrix(MATRIX * (1.0 + 0.3j) + 0.5j * np.eye(4))
    b = np.array([1.0, 2.0j, -1.0, 0.5 + 1.0j])
    found, found_b = irad.grad(loss, argnums=(0, 3))(*parts(stored), b)
    x = np.linalg.solve(stored.toarray(), b)
    multipliers = np.linalg.solve(stored.toarray().conj().T, VECTOR + 2.0j * x.imag)
    np.testing.assert_allclose(found_b, multipliers, rtol=1e-11)
    rows, columns = np.nonzero(stored.toarray())
    np.testing.assert_allclose(found, -(multipliers[rows] * x.conj()[columns]), rtol=1e-11)


VECTOR = np.array([1.0, -2.0, 0.5, 3.0])


def test_factors_from_python():
    matrix = laplacian(5)
    factors = lib.csr_lu_factor(*parts(matrix))
    right = np.cos(np.arange(50.0)).reshape(25, 2)
    np.testing.assert_allclose(matrix @ lib.lu_solve(factors, right), right, atol=1e-12)
    assert lib.lu_solve(factors, right[:, :0].copy()).shape == (25, 0)
    assert lib.lu_solve(factors, np.ones(25, np.float32)).dtype == np.float64
    np.testing.assert_allclose(matrix @ lib.lu_solve(factors, 1j * right), 1j * right, atol=1e-12)
    gradient = irad.grad(njit(lambda b, factors: lib.lu_solve(factors, b).sum()))
    np.testing.assert_allclose(matrix.T @ gradient(np.ones(25), factors), np.ones(25), atol=1e-12)
    with pytest.raises(ValueError, match="a right-hand side of 3 for a sparse matrix with 25"):
        lib.lu_solve(factors, np.ones(3))
    with pytest.raises(irad.SignatureError, match="lu_solve: an array with 3 axes"):
        lib.lu_solve(factors, np.ones((25, 1, 1)))
    with pytest.raises(ValueError, match=r"csc_lu_factor|indices from 0 to 24"):
        lib.csc_lu_factor(matrix.data, matrix.indices, matrix.indptr[:-1])


def test_entries_that_are_made_in_the_function():
    """Factors have no derivative, so irad must see in another way that the solution depends on the entries."""

    @njit
    def f(a):
        factors = lib.csr_lu_factor(np.array([1.0, a]), np.array([0, 1]), np.array([0, 1, 2]))
        return lib.lu_solve(factors, np.array([1.0, 3.0]))[1]

    assert irad.grad(f)(2.0) == pytest.approx(-0.75)
