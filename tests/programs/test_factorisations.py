"""`np.linalg` through LAPACK: systems, determinants, factorisations, eigenvalues, singular values, least squares."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba import njit, typeof

import irad
from tests.tools.catalogue import Case, Catalogue, floats

PROGRAMS = Catalogue()
MORE = Catalogue()  # run with the slow tests


def regular(size: int, **options: Any) -> np.ndarray:
    """A matrix that needs pivoting, with a condition number near 10 and distinct eigenvalues."""
    order = options.pop("order", "C")
    matrix = floats(size, size, low=-0.5, high=0.5, **options) + 2.0 * np.diag(np.arange(1.0, size + 1))
    return np.array(np.roll(matrix, 1, axis=0).astype(matrix.dtype), order=order)


def symmetric(size: int) -> np.ndarray:
    return floats(size, size, low=-0.5, high=0.5) + np.diag(np.arange(1.0, size + 1))


# ------------------------------------------------------------------------------------------------ systems


@PROGRAMS.at(regular(4), floats(4, 3))
@PROGRAMS.at(regular(1), floats(1, 3))
@njit
def solve(a, b):
    return np.linalg.solve(a, b)


@MORE.at(regular(6), floats(6))
@njit
def solve_in_a_loop_with_slices_that_change(a, b):
    c, s = b[::2].copy(), 0.0
    for k in range(3):
        x = np.linalg.solve(a[::2, 1::2].T, c)
        a[0, 1] += x[0]
        x *= x
        c[k] += 0.1 * np.sum(x)
        s += x[k]
    return s


@PROGRAMS.at(symmetric(3))
@njit
def factorise_until_small(a):
    n = 0
    while a[1, 0] ** 2 > 1e-4 and n < 20:
        a = np.linalg.cholesky(a)
        a = a.T @ a
        n += 1
    return a[0, 0] * a[1, 1] + n


@PROGRAMS.at(symmetric(3), 3)
@njit
def factorise_in_a_recursion(a, n):
    if n == 0:
        return a[0, 0]
    factor = np.linalg.cholesky(a)
    return factor[2, 1] * factorise_in_a_recursion(a, n - 1) + factor[1, 0]


@PROGRAMS.at(regular(4))
@PROGRAMS.at(regular(1))
@PROGRAMS.at(np.zeros((0, 0)))
@njit
def determinants(a):
    sign, logarithm = np.linalg.slogdet(a)
    return np.linalg.det(a) * sign + logarithm


@PROGRAMS.at(regular(3))
@PROGRAMS.at(regular(1))
@PROGRAMS.at(np.zeros((0, 0)))
@njit
def inverse_and_its_square(a):
    b = np.linalg.matrix_power(a, -2)
    a[:] = 0.0
    return b


@PROGRAMS.at(floats(3, 4), floats(3))
@njit
def gaussian_log_density(a, x):
    factor = np.linalg.cholesky(a @ a.T + 0.1 * np.eye(3))
    z = np.linalg.inv(factor) @ x
    return -0.5 * (z @ z) - np.sum(np.log(np.diag(factor)))


@PROGRAMS.at(symmetric(4))
@PROGRAMS.at(symmetric(1))
@njit
def cholesky_of_the_lower_triangle(a):
    return np.linalg.cholesky(a)


@pytest.mark.parametrize("size", [1, 2, 16, 17, 33, 70])
def test_slopes_of_a_determinant_are_the_inverse(size: int):
    a = regular(size)
    np.testing.assert_allclose(_LOGARITHM_SLOPE(a), np.linalg.inv(a).T, rtol=0, atol=1e-12)


_LOGARITHM_SLOPE = irad.grad(njit(lambda a: np.linalg.slogdet(a)[1]))


@pytest.mark.parametrize("size", [3, 16, 17, 40, 70])
def test_slopes_of_a_gaussian_density(size: int):
    """Factors of all sizes: small ones are computed by loops, larger ones in blocks."""
    a, y = symmetric(size), floats(size)
    slope_of_a, slope_of_y = _DENSITY_SLOPES(a @ a.T, y)
    inverse = np.linalg.inv(a @ a.T)
    # Only the lower triangle is read.
    whole = 0.5 * inverse - 0.5 * np.outer(inverse @ y, inverse @ y)
    triangle = np.tril(whole + whole.T) - np.diag(np.diag(whole))
    np.testing.assert_allclose(slope_of_a, triangle, rtol=0, atol=1e-10 * np.abs(triangle).max())
    np.testing.assert_allclose(slope_of_y, inverse @ y, rtol=0, atol=1e-10 * np.abs(inverse @ y).max())


@njit
def _density(a, y):
    factor = np.linalg.cholesky(a)
    z = np.linalg.solve(factor, y)
    return 0.5 * np.dot(z, z) + np.log(np.diag(factor)).sum()


_DENSITY_SLOPES = irad.grad(_density, argnums=(0, 1))


# ------------------------------------------------------------------------------------------------ orthogonal factors


@PROGRAMS.at(regular(4))
@PROGRAMS.at(floats(5, 3))
@PROGRAMS.at(floats(3, 5))
@PROGRAMS.at(floats(1, 3))
@PROGRAMS.at(floats(3, 1))
@njit
def qr(a):
    return np.linalg.qr(a)


# ------------------------------------------------------------------------------------------------ spectra


@PROGRAMS.at(symmetric(4))
@PROGRAMS.at(symmetric(1))
@njit
def symmetric_eigenvalues(a):
    w, v = np.linalg.eigh(a)
    return w, v, np.linalg.eigvalsh(a * a)


@PROGRAMS.at(np.roll(regular(4), -1, axis=0))
@njit
def general_eigenvalues(a):
    w, v = np.linalg.eig(a)
    return w, v


@PROGRAMS.at(floats(4, 2))
@PROGRAMS.at(floats(2, 4))
@PROGRAMS.at(regular(3))
@PROGRAMS.at(floats(1, 1))
@njit
def thin_singular_values(a):
    u, s, vt = np.linalg.svd(a, False)
    return u, s, vt


@PROGRAMS.at(floats(4, 2), True, forward=False)  # forward mode gives NaN for a basis of the complement that is free
@PROGRAMS.at(floats(2, 4), True, forward=False)
@PROGRAMS.at(floats(4, 2), False)
@njit
def projectors(a, full):
    u, s, vt = np.linalg.svd(a, full)
    k = s.size
    p, q = np.ascontiguousarray(u[:, k:]), np.ascontiguousarray(vt[k:])
    return p @ p.T, q.T @ q, u[:, 0] * s[0]


@PROGRAMS.at(regular(3), np.inf, argnums=(0,))
@PROGRAMS.at(regular(3), -np.inf, argnums=(0,))
@PROGRAMS.at(regular(3), 1.0, argnums=(0,))
@PROGRAMS.at(regular(3), -1.0, argnums=(0,))
@PROGRAMS.at(regular(3), 2.0, argnums=(0,))
@PROGRAMS.at(regular(3), -2.0, argnums=(0,))
@njit
def norms(a, p):
    return np.linalg.norm(a, p)


@PROGRAMS.at(regular(3))
@njit
def frobenius_norm_condition_and_rank(a):
    return (np.linalg.norm(a) + np.linalg.cond(a)) * np.linalg.matrix_rank(a)


@PROGRAMS.at(floats(4, 2), floats(2, 3))
@PROGRAMS.at(floats(3, 3), floats(3, 2))
@PROGRAMS.at(np.eye(3), np.eye(3))
@PROGRAMS.at(np.eye(4), np.eye(4)[:, ::2].copy())
@PROGRAMS.at(np.eye(2, 4), np.eye(4))
@njit
def pseudo_inverse_at_any_rank(a, b):
    return np.linalg.pinv(a @ b, 1e-10)


# ------------------------------------------------------------------------------------------------ least squares


@PROGRAMS.at(floats(5, 3), floats(5))
@PROGRAMS.at(floats(2, 4), floats(2))
@PROGRAMS.at(regular(3), floats(3))
@njit
def least_squares(a, b):
    x, residuals, _, s = np.linalg.lstsq(a, b)
    return x, residuals, s


@pytest.mark.parametrize("case", [*PROGRAMS, *MORE.slow()], ids=str)
def test_gradient(case: Case):
    case.check()


# ------------------------------------------------------------------------------------------------ single precision


def test_single_precision():
    Case("single", cholesky_of_the_lower_triangle, (symmetric(3).astype(np.float32),), {"rtol": 1e-3}).check()


# ------------------------------------------------------------------------------------------------ equal values


@njit
def spectral_function(a):
    w, v = np.linalg.eigh(a)
    return ((v * np.exp(w)) @ v.T).sum()


@njit
def first_vector_beside_equal_values(a):
    w, v = np.linalg.eigh(a)
    return (v[1, 2] + 2.0 * v[0, 2]) / v[2, 2] + w[0] + w[1]


@njit
def sum_of_singular_values(a):
    return np.linalg.svd(a)[1].sum()


@njit
def basis_of_the_complement(a):
    return np.linalg.svd(a)[0][0, 3]


def test_vectors_of_equal_eigenvalues_give_nan():
    given = irad.grad(spectral_function)(np.eye(3))
    assert np.isnan(given[np.tril_indices(3)]).all()


def test_equal_eigenvalues_whose_vectors_do_not_matter():
    given = irad.grad(first_vector_beside_equal_values)(np.diag([1.0, 1.0, 3.0]))
    np.testing.assert_allclose(given, [[1, 0, 0], [0, 1, 0], [1.0, 0.5, 0]], atol=1e-14)


def test_equal_singular_values():
    np.testing.assert_allclose(irad.grad(sum_of_singular_values)(np.eye(3)), np.eye(3), atol=1e-14)


def test_vectors_that_lapack_is_free_to_choose_give_nan():
    assert np.isnan(irad.grad(basis_of_the_complement)(floats(4, 2))).all()


# ------------------------------------------------------------------------------------------------ singular matrices


@njit
def determinant(a):
    return np.linalg.det(a)


@njit
def guarded_logarithm(a):
    sign, logarithm = np.linalg.slogdet(a)
    return logarithm if sign > 0 else a[0, 0]


def test_determinant_of_a_singular_matrix():
    """Numba returns a constant 0 there; the derivative is that of the function, as it is nearby."""
    gradient = irad.grad(determinant)
    for corner in (1.0, 1.0 + 1e-12, 1.0 + 1e-8):
        np.testing.assert_allclose(gradient(np.array([[corner, 2.0], [2.0, 4.0]])), [[4, -2], [-2, corner]], rtol=1e-10)


def test_a_factorisation_that_does_not_count_leaves_no_nan():
    np.testing.assert_array_equal(irad.grad(guarded_logarithm)(np.ones((2, 2))), [[1, 0], [0, 0]])


@njit
def inverse(a):
    return np.linalg.inv(a).sum()


@njit
def cholesky(a):
    return np.linalg.cholesky(a).sum()


@njit
def solution(a):
    return np.linalg.solve(a, a[0]).sum()


@pytest.mark.parametrize("function", [inverse, cholesky, solution])
def test_what_the_primal_raises(function: Callable[..., Any]):
    gradient, singular = irad.grad(function), -np.ones((2, 2))
    for _ in range(2):
        with pytest.raises(np.linalg.LinAlgError) as expected:
            function(singular)
        with pytest.raises(np.linalg.LinAlgError) as caught:
            gradient(singular)
        assert caught.value.args == expected.value.args
        assert np.isfinite(gradient(np.array([[2.0, 1.0], [1.0, 3.0]]))).all()


@njit
def systems(a, b):
    x = np.linalg.solve(a, b)
    return np.sum(x * x)


@pytest.mark.parametrize(
    ("function", "args", "factorisation"),
    [
        (systems, (regular(4), floats(4, 3)), "xgesv"),
        (solution, (regular(4),), "xgesv"),
        (determinant, (regular(4),), "xxgetrf"),
        (guarded_logarithm, (regular(4),), "xxgetrf"),
        (inverse, (regular(4),), "xxgetrf"),
        (cholesky, (regular(4),), "xxpotrf"),
    ],
)
def test_the_adjoint_factorises_nothing_again(
    function: Callable[..., Any], args: tuple[np.ndarray, ...], factorisation: str
):
    """The primal's call is the only one of the whole derivative. `xgesv` is one LU factorisation and two solutions.

    Of the two calls in the code of a determinant one runs: the other is for singular matrices.
    """
    gradient = irad.value_and_grad(function, argnums=tuple(range(len(args))))
    gradient.compile(tuple(map(typeof, args)))
    calls = re.findall(r"call i32 @numba_(\w+)\(", "\n".join(gradient.inspect_llvm().values()))
    factorising = {"xgesv", "xxgetrf", "xxpotrf", "ez_geqrf", "ez_gesdd", "ez_rgeev", "ez_xxxevd"}
    expected = [factorisation] * (2 if function is determinant else 1)
    assert [name for name in calls if name in factorising] == expected


# ------------------------------------------------------------------------------------------------ memory


def test_a_pullback_can_be_called_again():
    a, b = regular(4), floats(4, 3)
    x, pullback = irad.vjp(solve, a, b)
    seed = np.asfortranarray(floats(4, 3, seed=1))
    a_bar, b_bar = pullback(seed)
    x[:] = 0.0
    again = pullback(seed)
    np.testing.assert_array_equal(a_bar, again[0])
    np.testing.assert_array_equal(b_bar, again[1])
    np.testing.assert_allclose(b_bar, np.linalg.solve(a.T, seed), rtol=1e-12)


@njit
def narrow_counter(x, y):
    """An index that is chosen by a counter of eight bits."""
    total = 0.0
    seen = np.zeros(2)
    counter = np.uint8(0)
    for i in range(7, 420):
        if counter == np.uint8(253):
            j = 4
            seen[0] += 1.0
        else:
            j = i
            seen[1] += total
            for k in range(y.size):
                total += np.sin(y[k])
        w = x[100 * j]
        total += w * w
        x[np.uint64(700 - i)] = w * 0.5
        counter = np.uint8(counter + np.uint8(1))
    return total + seen.sum()


def test_a_counter_that_wraps_around():
    x = np.random.default_rng(0).standard_normal(43_000)
    found = irad.grad(narrow_counter)(x.copy(), x[:5].copy())
    saved = irad.grad(narrow_counter, options=irad.Options(plan="save_all"))(x.copy(), x[:5].copy())
    np.testing.assert_allclose(found, saved, rtol=1e-12)
    assert found[400] != 0.0
