"""`irad.ode.solve` with the method "radau" and sparse matrices: a pattern, a Jacobian in CSR, a mass matrix in CSR."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.integrate
import scipy.linalg
import scipy.sparse
from numba import njit

import irad
from irad.ode import solve
from irad.ode.algebra import coloured


@njit
def brusselator(t, y, shape, p):
    """Two substances that react and diffuse in the cells of a grid without flux through its ends."""
    (rows, columns), found = shape, np.empty(y.size)
    for cell in range(rows * columns):
        i, j = cell // columns, cell % columns
        u, v, du, dv = y[2 * cell], y[2 * cell + 1], 0.0, 0.0
        for side in range(4):
            is_inside = (i > 0, i < rows - 1, j > 0, j < columns - 1)[side]
            if is_inside:
                other = cell + (-columns, columns, -1, 1)[side]
                du += y[2 * other] - u
                dv += y[2 * other + 1] - v
        turnover = u * u * v
        found[2 * cell] = p[0] + turnover - (p[1] + 1.0) * u + p[2] * du
        found[2 * cell + 1] = p[1] * u - turnover + p[3] * dv
    return found


def pattern_of(shape):
    rows, columns = (scipy.sparse.diags_array([1.0] * 3, offsets=[-1, 0, 1], shape=(m, m)) for m in shape)
    neighbours = scipy.sparse.kronsum(columns, rows)
    within = scipy.sparse.kron(scipy.sparse.eye(shape[0] * shape[1]), np.ones((2, 2)))
    found = scipy.sparse.csr_array(scipy.sparse.kron(neighbours, scipy.sparse.eye(2)) + within)
    found.eliminate_zeros()
    return found


@njit
def total(y0, t1, p, shape, indices, indptr, rtol, weights):
    found = solve(
        brusselator, y0, (0.0, t1), (shape, p), None, "radau", rtol, rtol, jac_sparsity=(indices, indptr), snapshots=7
    )
    return (found.y[-1] * weights).sum()


def given_of(shape, rtol):
    n, matrix = 2 * shape[0] * shape[1], pattern_of(shape)
    y0, weights = np.empty(n), np.cos(np.arange(n))
    y0[::2], y0[1::2] = 1.0 + np.sin(np.arange(n // 2) / shape[1]), 3.0
    return y0, 1.5, np.array([1.0, 3.0, 200.0, 150.0]), shape, matrix.indices, matrix.indptr, rtol, weights


GRIDS = [(1, 200), (34, 34)]


@pytest.mark.parametrize("shape", GRIDS)
def test_values_are_those_of_scipy(shape):
    y0, t1, p, _, _, _, rtol, weights = given = given_of(shape, 1e-8)
    truth = scipy.integrate.solve_ivp(
        brusselator, (0.0, t1), y0, "Radau", args=(shape, p), rtol=rtol, atol=rtol, jac_sparsity=pattern_of(shape)
    )
    assert total(*given) == pytest.approx(truth.y[:, -1] @ weights, rel=1e-6)


@pytest.fixture(scope="module")
def gradient():
    return irad.grad(total, argnums=(0, 1, 2))


@pytest.mark.parametrize("shape", GRIDS)
def test_derivatives(gradient, shape):
    """They are those of differences, and forward and reverse mode agree."""
    y0, _, p, *rest = given = given_of(shape, 1e-8)
    tangents = 0.1 * np.sin(np.arange(y0.size)), 0.2, p * np.array([0.3, -0.2, 0.1, 0.2])
    sides = [total(*(x + h * v for x, v in zip(given, tangents, strict=False)), *rest) for h in (1e-4, -1e-4)]
    pulled = sum(np.sum(a * b) for a, b in zip(gradient(*given), tangents, strict=True))
    assert pulled == pytest.approx((sides[0] - sides[1]) / 2e-4, rel=1e-4)
    assert irad.jvp(total, given, (*tangents, *[None] * 5))[1] == pytest.approx(pulled, rel=1e-9)


def test_a_pattern_that_lacks_entries():
    """It makes an approximation, which takes more iterations to the same solution."""
    y0, t1, _, shape, *pattern, rtol, weights = given_of((1, 5), 1e-8)
    given = y0, t1, np.array([1.0, 3.0, 0.2, 0.1]), shape
    whole, diagonal = (
        total(*given, *pattern, rtol, weights),
        (np.arange(10, dtype=np.int32), np.arange(11, dtype=np.int32)),
    )
    assert total(*given, *diagonal, rtol, weights) == pytest.approx(whole, rel=1e-6)


@pytest.mark.parametrize(
    ("n", "indices", "indptr", "said"),
    [
        (5, np.arange(4), np.arange(5), "is not a pattern in CSR as large as the state"),
        (4, np.array([0, 1, 1, 1]), np.array([0, 1, 1, 3, 4]), "has an entry twice"),
        (4, np.array([0, 4]), np.array([0, 1, 1, 1, 2]), "is not a pattern in CSR as large as the state"),
    ],
)
def test_patterns_that_are_none(n, indices, indptr, said):
    with pytest.raises(ValueError, match=said):
        coloured(n, indices, indptr)


def test_colours():
    """Columns of one colour share no row; five are enough for a band of five, and empty rows change nothing."""
    rng = np.random.default_rng(0)
    band = scipy.sparse.diags_array([1.0] * 5, offsets=range(-2, 3), shape=(30, 30)).tocsr()
    some = rng.random((30, 30)) * (rng.random((30, 30)) < 0.1)
    some[[3, 29]] = 0.0
    for pattern, most in ((band, 5), (scipy.sparse.csr_array(some), 30)):
        indices, indptr, colours = coloured(30, pattern.indices, pattern.indptr)
        assert colours.max() < most
        for i in range(30):
            found = colours[indices[indptr[i] : indptr[i + 1]]]
            assert np.unique(found).size == found.size


# A linear differential-algebraic equation, M y' = A y: the third equation has no derivative, the last one no right-hand
# side.

INDICES, INDPTR = np.array([0, 1, 2, 0, 1, 0, 1, 2]), np.array([0, 3, 5, 8, 8])
MASS_INDICES, MASS_INDPTR = np.array([0, 1, 0, 1, 3]), np.array([0, 2, 4, 4, 5])


@njit
def linear(t, y, entries, size):
    found = np.zeros(y.size)
    for i in range(y.size):
        for k in range(INDPTR[i], INDPTR[i + 1]):
            found[i] += entries[k] * y[INDICES[k]]
    return found


@njit
def sparse_slopes(t, y, entries, size):
    """An approximation of the derivative."""
    data = entries.copy()
    data[1] *= 0.9
    return data, INDICES, INDPTR[: INDPTR.size - size]


@njit
def dense_slopes(t, y, entries, size):
    found = np.zeros((y.size, y.size))
    for i in range(y.size):
        for k in range(INDPTR[i], INDPTR[i + 1]):
            found[i, INDICES[k]] = entries[k]
    return found


@njit
def weighed(y0, t1, entries, mass, weights, size):
    matrix = mass, MASS_INDICES, MASS_INDPTR
    found = solve(linear, y0, (0.0, t1), (entries, size), None, "radau", 1e-10, 1e-12, jac=sparse_slopes, mass=matrix)
    return (found.y[-1] * weights).sum()


Y0, T1 = np.array([1.0, 0.3, 0.65, 2.0]), 1.2
ENTRIES, MASS = np.array([-3.0, 0.5, 0.7, 0.2, -2.0, 1.0, 1.0, -2.0]), np.array([2.0, 0.5, 0.3, 1.0, 1.5])
WEIGHTS = np.array([1.0, 2.0, -0.5, 0.7])


def matrix_of(data, indices, indptr):
    found = np.zeros((4, 4), data.dtype)
    for i in range(4):
        found[i, indices[indptr[i] : indptr[i + 1]]] = data[indptr[i] : indptr[i + 1]]
    return found


def closed(y0, t1, entries, mass):
    """Without the third state, which the third equation gives; the last one stays."""
    a, m = matrix_of(entries, INDICES, INDPTR), matrix_of(mass, MASS_INDICES, MASS_INDPTR)
    third = -a[2, :2] / a[2, 2]
    y = scipy.linalg.expm(t1 * np.linalg.solve(m[:2, :2], a[:2, :2] + np.outer(a[:2, 2], third))) @ y0[:2]
    return y @ WEIGHTS[:2] + WEIGHTS[2] * (third @ y) + WEIGHTS[3] * y0[3]


def test_a_sparse_mass_matrix():
    """All derivatives by complex steps in the closed form."""
    given, rest, h = (Y0, T1, ENTRIES, MASS), (WEIGHTS, 0), 1e-30
    assert weighed(*given, *rest) == pytest.approx(closed(*given), rel=1e-9)
    gradient = irad.grad(weighed, argnums=(0, 1, 2, 3))(*given, *rest)
    for i, each in enumerate(gradient):
        for place in np.ndindex(np.shape(each)):
            step = np.zeros(np.shape(each), complex)
            step[place] = 1j * h
            moved = [x + step if j == i else x + 0j for j, x in enumerate(given)]
            assert np.asarray(each)[place] == pytest.approx(closed(*moved).imag / h, rel=1e-7, abs=1e-9)
    tangents = Y0, 0.3, 0.1 * ENTRIES[::-1], 0.2 * MASS[::-1]
    pulled = sum(np.sum(a * b) for a, b in zip(gradient, tangents, strict=True))
    assert irad.jvp(weighed, (*given, *rest), (*tangents, None, None))[1] == pytest.approx(pulled, rel=1e-9)
    with pytest.raises(ValueError, match="jac of a differential equation does not return a matrix in CSR as large"):
        weighed(*given, WEIGHTS, 1)
    with pytest.raises(ValueError, match="is not one in CSR as large as the state"):
        weighed(Y0, T1, ENTRIES, MASS[:3], *rest)
    with pytest.raises(ValueError, match="is not one in CSR as large as the state"):
        weighed(Y0[:3], T1, ENTRIES, MASS, *rest)


def test_a_dense_jacobian_with_a_sparse_mass_matrix():
    """From Python; SciPy's matrices are taken, too."""
    mass = scipy.sparse.csr_array((MASS, MASS_INDICES, MASS_INDPTR), shape=(4, 4))
    found = solve(linear, Y0, (0.0, T1), (ENTRIES, 0), None, "radau", 1e-10, 1e-12, jac=dense_slopes, mass=mass)
    assert found.y[-1] @ WEIGHTS == pytest.approx(closed(Y0, T1, ENTRIES, MASS), rel=1e-9)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"method": "rodas"}, "jac_sparsity of a differential equation is passed with the method rodas"),
        ({"jac": sparse_slopes}, "both jac and jac_sparsity are passed"),
        ({"jac_sparsity": np.eye(4)}, "jac_sparsity of a differential equation is a float64"),
        ({"jac_sparsity": (INDICES, INDPTR, INDPTR)}, "jac_sparsity of a differential equation is a "),
        ({"y0": np.ones((4, 1))}, "with a state that is not an array of doubles"),
        ({"mass": np.eye(4)}, "the mass matrix of a differential equation is dense, and jac is sparse"),
        ({"mass": (MASS * 1j, MASS_INDICES, MASS_INDPTR)}, "the mass matrix of a differential equation is a "),
        ({"jac": njit(lambda t, y, a, s: (y, INDPTR)), "jac_sparsity": None}, "jac of a differential equation returns"),
    ],
)
def test_refused(given, said):
    with pytest.raises(irad.SignatureError, match=said):
        solve(
            **{
                "f": linear,
                "y0": Y0,
                "t_span": (0.0, 1.0),
                "args": (ENTRIES, 0),
                "method": "radau",
                "jac_sparsity": (INDICES, INDPTR),
                **given,
            }
        )
