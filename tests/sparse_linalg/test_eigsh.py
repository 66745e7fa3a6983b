"""`eigsh` against dense eigenvalues, irad's rule for these, perturbation theory and differences."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit
from scipy import sparse
from scipy.sparse.linalg import eigsh as eigsh_of_scipy

import irad
from irad import sparse_linalg as lib


def laplacian(rows, columns):
    """Minus the Laplace operator on a rectangle: eigenvalues are repeated if it is a square."""

    def line(m):
        return sparse.diags_array([2.0, -1.0, -1.0], offsets=[0, 1, -1], shape=(m, m))

    return (sparse.kron(line(rows), sparse.eye(columns)) + sparse.kron(sparse.eye(rows), line(columns))).tocsr()


def parts(matrix):
    return matrix.data, matrix.indices, matrix.indptr


def wanted(matrix, k, which, sigma):
    every = np.linalg.eigvalsh(matrix.toarray())
    size = every if sigma is None else 1.0 / (every - sigma)
    order = np.argsort({"LM": -np.abs(size), "SM": np.abs(size), "LA": -size, "SA": size, "BE": -size}[which])
    if which == "BE":
        return np.sort(np.concatenate([every[order[: k - k // 2]], every[order[every.size - k // 2 :]]]))
    return np.sort(every[order[:k]])


ENDS = [(4, "LA", None), (3, "SA", None), (5, "LM", None), (5, "BE", None), (4, "BE", None)]
INSIDE = [(4, "LM", 0.7), (1, "LM", -0.1), (3, "LA", 0.6), (2, "SA", 1.35)]


@pytest.mark.parametrize("cases", [ENDS, pytest.param(INSIDE, marks=pytest.mark.slow)])
def test_values_and_vectors(cases):
    rng = np.random.default_rng(4)
    scattered = sparse.csr_matrix(rng.normal(size=(70, 70)) * (rng.random((70, 70)) < 0.1))
    matrices = laplacian(9, 7), (scattered + scattered.T).tocsr(), laplacian(8, 8), sparse.eye(40).tocsr()
    for matrix in matrices:
        for k, which, sigma in cases:
            if sigma is not None and which != "LM" and matrix.nnz == 40:
                continue  # all are on one side
            w, v = lib.eigsh(*parts(matrix), k, sigma, which)
            np.testing.assert_allclose(w, wanted(matrix, k, which, sigma), atol=1e-9)
            np.testing.assert_allclose(matrix @ v, v * w, atol=1e-8)
            np.testing.assert_allclose(v.T @ v, np.eye(k), atol=1e-9)
            largest = np.abs(v).max(axis=0)
            first = np.argmax(np.abs(v) > (1.0 - 1e-5) * largest, axis=0)
            assert (v[first, np.arange(k)] > 0.0).all()
            if matrix.shape[0] == 63:  # no repeated eigenvalues, of which SciPy may miss some
                of_scipy = eigsh_of_scipy(matrix, k, sigma=sigma, which=which, return_eigenvectors=False)
                np.testing.assert_allclose(w, np.sort(of_scipy), atol=1e-9)


def test_where_the_search_begins():
    matrix = laplacian(9, 7)
    for which in ("SM", "SA"):
        for start in (np.ones(63), np.arange(63), np.eye(63)[3].astype(np.float32)):
            w, v = lib.eigsh(*parts(matrix), 3, which=which, v0=start)
            np.testing.assert_allclose(w, wanted(matrix, 3, "SA", None), atol=1e-9)
            np.testing.assert_allclose(matrix @ v, v * w, atol=1e-8)
    rough = lib.eigsh(*parts(matrix), 3, tol=1e-3)[0]
    np.testing.assert_allclose(rough, wanted(matrix, 3, "LM", None), rtol=1e-3)


def test_small_matrices_and_types():
    for n in (1, 2, 5):
        dense = np.diag(np.arange(1.0, n + 1.0))
        w, v = lib.eigsh(*parts(sparse.csr_matrix(dense)), n)
        np.testing.assert_allclose(w, np.arange(1.0, n + 1.0))
        np.testing.assert_allclose(np.abs(v), np.eye(n), atol=1e-12)
    zero = np.zeros(2), np.arange(2), np.arange(3)
    assert lib.eigsh(*zero, 2)[0].tolist() == [0.0, 0.0]
    assert lib.eigsh(np.zeros(0), np.zeros(0, np.int64), np.zeros(3, np.int64), 1)[0].tolist() == [0.0]
    twice = np.array([1.0, 1.0, 5.0]), np.array([0, 0, 1]), np.array([0, 2, 3])
    np.testing.assert_allclose(lib.eigsh(*twice, 2)[0], [2.0, 5.0])
    single = laplacian(4, 3).astype(np.float32)
    w, v = lib.eigsh(*parts(single), 2)
    assert w.dtype == v.dtype == np.float32
    np.testing.assert_allclose(w, wanted(single, 2, "LM", None), rtol=1e-5)
    assert lib.eigsh(*parts(laplacian(4, 3).astype(np.int64)), 2)[0].dtype == np.float64


WEIGHTS = np.cos(np.arange(60.0)).reshape(20, 3)
VALUE_WEIGHTS = np.array([1.0, -0.5, 2.0])


@njit
def mixed(data, indices, indptr):
    w, v = lib.eigsh(data, indices, indptr, 3, which="SA", v0=np.ones(indptr.size - 1), maxiter=500, tol=1e-12)
    return (w * VALUE_WEIGHTS).sum() + (v * WEIGHTS).sum() + (v**2 * WEIGHTS).sum()


@njit
def spectral(data, indices, indptr):
    w = lib.eigsh(data, indices, indptr, 3, sigma=0.01, return_eigenvectors=False)
    return (w * VALUE_WEIGHTS).sum()


@njit
def of_squares(w, v):
    """Does not depend on the signs of the vectors."""
    return (w * VALUE_WEIGHTS).sum() + (v**2 * WEIGHTS).sum() + (v[0] * v[1] * w).sum()


@njit
def sparse_squares(data, indices, indptr):
    w, v = lib.eigsh(data, indices, indptr, 3, which="SA")
    return of_squares(w, v)


@njit
def dense_squares(matrix):
    w, v = np.linalg.eigh(matrix)
    return of_squares(w[:3], v[:, :3])


MATRIX = laplacian(5, 4) + sparse.diags_array(0.1 * np.sin(np.arange(20.0)))
MATRIX = MATRIX.tocsr()


def direction():
    change = MATRIX.copy()
    change.data = np.cos(np.arange(change.nnz) ** 2.0)
    return ((change + change.T) / 2.0).tocsr()


def by_perturbation():
    """First and second derivative of each eigenvalue along the direction."""
    w, v = np.linalg.eigh(MATRIX.toarray())
    coupling = v.T @ direction().toarray() @ v
    gaps = w[:, None] - w[None, :] + np.diag(np.full(w.size, np.inf))
    return np.diag(coupling)[:3], (2.0 * coupling**2 / gaps).sum(axis=1)[:3]


def test_first_order_of_values():
    change, given = direction().data, parts(MATRIX)
    first, _ = by_perturbation()
    gradient = irad.grad(spectral)(*given)
    assert gradient @ change == pytest.approx(VALUE_WEIGHTS @ first, rel=1e-8)
    as_matrix = sparse.csr_matrix((gradient, *given[1:]))
    assert abs(as_matrix - as_matrix.T).max() < 1e-10
    tangent = np.sin(np.arange(change.size) ** 2.0)  # not symmetric
    for along in (change, tangent):
        assert irad.jvp(spectral, given, (along, None, None))[1] == pytest.approx(gradient @ along, rel=1e-9)


def test_first_order_of_vectors():
    change, given = direction().data, parts(MATRIX)
    gradient, h = irad.grad(mixed)(*given), 1e-5
    slope = (mixed(given[0] + h * change, *given[1:]) - mixed(given[0] - h * change, *given[1:])) / (2.0 * h)
    assert gradient @ change == pytest.approx(slope, rel=1e-7)
    tangent = np.sin(np.arange(change.size) ** 2.0)
    for along in (change, tangent):
        assert irad.jvp(mixed, given, (along, None, None))[1] == pytest.approx(gradient @ along, rel=1e-9)
    single = irad.grad(mixed)(given[0].astype(np.float32), *given[1:])
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, gradient, rtol=1e-4, atol=1e-4)


@pytest.mark.slow
def test_as_of_dense_matrices():
    """Where `eigh` has the slopes of a symmetric pair in one of its entries, both have half of them here."""
    lower = irad.grad(dense_squares)(MATRIX.toarray())
    rows, columns = MATRIX.tocoo().coords
    expected = (0.5 * (lower + lower.T))[rows, columns]
    np.testing.assert_allclose(irad.grad(sparse_squares)(*parts(MATRIX)), expected, rtol=1e-8, atol=1e-9)


def check_second_order(f, steps):
    """Both ways to a Hessian's product, against each other, differences of gradients, and the symmetry of Hessians."""
    gradient, given = irad.grad(f), parts(MATRIX)

    @njit
    def slope_of(data, indices, indptr, along):
        return (gradient(data, indices, indptr) * along).sum()

    change, other = direction().data, np.sin(np.arange(MATRIX.nnz) ** 2.0)
    products = [irad.jvp(gradient, given, (along, None, None))[1] for along in (change, other)]
    ahead, behind = (gradient(given[0] + h * change, *given[1:]) for h in (steps, -steps))
    np.testing.assert_allclose(products[0], (ahead - behind) / (2.0 * steps), rtol=1e-5, atol=1e-5)
    assert products[0] @ other == pytest.approx(products[1] @ change, rel=1e-9)
    backward = irad.grad(slope_of)
    for along, product in zip((change, other), products, strict=True):
        np.testing.assert_allclose(backward(*given, along), product, rtol=1e-8, atol=1e-8)
    return products[0] @ change


@pytest.mark.slow
def test_second_order_of_values():
    _, second = by_perturbation()
    assert check_second_order(spectral, 1e-5) == pytest.approx(VALUE_WEIGHTS @ second, rel=1e-7)


@pytest.mark.slow
def test_second_order_of_vectors():
    check_second_order(mixed, 1e-5)


@pytest.mark.slow
def test_a_zero_cotangent_has_a_derivative():
    """Of half the square of a component that is zero, the second derivative is the square of its slope."""

    @njit
    def half_square(data, indices, indptr, level):
        _, v = lib.eigsh(data, indices, indptr, 1, which="SA")
        return 0.5 * (v[0, 0] - level) ** 2

    given = (*parts(MATRIX), lib.eigsh(*parts(MATRIX), 1, which="SA")[1][0, 0])
    change, h, gradient = direction().data, 1e-5, irad.grad(half_square)
    ahead, behind = (lib.eigsh(given[0] + s * change, *given[1:3], 1, which="SA")[1][0, 0] for s in (h, -h))
    np.testing.assert_allclose(gradient(*given), 0.0, atol=1e-10)
    second = irad.jvp(gradient, given, (change, None, None, None))[1]
    assert second @ change == pytest.approx(((ahead - behind) / (2.0 * h)) ** 2, rel=1e-6)


@njit
def of_a_square(data, indices, indptr, which):
    """The second eigenvalue of a square is repeated."""
    w, v = lib.eigsh(data, indices, indptr, 3, which="SA")
    if which == 0:
        return w[1] + w[2] + w[1] * w[2]
    return v[0, 0] if which == 1 else v[0, which - 1]


def test_repeated_eigenvalues():
    """Symmetric functions of equal ones have a derivative; their eigenvectors have none, nor any that is cut off."""
    square = laplacian(4, 4)
    change = square.copy()
    change.data = np.cos(np.arange(change.nnz) ** 2.0)
    change = ((change + change.T) / 2.0).tocsr()
    w, v = np.linalg.eigh(square.toarray())
    expected = (1.0 + w[1]) * np.trace(v[:, 1:3].T @ change.toarray() @ v[:, 1:3])
    gradient = irad.grad(of_a_square)
    assert gradient(*parts(square), 0) @ change.data == pytest.approx(expected, rel=1e-8)
    of_first = gradient(*parts(square), 1)
    assert np.isfinite(of_first).all()
    pushed = irad.jvp(of_a_square, (*parts(square), 1), (change.data, None, None, None))[1]
    assert pushed == pytest.approx(of_first @ change.data, rel=1e-9)
    for which in (2, 3):
        assert not np.isfinite(gradient(*parts(square), which)).any()
        assert not np.isfinite(irad.jvp(of_a_square, (*parts(square), which), (change.data, None, None, None))[1])
    among_large = sparse.block_diag([1e-6 * square, np.diag([5.0, 6.0])]).tocsr()
    assert not np.isfinite(gradient(*parts(among_large), 2)).any()
    line = sparse.diags_array([1.0, 2.0, 2.0, 3.0, 5.0]).tocsr()  # the third one is equal to the second
    cut = irad.grad(njit(lambda data, indices, indptr: lib.eigsh(data, indices, indptr, 2, which="SA")[1][1, 1]))
    assert not np.isfinite(cut(*parts(line))).any()
    opposite = sparse.diags_array([3.0, 1.0, -3.0]).tocsr()
    last = irad.grad(njit(lambda data, indices, indptr: lib.eigsh(data, indices, indptr, 1)[1][0, 0]))
    assert not np.isfinite(last(*parts(opposite))).any()


@pytest.mark.slow
def test_second_derivatives_of_repeated_eigenvalues():
    square = laplacian(4, 4)
    tangent = np.cos(np.arange(square.nnz) ** 2.0)
    second = irad.jvp(irad.grad(of_a_square), (*parts(square), 0), (tangent, None, None, None))[1]
    assert not np.isfinite(second).any()


def test_errors():
    given = parts(laplacian(4, 3))
    for k in (0, 13):
        with pytest.raises(ValueError, match=f"{k} eigenvalues of a matrix with 12 rows"):
            lib.eigsh(*given, k)
    with pytest.raises(ValueError, match="not symmetric"):
        lib.eigsh(np.arange(given[0].size) * 1.0, *given[1:], 2)
    lower = sparse.tril(laplacian(4, 3)).tocsr()
    with pytest.raises(ValueError, match="not symmetric"):
        lib.eigsh(*parts(lower), 2)
    for wrong in (np.nan, np.inf):
        with pytest.raises(ValueError, match="not symmetric, or entries that are not finite"):
            lib.eigsh(given[0] * wrong, *given[1:], 2)
    with pytest.raises(ValueError, match="did not converge"):
        lib.eigsh(*parts(laplacian(20, 21)), 2, which="SA", maxiter=2)
    with pytest.raises(ValueError, match="v0 has 3 elements for a matrix with 12 rows"):
        lib.eigsh(*given, 2, v0=np.ones(3))
    for start in (np.zeros(12), np.full(12, np.nan)):
        with pytest.raises(ValueError, match="v0 that is zero, or not finite"):
            lib.eigsh(*given, 2, v0=start)
    with pytest.raises(ValueError, match="eigsh: indices from"):
        lib.eigsh(given[0], given[1] + 1, given[2], 2)
    with pytest.raises(irad.SignatureError, match=r"which='XX'[^$]*test_eigsh"):
        lib.eigsh(*given, 2, which="XX")
    with pytest.raises(irad.SignatureError, match="eigsh: an array of complex128"):
        lib.eigsh(given[0] * 1j, *given[1:], 2)
    with pytest.raises(irad.SignatureError, match="eigsh: float64 where an int is needed"):
        lib.eigsh(*given, 2.0)
    with pytest.raises(irad.SignatureError, match="eigsh: complex128 where a number"):
        lib.eigsh(*given, 2, sigma=1j)


@pytest.mark.slow
def test_errors_near_a_number():
    with pytest.raises(ValueError, match="singular"):
        lib.eigsh(np.arange(3.0), np.arange(3), np.arange(4), 1, sigma=1.0)
