"""`np.linalg` of complex matrices through LAPACK, complex results of real ones, and phases of vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba import njit

import irad
from tests.tools.catalogue import Case, Catalogue, floats

PROGRAMS = Catalogue()
MORE = Catalogue()  # run with the slow tests


def matrix(rows: int, columns: int, seed: int = 0) -> np.ndarray:
    return floats(rows, columns, low=-0.5, high=0.5, seed=seed) + 1j * floats(
        rows, columns, low=-0.5, high=0.5, seed=seed + 1
    )


def regular(size: int) -> np.ndarray:
    """A matrix that needs pivoting, with distinct eigenvalues and singular values."""
    return np.array(np.roll(matrix(size, size) + 2.0 * np.diag(np.arange(1.0, size + 1)), 1, axis=0))


def definite(size: int) -> np.ndarray:
    """Positive definite; what is not read (the upper triangle, imaginary parts on the diagonal) is arbitrary."""
    return matrix(size, size) + 3.0 * np.diag(np.arange(1.0, size + 1))


# ------------------------------------------------------------------------------------------------ systems


@PROGRAMS.at(regular(3), matrix(3, 2))
@njit
def systems(a, b):
    sign, logarithm = np.linalg.slogdet(a)
    return np.linalg.solve(a, b), np.linalg.det(a) * sign + logarithm


@PROGRAMS.at(regular(3))
@njit
def inverse_and_its_square(a):
    return np.linalg.matrix_power(a, -2)


@PROGRAMS.at(definite(3))
@njit
def cholesky_of_the_lower_triangle(a):
    return np.linalg.cholesky(a)


@PROGRAMS.at(matrix(4, 4))
@PROGRAMS.at(matrix(4, 2))
@PROGRAMS.at(matrix(2, 4))
@PROGRAMS.at(matrix(1, 1))
@njit
def qr(a):
    return np.linalg.qr(a)


@PROGRAMS.at(matrix(4, 2), matrix(4, 2, seed=3))
@njit
def least_squares(a, b):
    x, residuals, _, s = np.linalg.lstsq(a, b)
    return x, residuals, s


@PROGRAMS.at(matrix(3, 2), matrix(2, 4, seed=3))
@PROGRAMS.at(np.eye(3) + 0j, 1j * np.eye(3))
@njit
def pseudo_inverse_at_any_rank(a, b):
    return np.linalg.pinv(a @ b, 1e-10)


# ------------------------------------------------------------------------------------------------ spectra


@PROGRAMS.at(definite(3))
@PROGRAMS.at(definite(1))
@njit
def hermitian_eigenvalues(a):
    w, v = np.linalg.eigh(a)
    return w, v, np.linalg.eigvalsh(a * a)


@PROGRAMS.at(regular(3))
@njit
def general_eigenvalues(a):
    w, v = np.linalg.eig(a)
    return w, v, np.linalg.eigvals(a * a)


@PROGRAMS.at(matrix(4, 3))
@PROGRAMS.at(matrix(3, 4))
@PROGRAMS.at(regular(3))
@njit
def thin_singular_values(a):
    u, s, vt = np.linalg.svd(a, False)
    return u, s, vt


@MORE.at(matrix(4, 2), True, forward=False)  # forward mode gives NaN for a basis of the complement that is free
@MORE.at(matrix(2, 4), False)
@njit
def projectors(a, full):
    """None of these minds the phases."""
    u, s, vt = np.linalg.svd(a, full)
    k = s.size
    p, q = np.ascontiguousarray(u[:, k:]), np.ascontiguousarray(vt[k:])
    left, right = np.ascontiguousarray(u[:, :1]), np.ascontiguousarray(vt[:1])
    return p @ p.conj().T, q.conj().T @ q, left @ (s[0] * right), np.linalg.cond(a)


@PROGRAMS.at(regular(3))
@njit
def norms(a):
    return np.linalg.norm(a), np.linalg.norm(a, 2), np.linalg.norm(a, 1), np.linalg.norm(a[0])


@pytest.mark.parametrize("case", [*PROGRAMS, *MORE.slow()], ids=str)
def test_gradient(case: Case):
    case.check()


@pytest.mark.parametrize(("function", "point"), [(cholesky_of_the_lower_triangle, definite(3)), (qr, matrix(3, 2))])
def test_single_precision(function: Callable[..., Any], point: np.ndarray):
    Case("single", function, (point.astype(np.complex64),), {"rtol": 2e-3}).check()


# ------------------------------------------------------------------------------------------------ closed forms


@njit
def entropy(a):
    w, v = np.linalg.eigh(a)
    b = (v * np.log(w)) @ v.conj().T
    return np.sum(a * b.T).real


def test_a_matrix_function():
    """tr(A log A): the gradient with respect to a Hermitian matrix is log A + 1, given by its lower triangle."""
    a = definite(4)
    a = np.tril(a, -1) + np.tril(a, -1).conj().T + np.diag(np.diag(a).real)
    w, v = np.linalg.eigh(a)
    expected = (v * (np.log(w) + 1)) @ v.conj().T
    given = irad.grad(entropy)(a)  # a by its own elements, and by those that eigh reads
    folded = np.tril(given, -1) + np.triu(given, 1).conj().T + np.diag(np.diag(given).real)
    np.testing.assert_allclose(folded, 2 * np.tril(expected) - np.diag(np.diag(expected).real), rtol=1e-10)


# ------------------------------------------------------------------------------------------------ phases, equal values


@njit
def phase_of_a_vector(a):
    u, _, vt = np.linalg.svd(a, False)
    return u[0, 0].imag + vt[1, 2].real


@njit
def phase_of_a_vector_without_a_first_component(a):
    return np.linalg.eigh(a)[1][1, 1].imag


@njit
def spectral_function(a):
    w, v = np.linalg.eigh(a)
    return ((v * np.exp(w)) @ v.conj().T).real.sum()


@njit
def free_vector(a):
    return np.linalg.svd(a)[0][0, 2].real


@pytest.mark.parametrize(
    ("function", "a"),
    [
        (phase_of_a_vector, matrix(2, 5)),
        (phase_of_a_vector_without_a_first_component, np.array([[9, 0, 0], [0, 1, 0.2], [0, 0.2j, 3]])),
        (spectral_function, np.eye(3) + 0j),
        (free_vector, matrix(3, 2)),
    ],
)
def test_what_no_derivative_is_known_of_is_nan(function: Callable[..., Any], a: np.ndarray):
    assert np.isnan(irad.grad(function)(a)).any()


def test_a_vector_without_a_first_component_that_keeps_its_phase():
    a = np.array([[9, 0, 0], [0, 1, 0.2], [0, 0.2j, 3]])
    Case("blocks", spectral_function, (a,), {"forward": False}).check()  # in forward mode NaN: the phase is unknown
