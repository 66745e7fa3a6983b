"""Tangents of LAPACK that `test_lapack` does not compare with adjoints: constant operands, ends of sizes, ties."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from scipy.linalg import lapack

from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.values import Value, const_float
from tests.rules.test_blas import DTYPE, Program, letter, number, random_array
from tests.rules.test_lapack import REAL, TOLERANCE, _lapack_is_loaded, fortran, pivots

__all__ = ["_lapack_is_loaded"]
Arrays = Sequence[np.ndarray]
Arguments = Callable[[Builder, Sequence[Value]], list[Value]]


def pushed(symbol: str, kind: str, arrays: Arrays, tangents: Sequence[np.ndarray | None], arguments: Arguments) -> None:
    """Runs a routine with its tangent, which changes both."""
    Program(kind, arrays, tangents, forward=True).run(symbol, arguments)


def differences(function: Callable[..., Any], *moved: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """Along given directions, in double precision."""
    above, below = (function(*(x.astype(complex) + step * dx for x, dx in moved)) for step in (1e-6, -1e-6))
    result: np.ndarray = (above - below) / 2e-6
    return result


def agree(kind: str, found: np.ndarray, expected: np.ndarray) -> None:
    scale = max(1.0, float(np.abs(expected).max(initial=0.0)))
    np.testing.assert_allclose(found, expected, atol=scale * TOLERANCE[kind], rtol=0)


# ------------------------------------------------------------------------------------------------ systems


@pytest.mark.parametrize("kind", "dc")
@pytest.mark.parametrize(("size", "sides"), [(0, 0), (1, 1), (1, 3), (4, 0), (4, 1), (70, 3)])
@pytest.mark.parametrize("active", ["a", "b", "ab"])
def test_systems(kind: str, size: int, sides: int, active: str):
    a, b = fortran(kind, size, size, shift=4.0), fortran(kind, size, sides, seed=1)
    given = fortran(kind, size, size, seed=2), fortran(kind, size, sides, seed=3)
    a_dot = given[0].copy(order="F") if "a" in active else None
    b_dot = given[1].copy(order="F")  # it is written, and so has a shadow in any case
    if "b" not in active:
        b_dot[...] = 0.0

    def arguments(_: Builder, p: Sequence[Value]) -> list[Value]:
        return [letter(kind), number(size), number(sides), p[0], number(max(size, 1)), p[2], p[1], number(max(size, 1))]

    expected = np.linalg.solve(
        a, (given[1] if "b" in active else 0.0) - given[0] @ np.linalg.solve(a, b) * ("a" in active)
    )
    pushed("numba_xgesv", kind, [a.copy(order="F"), b, pivots(size)], [a_dot, b_dot, None], arguments)
    agree(kind, b_dot, expected)


@pytest.mark.parametrize("kind", "dz")
@pytest.mark.parametrize("size", [1, 66])
def test_inverses(kind: str, size: int):
    """By `np.linalg.inv`, whose factorisation leaves the tangent of the matrix for the inversion."""
    a, direction = fortran(kind, size, size, shift=4.0), fortran(kind, size, size, seed=1)
    factors, rows, _ = lapack.get_lapack_funcs("getrf", [a])(a)
    factors_dot = np.asfortranarray(factors * 0)
    lower, upper = np.tril(factors, -1) + np.eye(size), np.triu(factors)
    order = np.arange(size)
    for i, j in enumerate(rows):
        order[[i, j]] = order[[j, i]]
    middle = np.linalg.solve(lower, direction[order]) @ np.linalg.inv(upper)
    factors_dot += lower @ np.tril(middle, -1) + np.triu(middle) @ upper
    arrays = [np.asfortranarray(factors), (rows + 1).astype(np.int32)]
    arguments: Arguments = lambda _, p: [letter(kind), number(size), p[0], number(size), p[1]]  # noqa: E731
    pushed("numba_ez_xxgetri", kind, arrays, [factors_dot, None], arguments)
    inverse = np.linalg.inv(a)
    agree(kind, factors_dot, -inverse @ direction @ inverse)


def test_zero_tangents_of_what_is_singular_stay_zero():
    a, b = np.zeros((2, 2), order="F"), np.ones((2, 1), order="F")
    a_dot, b_dot = np.zeros_like(a), np.zeros_like(b)

    def arguments(_: Builder, p: Sequence[Value]) -> list[Value]:
        return [letter("d"), number(2), number(1), p[0], number(2), p[2], p[1], number(2)]

    pushed("numba_xgesv", "d", [a, b, pivots(2)], [a_dot, b_dot, None], arguments)
    assert not a_dot.any()
    assert not b_dot.any()


# ------------------------------------------------------------------------------------------------ spectra


def spectrum(kind: str, jobz: str, a: np.ndarray, a_dot: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues, and their tangents; the arrays become vectors and their tangents."""
    w, w_dot = np.zeros(len(a), REAL[kind]), np.full(len(a), 7.0, REAL[kind])

    def arguments(_: Builder, p: Sequence[Value]) -> list[Value]:
        return [letter(kind), letter(jobz), letter("L"), number(len(a)), p[0], number(len(a)), p[1]]

    pushed("numba_ez_xxxevd", kind, [a, w], [a_dot, w_dot], arguments)
    return w, w_dot


def test_vectors_of_equal_eigenvalues_are_nan_and_no_others():
    basis, _ = np.linalg.qr(random_array("d", 4, 4))
    a = np.asfortranarray(basis @ np.diag([1.0, 1.0, 2.0, 5.0]) @ basis.T)
    s = random_array("d", 4, 4, seed=1)
    direction = np.asfortranarray(s + s.T)
    tangent, vectors = direction.copy(order="F"), a.copy(order="F")
    _, w_dot = spectrum("d", "V", vectors, tangent)
    assert np.isnan(tangent[:, :2]).all()
    single = vectors[:, 2:]
    agree("d", w_dot, np.diag(vectors.T @ direction @ vectors))
    expected = [np.linalg.pinv(w * np.eye(4) - a) @ direction @ v for w, v in zip((2.0, 5.0), single.T, strict=True)]
    agree("d", tangent[:, 2:], np.transpose(expected))


@pytest.mark.parametrize("jobz", "NV")
def test_constant_matrices_of_equal_eigenvalues_have_zero_tangents(jobz: str):
    for tangent in (None, np.zeros((3, 3), order="F")):
        _, w_dot = spectrum("d", jobz, np.asfortranarray(np.eye(3)), tangent)
        assert not w_dot.any()
        assert tangent is None or not tangent.any()


def test_a_vector_whose_phase_is_not_known_is_nan():
    a = np.asfortranarray(np.diag([1.0, 2.0, 3.0]).astype(complex))
    tangent = fortran("z", 3, 3)
    _, w_dot = spectrum("z", "V", a, tangent)
    assert np.isfinite(w_dot).all()
    assert np.isfinite(tangent[:, 0]).all()  # its first component is not 0
    assert np.isnan(tangent[:, 1:]).any(axis=0).all()


@pytest.mark.parametrize("kind", "dz")
@pytest.mark.parametrize("jobz", "NV")
def test_one_eigenvalue(kind: str, jobz: str):
    a, tangent = fortran(kind, 1, 1), fortran(kind, 1, 1, seed=1)
    direction = tangent.copy()
    _, w_dot = spectrum(kind, jobz, a, tangent)
    agree(kind, w_dot, direction.real.ravel())
    assert not tangent.any()


# ------------------------------------------------------------------------------------------------ singular values


def decomposed(kind: str, jobz: str, a: np.ndarray, a_dot: np.ndarray) -> tuple[Arrays, Arrays]:
    """s, u, vt and their tangents."""
    (m, n), k = a.shape, min(a.shape)
    width, height = (m, n) if jobz == "A" else (k, k)
    results = [np.zeros(k, REAL[kind]), fortran(kind, m, width), fortran(kind, height, n)]
    tangents = [np.full_like(x, 7.0, order="F") for x in results]

    def arguments(_: Builder, p: Sequence[Value]) -> list[Value]:
        return [
            letter(kind),
            letter(jobz),
            number(m),
            number(n),
            p[0],
            number(m),
            *p[1:3],
            number(m),
            p[3],
            number(height),
        ]

    pushed("numba_ez_gesdd", kind, [a.copy(order="F"), *results], [a_dot.copy(order="F"), *tangents], arguments)
    return results, tangents


@pytest.mark.parametrize("shape", [(2, 3), (3, 4), (2, 9), (9, 2), (4, 3), (3, 3), (5, 70)])
@pytest.mark.parametrize("kind", "dz")
def test_thin_vectors_of_every_shape(kind: str, shape: tuple[int, int]):
    a, direction = fortran(kind, *shape, shift=2.0), fortran(kind, *shape, seed=1)
    (_, u, _), tangents = decomposed(kind, "S", a, direction)
    gesdd: Any = lapack.get_lapack_funcs("gesdd", [a])

    def primal(a: np.ndarray) -> list[np.ndarray]:
        left, values, right, _ = gesdd(a if kind == "z" else a.real, full_matrices=0)
        signs = np.sign(np.sum(left * u.conj(), axis=0).real)
        return [values, left * signs, right * signs[:, None]]

    for index in range(3):
        agree(kind, tangents[index], differences(lambda x, index=index: primal(x)[index], (a, direction)))


@pytest.mark.parametrize(("kind", "shape"), [("d", (5, 3)), ("z", (4, 3)), ("d", (2, 5))])
def test_further_vectors_are_nan_where_they_are_not_known(kind: str, shape: tuple[int, int]):
    a, direction = fortran(kind, *shape, shift=2.0), fortran(kind, *shape, seed=1)
    rank = min(shape)
    _, (_, u_dot, vt_dot) = decomposed(kind, "A", a, direction)
    _, (_, thin_u_dot, thin_vt_dot) = decomposed(kind, "S", a, direction)
    assert np.isnan(u_dot[:, rank:]).all()
    assert np.isnan(vt_dot[rank:]).all()
    agree(kind, u_dot[:, :rank], thin_u_dot)
    agree(kind, vt_dot[:rank], thin_vt_dot)


def test_vectors_of_equal_singular_values_are_nan_and_no_others():
    left, right = (np.linalg.qr(random_array("d", 4, 3, seed=seed))[0] for seed in (1, 2))
    a = np.asfortranarray(left @ np.diag([3.0, 1.0, 1.0]) @ right.T)
    direction = fortran("d", 4, 4, seed=3)
    (_, u, vt), (s_dot, u_dot, vt_dot) = decomposed("d", "S", a, direction)
    agree("d", s_dot[:3], np.diag(u.T @ direction @ vt.T)[:3])
    assert np.isfinite(u_dot[:, 0]).all()
    assert np.isfinite(vt_dot[0]).all()
    assert np.isnan(u_dot[:, 1:3]).all()
    assert np.isnan(vt_dot[1:3]).all()


# ------------------------------------------------------------------------------------------------ least squares


def least_squares(
    kind: str, a: np.ndarray, b: np.ndarray, a_dot: np.ndarray | None, b_dot: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The solution and the rows below it, and their tangents."""
    (m, n), sides = a.shape, b.shape[1]
    longer = max(m, n)
    content, tangent = (np.zeros((longer, sides), DTYPE[kind], order="F") for _ in range(2))
    content[:m], tangent[:m] = b, b_dot
    arrays = [a.copy(order="F"), content, np.zeros(min(m, n), REAL[kind]), np.zeros(2, np.int32)]
    shadows = [None if a_dot is None else a_dot.copy(order="F"), tangent, None, None]

    def arguments(_: Builder, p: Sequence[Value]) -> list[Value]:
        sizes, rcond = [number(m), number(n), number(sides)], const_float(types.DOUBLE, 1e-8)
        return [letter(kind), *sizes, p[0], number(m), p[1], number(longer), p[2], rcond, p[3]]

    pushed("numba_ez_gelsd", kind, arrays, shadows, arguments)
    return content, tangent


@pytest.mark.parametrize("kind", "dz")
@pytest.mark.parametrize("shape", [(5, 3), (3, 3), (2, 4), (1, 1)])
@pytest.mark.parametrize("active", ["a", "b", "ab"])
@pytest.mark.parametrize("rank", [None, 1])
def test_least_squares(kind: str, shape: tuple[int, int], active: str, rank: int | None):
    m, n = shape
    a, b = fortran(kind, m, n), fortran(kind, m, 2, seed=1)
    a_dot, b_dot = fortran(kind, m, n, seed=2), fortran(kind, m, 2, seed=3)
    if rank is not None:  # along matrices of this rank
        x, y, dx, dy = (random_array(kind, *s, seed=i) for i, s in enumerate([(m, 1), (1, n)] * 2))
        a, a_dot = np.asfortranarray(x @ y), np.asfortranarray(dx @ y + x @ dy)
    a_dot, b_dot = (d if name in active else 0 * d for name, d in (("a", a_dot), ("b", b_dot)))
    content, tangent = least_squares(kind, a, b, a_dot if "a" in active else None, b_dot)

    def solution(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        u, s, vt = np.linalg.svd(a, full_matrices=False)
        kept = rank or len(s)
        found: np.ndarray = vt[:kept].conj().T @ ((u[:, :kept].conj().T @ b) / s[:kept, None])
        return found

    def residual(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        sums: np.ndarray = np.sum(np.abs(b - a @ solution(a, b)) ** 2, axis=0)
        return sums

    agree(kind, tangent[:n], differences(solution, (a, a_dot), (b, b_dot)))
    if rank is None and m > n:
        along = 2.0 * np.sum(content[n:].conj() * tangent[n:], axis=0).real
        agree(kind, along, differences(residual, (a, a_dot), (b, b_dot)).real)
