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


# --- types, sizes and indices -----------------------------------------------------------------------------------------

LOWER = np.array(
    [[2, 0, 0], [1, 4, 0], [0, 3, 5]]
)  # stored by rows; the same arrays, read as columns, are its transpose
INDICES, INDPTR = np.array([0, 0, 1, 1, 2]), np.array([0, 1, 3, 5])
RIGHT = np.array([1, 0, 3])


@njit
def all_of(data, indices, indptr, x):
    wide = np.ascontiguousarray(x).reshape(-1, 1)
    return (
        lib.csr_matvec(data, indices, indptr, x),
        lib.csc_matvec(data, indices, indptr, x, 3),
        lib.csr_matmat(data, indices, indptr, wide)[:, 0],
        lib.csc_matmat(data, indices, indptr, wide, 3)[:, 0],
        lib.csr_solve(data, indices, indptr, x),
        lib.csc_solve(data, indices, indptr, x),
        lib.csr_solve_triangular(data, indices, indptr, x),
        lib.csc_solve_triangular(data, indices, indptr, x, False),
    )


@njit
def sum_of_all(data, indices, indptr, x):
    products = lib.csr_matvec(data, indices, indptr, x) * lib.csc_matvec(data, indices, indptr, x, 3)
    solutions = lib.csr_solve(data, indices, indptr, x) * lib.csc_solve_triangular(data, indices, indptr, x, False)
    return (products + solutions).sum()


def slow(*pair):
    return pytest.param(*pair, marks=pytest.mark.slow)


@pytest.mark.parametrize(
    ("of_data", "of_x"),
    [
        (np.int64, np.float64),
        (np.float32, np.float64),
        slow(np.int32, np.int32),
        slow(np.bool_, np.bool_),
        slow(np.bool_, np.float32),
        slow(np.uint8, np.complex64),
        slow(np.int8, np.float32),
        slow(np.float64, np.int64),
        slow(np.float64, np.complex128),
        slow(np.complex64, np.float64),
    ],
)
def test_types_are_those_of_numpy(of_data, of_x):
    matrix, x = LOWER.astype(of_data), RIGHT.astype(of_x)
    data, transposed = matrix[matrix != 0], matrix.T
    products = [matrix @ x, transposed @ x] * 2
    solutions = [np.linalg.solve(matrix.astype(of_data), x.astype(of_x)), np.linalg.solve(transposed, x)] * 2
    tolerance = 1e-5 if solutions[0].dtype.char in "fF" else 1e-13
    for found, wanted in zip(all_of(data, INDICES, INDPTR, x), products + solutions, strict=True):
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)
    for strided in (np.repeat(data, 2)[::2], np.repeat(data, 2)[::2].copy()):
        strided.flags.writeable = False
        np.testing.assert_array_equal(lib.csr_matvec(strided, INDICES, INDPTR, x), products[0])


@pytest.mark.parametrize(("f", "form", "closed"), [CASES[0], slow(*CASES[4])])
def test_gradients_for_a_matrix_of_integers(f, form, closed):
    data, indices, indptr = stored(np.array([[1, -1, 0, 0], [-1, 2, -1, 0], [0, -1, 3, -1], [0, 0, -1, 2]]), form)
    assert data.dtype == np.int64
    x = np.array([0.3, 0.9, 0.2, 0.1])
    _, by_x = closed(dense(data, indices, indptr, form), x)
    np.testing.assert_allclose(irad.grad(f, argnums=3)(data, indices, indptr, x), by_x, rtol=1e-12)
    tangent = np.cos(np.arange(4.0))
    pushed = irad.jvp(f, (data, indices, indptr, x), (None, None, None, tangent))[1]
    assert pushed == pytest.approx(tangent @ by_x, rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(("of_data", "of_x"), [(np.int64, np.float64), (np.float32, np.float64)])
def test_gradients_have_the_types_of_their_arguments(of_data, of_x):
    data, x = LOWER[LOWER != 0].astype(of_data), RIGHT.astype(of_x)
    active = [i for i, type_ in ((0, of_data), (3, of_x)) if np.issubdtype(type_, np.floating)]
    wanted = irad.grad(sum_of_all, argnums=(0, 3))(data.astype(float), INDICES, INDPTR, x.astype(float))
    found = irad.grad(sum_of_all, argnums=tuple(active))(data, INDICES, INDPTR, x)
    tangents = [None] * 4
    slope = 0.0
    for i, gradient in zip(active, found, strict=True):
        assert gradient.dtype == (of_data, None, None, of_x)[i]
        np.testing.assert_allclose(gradient, wanted[i // 3], rtol=1e-6)
        tangents[i] = np.cos(np.arange(gradient.size)).astype(gradient.dtype)
        slope += tangents[i] @ gradient
    pushed = irad.jvp(sum_of_all, (data, INDICES, INDPTR, x), tuple(tangents))[1]
    np.testing.assert_allclose(pushed, slope, rtol=1e-6)


DATA, INDICES_32 = np.array([2.0, -1.0, -1.0, 2.0]), np.array([0, 1, 0, 1], np.int32)
STARTS = np.array([0, 2, 4], np.int32)
WRONG = {  # of a matrix 2 × 2 and a vector; what the message says
    "short vector": (DATA, INDICES_32, STARTS, 1, r"(a vector of|rows:|side of) 1 for .* 2|from 0 to 1 .* size of 1"),
    "index too large": (DATA, INDICES_32 * 2, STARTS, 2, "indices from 0 to 2 do not fit a size of 2"),
    "negative index": (DATA, INDICES_32 - 1, STARTS, 2, "indices from -1 to 0 do not fit a size of 2"),
    "fewer entries": (DATA[:3], INDICES_32, STARTS, 2, "3 entries and 4 indices"),
    "beyond the entries": (
        DATA,
        INDICES_32,
        STARTS + 1,
        2,
        "indptr goes from 1 to 5, 0 times downwards, for 4 entries",
    ),
    "downwards": (DATA, INDICES_32, STARTS[::-1], 2, "indptr goes from 4 to 0, 2 times downwards"),
    "no indptr": (DATA, INDICES_32, STARTS[:0], 2, "indptr is empty"),
}


@njit
def one_of(which, data, indices, indptr, x):
    if which == 0:
        return lib.csr_matvec(data, indices, indptr, x)[0]
    if which == 1:
        return lib.csc_matvec(data, indices, indptr, x, 2)[0]
    if which == 2:
        return lib.csr_matmat(data, indices, indptr, x.reshape(-1, 1))[0, 0]
    if which == 3:
        return lib.csc_matmat(data, indices, indptr, x.reshape(-1, 1), 2)[0, 0]
    if which == 4:
        return lib.csr_solve(data, indices, indptr, x)[0]
    if which == 5:
        return lib.csc_solve(data, indices, indptr, x)[0]
    if which == 6:
        return lib.csr_solve_triangular(data, indices, indptr, x)[0]
    return lib.csc_solve_triangular(data, indices, indptr, x)[0]


@pytest.mark.parametrize("name", WRONG)
def test_what_does_not_fit_is_refused_before_it_is_read(name):
    data, indices, indptr, size, message = WRONG[name]
    for which in range(8):
        with pytest.raises(ValueError, match=message):
            one_of(which, data, indices, np.ascontiguousarray(indptr), np.ones(size))


@pytest.mark.slow
def test_what_does_not_fit_is_refused_in_a_gradient():
    gradient = irad.grad(one_of, argnums=(1, 4))
    for data, indices, indptr, size, message in WRONG.values():
        with pytest.raises(ValueError, match=message):
            gradient(0, data, indices, np.ascontiguousarray(indptr), np.ones(size))


def test_sizes_of_vectors_and_what_is_no_matrix():
    for call in (lib.csr_solve, lib.csc_solve, lib.csr_solve_triangular):
        with pytest.raises(ValueError, match="a right-hand side of 5 for a sparse matrix with 2"):
            call(DATA, INDICES_32, STARTS, np.ones(5))
    with pytest.raises(ValueError, match="a vector of 3 for a sparse matrix with 2"):
        lib.csc_matvec(DATA, INDICES_32, STARTS, np.ones(3), 2)
    assert lib.csr_matvec(DATA[:0], INDICES_32[:0], STARTS[:1], np.ones(2)).size == 0
    assert lib.csr_matvec(DATA[:0], INDICES_32[:0], np.zeros(3, np.int32), np.ones(0)).tolist() == [0.0, 0.0]
    for wrong in (DATA.astype(np.float16), DATA.tolist()):
        with pytest.raises(irad.SignatureError, match=r"csr_matvec: (an array of float16|.* where an array is needed)"):
            lib.csr_matvec(wrong, INDICES_32, STARTS, np.ones(2))
    with pytest.raises(irad.SignatureError, match="csr_matvec: an array of float64"):
        lib.csr_matvec(DATA, INDICES_32 * 1.0, STARTS, np.ones(2))


def test_other_numbers_of_axes():
    column = np.ones((2, 1))
    with pytest.raises(irad.SignatureError, match="csr_matvec: an array with 2 axes where one with 1 axis"):
        lib.csr_matvec(DATA, INDICES_32, STARTS, column)
    for call in (lib.csr_solve, lib.csc_solve, lib.csr_solve_triangular, lib.csc_solve_triangular):
        with pytest.raises(
            irad.SignatureError, match=f"{call.__name__}: an array with 3 axes where one with 1 axis or"
        ):
            call(DATA, INDICES_32, STARTS, column.reshape(2, 1, 1))
    with pytest.raises(irad.SignatureError, match="csc_matvec: an array with 2 axes"):
        lib.csc_matvec(DATA.reshape(2, 2), INDICES_32, STARTS, np.ones(2), 2)
    with pytest.raises(irad.SignatureError, match="csr_matmat: an array with 1 axes where one with 2 axes"):
        lib.csr_matmat(DATA, INDICES_32, STARTS, np.ones(2))
    for call, x in ((lib.csc_matvec, np.ones(2)), (lib.csc_matmat, column)):
        with pytest.raises(irad.SignatureError, match=f"{call.__name__}: float64 where an int is needed"):
            call(DATA, INDICES_32, STARTS, x, 2.0)


def test_unsigned_numbers_that_are_no_places():
    huge = np.array([0, 2, 2**63 + 4], np.uint64)
    with pytest.raises(ValueError, match="indptr goes from 0 to -"):
        lib.csr_matvec(DATA, INDICES_32, huge, np.ones(2))
    with pytest.raises(ValueError, match="do not fit a size of 2"):
        lib.csr_matvec(DATA, np.full(4, 2**63, np.uint64), STARTS, np.ones(2))
