"""LAPACK rules run for real, against differences of LAPACK itself: what `np.linalg` never asks for is here too."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from numba import njit
from scipy.linalg import lapack

from irad.errors import UnsupportedError
from irad.frontend.external import finds_linear_algebra
from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.module import Module
from irad.ir.values import Value, const_float, const_int
from irad.rules.dense.elements import element_of
from irad.rules.dense.kernel import Kernel
from irad.rules.dense.matrix import Matrix
from irad.rules.dense.triangular import (
    TriangularForm,
    multiply_triangular,
    read_pivots,
    solve_triangular,
    solve_triangular_right,
)
from tests.rules.test_blas import DTYPE, Program, execute, letter, number, random_array

Arrays = tuple[np.ndarray, ...]
KINDS = "dszc"
TOLERANCE = {"d": 1e-7, "s": 2e-3, "z": 1e-7, "c": 2e-3}
REAL = {"d": np.float64, "s": np.float32, "z": np.float64, "c": np.float32}
KINDS_AND_LATER_WRITES = list(product(KINDS, [False, True]))


@njit
def _load_lapack(a):
    return np.linalg.solve(a, a)


@pytest.fixture(scope="module", autouse=True)
def _lapack_is_loaded():
    """Numba makes its entry points known to LLVM when it first compiles a call; irad those that Numba lacks."""
    _load_lapack(np.eye(2))
    assert all(finds_linear_algebra(f"scipy.linalg.cython_blas.{kind}trsm") for kind in KINDS)


def fortran(kind: str, *shape: int, seed: int = 0, shift: float = 0.0) -> np.ndarray:
    matrix = random_array(kind, *shape, seed=seed)
    return np.asfortranarray(matrix + (shift * np.eye(shape[0], shape[-1]) if shift else 0.0), dtype=DTYPE[kind])


def in_double(kind: str, name: str) -> Callable[..., Any]:
    """A function of LAPACK for double precision."""
    function: Callable[..., Any] = getattr(lapack, ("z" if kind in "cz" else "d") + name)
    return function


def check(
    symbol: str,
    kind: str,
    arrays: Arrays,
    arguments: Callable[[Builder, Sequence[Value]], list[Value]],
    primal: Callable[..., Arrays],
    *,
    active: Sequence[int],
    overwrite: Sequence[int] = (),
    silent: Mapping[int, slice] = MappingProxyType({}),
) -> None:
    """Compares the shadows after the reverse part, and the tangents, with differences of ``primal``.

    Args:
        symbol: what is called.
        kind: the letter of the element type.
        arrays: its memory before the call.
        arguments: as in `Program`.
        primal: from the active arrays before to those after, in double precision.
        active: indices of the arrays with a shadow.
        overwrite: indices of those that are cleared after the call.
        silent: rows of an array without a cotangent.
    """
    letters = ["z" if np.iscomplexobj(arrays[i]) else "d" for i in active]
    inputs = [arrays[i].astype(DTYPE[of]) for i, of in zip(active, letters, strict=True)]
    seeds = [random_array(of, *arrays[i].shape, seed=9 + i) for i, of in zip(active, letters, strict=True)]
    for index, rows in silent.items():
        seeds[active.index(index)][rows] = 0.0
    shadows = [
        None if i not in active else np.array(seeds[active.index(i)], a.dtype, order="F") for i, a in enumerate(arrays)
    ]
    Program(kind, [a.copy(order="F") for a in arrays], shadows, tuple(overwrite)).run(symbol, arguments)

    def loss(*values: np.ndarray) -> float:
        return sum(float(np.sum(np.conj(s) * v).real) for s, v in zip(seeds, primal(*values), strict=True))

    def difference(position: int, place: tuple[int, ...], step: complex) -> float:
        moved = [[v.copy(order="F") for v in inputs] for _ in range(2)]
        moved[0][position][place] += step
        moved[1][position][place] -= step
        return (loss(*moved[0]) - loss(*moved[1])) / 2e-6

    for position, index in enumerate(active):
        expected = np.zeros(arrays[index].shape, inputs[position].dtype)
        for place in np.ndindex(*expected.shape):
            expected[place] = difference(position, place, 1e-6)
            if letters[position] == "z":
                expected[place] += 1j * difference(position, place, 1e-6j)
        scale = max(1.0, float(np.abs(expected).max()))
        found = shadows[index]
        assert found is not None
        np.testing.assert_allclose(found, expected, atol=scale * TOLERANCE[kind], rtol=0)
    cotangents = [shadow for shadow in shadows if shadow is not None]
    check_tangents(symbol, kind, arrays, arguments, primal, active, silent, seeds, cotangents)


def check_tangents(
    symbol: str,
    kind: str,
    arrays: Arrays,
    arguments: Callable[[Builder, Sequence[Value]], list[Value]],
    primal: Callable[..., Arrays],
    active: Sequence[int],
    silent: Mapping[int, slice],
    seeds: Sequence[np.ndarray],
    cotangents: Sequence[np.ndarray],
) -> None:
    """Compares tangents with differences of ``primal``, and with the cotangents that the seeds give."""
    doubled = [arrays[i].astype(seed.dtype) for i, seed in zip(active, seeds, strict=True)]
    letters = ["z" if np.iscomplexobj(seed) else "d" for seed in seeds]
    given = [random_array(of, *arrays[i].shape, seed=70 + i) for i, of in zip(active, letters, strict=True)]
    tangents = [
        None if i not in active else np.array(given[active.index(i)], a.dtype, order="F") for i, a in enumerate(arrays)
    ]
    Program(kind, [a.copy(order="F") for a in arrays], tangents, forward=True).run(symbol, arguments)
    pushed = [tangent for tangent in tangents if tangent is not None]
    moved = [
        primal(*(np.asfortranarray(x + step * dx) for x, dx in zip(doubled, given, strict=True)))
        for step in (1e-6, -1e-6)
    ]
    for index, found, above, below in zip(active, pushed, *moved, strict=True):
        expected, counts = (above - below) / 2e-6, np.full(found.shape, True)
        if index in silent:
            counts[silent[index]] = False
        scale = max(1.0, float(np.abs(expected).max(initial=0.0)))
        np.testing.assert_allclose(found[counts], expected[counts], atol=scale * TOLERANCE[kind], rtol=0)
    pairs = [(seeds, pushed), (cotangents, given)]
    left, right = (sum(float(np.vdot(x, y).real) for x, y in zip(*pair, strict=True)) for pair in pairs)
    size = sum(float(np.abs(x).ravel() @ np.abs(y).ravel()) for x, y in zip(cotangents, given, strict=True))
    assert abs(left - right) <= (1e-10 if kind in "dz" else 1e-3) * max(1.0, size)


def pivots(size: int) -> np.ndarray:
    return np.zeros(size, np.int32)


# ------------------------------------------------------------------------------------------------ systems


@pytest.mark.parametrize(("kind", "later"), KINDS_AND_LATER_WRITES)
def test_solution_and_factors_together(kind: str, later: bool):
    a, b = fortran(kind, 4, 4), fortran(kind, 4, 2, seed=1)

    def primal(a: np.ndarray, b: np.ndarray) -> Arrays:
        factors, _, x, _ = in_double(kind, "gesv")(a, b)
        return factors, x

    def arguments(_: Builder, p: Sequence[Value]) -> list[Value]:
        return [letter(kind), number(4), number(2), p[0], number(4), p[2], p[1], number(4)]

    check(
        "numba_xgesv", kind, (a, b, pivots(4)), arguments, primal, active=(0, 1), overwrite=(0, 1, 2) if later else ()
    )


def test_a_constant_matrix():
    a, b = fortran("d", 3, 3), fortran("d", 3, 2, seed=1)

    def arguments(_: Builder, p: Sequence[Value]) -> list[Value]:
        return [letter("d"), number(3), number(2), p[0], number(3), p[2], p[1], number(3)]

    def primal(b: np.ndarray) -> Arrays:
        return (np.linalg.solve(a, b),)

    check("numba_xgesv", "d", (a, b, pivots(3)), arguments, primal, active=(1,), overwrite=(0, 1, 2))


@pytest.mark.parametrize(
    ("kind", "size", "later"),
    [*((kind, 4, later) for kind, later in KINDS_AND_LATER_WRITES), ("d", 33, False), ("z", 18, True)],
)
def test_factors(kind: str, size: int, later: bool):
    def arguments(_: Builder, p: Sequence[Value]) -> list[Value]:
        return [letter(kind), *[number(size)] * 2, p[0], number(size + 1), p[1]]

    a = fortran(kind, size + 1, size, shift=1.0 + size / 4)  # the last row is not part of the matrix

    def primal(a: np.ndarray) -> Arrays:
        a = a.copy(order="F")
        a[:size] = in_double(kind, "getrf")(a[:size])[0]
        return (a,)

    check("numba_xxgetrf", kind, (a, pivots(size)), arguments, primal, active=(0,), overwrite=(0, 1) if later else ())


@pytest.mark.parametrize(("kind", "size"), [("d", 5), ("z", 5), ("d", 40), ("z", 35)])
def test_factors_of_which_only_the_diagonal_counts(kind: str, size: int):
    """As of a determinant."""
    a = fortran(kind, size, size)
    factors, exchanged, _ = in_double(kind, "getrf")(a)
    d = random_array(kind, size, seed=3)
    shadow = np.diag(d).astype(DTYPE[kind], order="F")
    Program(kind, [a, pivots(size)], [shadow, None]).run(
        "numba_xxgetrf", lambda _, p: [letter(kind), number(size), number(size), p[0], number(size), p[1]]
    )
    lower, upper = np.tril(factors, -1) + np.eye(size), np.triu(factors)
    core = np.diag(d * np.diag(upper).conj())
    expected = np.linalg.solve(lower.conj().T, core) @ np.linalg.inv(upper).conj().T
    for i, other in reversed(list(enumerate(exchanged))):
        expected[[i, other]] = expected[[other, i]]
    np.testing.assert_allclose(shadow, expected, rtol=0, atol=1e-9 * np.abs(expected).max())


def test_factors_of_a_matrix_that_is_not_square_are_refused():
    def arguments(_: Builder, p: Sequence[Value]) -> list[Value]:
        return [letter("d"), number(3), number(2), p[0], number(3), p[1]]

    with pytest.raises(UnsupportedError, match="square"):
        Program("d", [fortran("d", 3, 2), pivots(2)], [fortran("d", 3, 2), None]).run("numba_xxgetrf", arguments)


@pytest.mark.parametrize(("kind", "later"), KINDS_AND_LATER_WRITES)
def test_inverse_from_factors_of_unknown_origin(kind: str, later: bool):
    factors, exchanged, _ = in_double(kind, "getrf")(fortran("z" if kind in "cz" else "d", 4, 4))
    exchanged = (exchanged + 1).astype(np.int32)

    def primal(factors: np.ndarray) -> Arrays:
        return (in_double(kind, "getri")(factors, exchanged - 1)[0],)

    def arguments(_: Builder, p: Sequence[Value]) -> list[Value]:
        return [letter(kind), number(4), p[0], number(4), p[1]]

    arrays = (np.asfortranarray(factors, DTYPE[kind]), exchanged)
    check("numba_ez_xxgetri", kind, arrays, arguments, primal, active=(0,), overwrite=(0, 1) if later else ())


@pytest.mark.parametrize(
    ("kind", "size", "later"),
    [*((kind, 4, later) for kind, later in KINDS_AND_LATER_WRITES), ("d", 67, True), ("z", 33, False)],
)
def test_cholesky_leaves_the_other_triangle_alone(kind: str, size: int, later: bool):
    def primal(a: np.ndarray) -> Arrays:
        return (in_double(kind, "potrf")(a, lower=0, clean=0)[0],)

    def arguments(_: Builder, p: Sequence[Value]) -> list[Value]:
        return [letter(kind), letter("U"), number(size), p[0], number(size)]

    a = fortran(kind, size, size, shift=2.0 + size)
    check("numba_xxpotrf", kind, (a,), arguments, primal, active=(0,), overwrite=(0,) if later else ())


def test_the_other_cholesky_is_refused():
    a = fortran("d", 2, 2)
    with pytest.raises(UnsupportedError, match="cholesky"):
        Program("d", [a], [a]).run("numba_xxpotrf", lambda b, p: [letter("d"), letter("L"), number(2), p[0], number(2)])


@pytest.mark.parametrize("type_", [np.int32, np.int64])
@pytest.mark.parametrize("exchanged", [[3, 2, 3], [1], [2, 2]])
def test_pivots_of_either_width(type_: type, exchanged: list[int]):
    given, found = np.array(exchanged, type_), np.zeros(len(exchanged), np.int64)
    module = Module()
    function = module.define("run", types.function_type(types.VOID, [types.PTR] * 2))
    builder = Builder(function.add_block("entry"))
    read_pivots(builder, number(len(exchanged)), *function.params)
    builder.ret()
    execute(module, [given, found])
    assert found.tolist() == exchanged


@pytest.mark.parametrize("kind", ["d", "z"])
@pytest.mark.parametrize("form", ["upper", "upper_adjoint", "unit_lower", "unit_lower_adjoint"])
@pytest.mark.parametrize("operation", [solve_triangular, solve_triangular_right, multiply_triangular])
def test_triangular_matrices(operation: Callable[..., None], form: TriangularForm, kind: str):
    """Small systems and vectors go through loops, others to BLAS."""
    module = Module()
    function = module.define("run", types.function_type(types.VOID, [types.PTR] * 3))
    factor_data, right_data, sizes = function.params
    k = Kernel(Builder(function.add_block("entry")), element_of(letter(kind), ""))
    order, rows, columns = (k.build.load(types.I64, k.build.gep(types.I64, sizes, [number(i)])) for i in range(3))
    operation(form, Matrix.dense(k, factor_data, order, order), Matrix.dense(k, right_data, rows, columns))
    k.build.ret()
    for size, others in ((1, 3), (16, 3), (17, 1), (17, 3), (70, 5)):
        matrix = fortran(kind, size, size) / size + np.eye(size)
        factor = np.triu(matrix) if form.startswith("upper") else np.tril(matrix, -1) + np.eye(size)
        if form.endswith("adjoint"):
            factor = factor.conj().T
        is_right = operation is solve_triangular_right
        b = fortran(kind, *((others, size) if is_right else (size, others)), seed=1)
        if operation is multiply_triangular:
            expected = factor @ b
        else:
            expected = b @ np.linalg.inv(factor) if is_right else np.linalg.solve(factor, b)
        execute(module, [np.asfortranarray(matrix), b, np.array([size, *b.shape])])
        np.testing.assert_allclose(b, expected, rtol=1e-10, atol=1e-12)


# ------------------------------------------------------------------------------------------------ spectra


@pytest.mark.parametrize(("kind", "later", "jobz"), list(product(KINDS, [False, True], "NV")))
def test_symmetric_eigenvalues(kind: str, later: bool, jobz: str):
    """Only the lower triangle is read. Without vectors the matrix counts as destroyed, its upper triangle as left."""
    a = fortran(kind, 4, 4) + np.diag(np.arange(4.0, dtype=DTYPE[kind])) * 3

    def primal(a: np.ndarray, w: np.ndarray) -> Arrays:
        values, vectors, _ = in_double(kind, "heevd" if kind in "cz" else "syevd")(a, lower=1)
        return vectors if jobz == "V" else np.triu(a, 1), values

    def arguments(_: Builder, p: Sequence[Value]) -> list[Value]:
        return [letter(kind), letter(jobz), letter("L"), number(4), p[0], number(4), p[1]]

    arrays = (np.asfortranarray(a), np.zeros(4, REAL[kind]))
    check("numba_ez_xxxevd", kind, arrays, arguments, primal, active=(0, 1), overwrite=(0, 1) if later else ())


@pytest.mark.parametrize(("kind", "later", "jobvr"), list(product("ds", [False, True], "NV")))
def test_general_eigenvalues(kind: str, later: bool, jobvr: str):
    a = fortran(kind, 3, 3) * DTYPE[kind](0.3) + np.diag(np.array([1, 3, 6], DTYPE[kind]))

    def primal(a: np.ndarray, wr: np.ndarray, vr: np.ndarray) -> Arrays:
        values, _, _, vectors, _ = in_double(kind, "geev")(a, compute_vl=0)
        return 0 * a, values, vectors if jobvr == "V" else vr

    def arguments(_: Builder, p: Sequence[Value]) -> list[Value]:
        jobs = [letter(kind), letter("N"), letter(jobvr)]
        return [*jobs, number(3), p[0], number(3), p[1], p[3], p[4], number(1), p[2], number(3)]

    arrays = (np.asfortranarray(a), np.zeros(3, DTYPE[kind]), fortran(kind, 3, 3), *np.zeros((2, 3), DTYPE[kind]))
    overwritten = (0, 1, 2, 3) if later else ()
    check("numba_ez_rgeev", kind, arrays, arguments, primal, active=(0, 1, 2), overwrite=overwritten)


@pytest.mark.parametrize(("kind", "later", "jobvr"), list(product("ds", [False, True], "NV")))
def test_pairs_of_complex_eigenvalues_of_real_matrices(kind: str, later: bool, jobvr: str):
    a = fortran(kind, 4, 4) * DTYPE[kind](0.3) + np.diag(np.array([1, 3, 6, 2], DTYPE[kind]))
    a[1, 2], a[2, 1] = 4, -3  # components of one size would leave it to rounding which of them is real
    assert np.count_nonzero(np.linalg.eigvals(a).imag) == 2
    geev: Any = lapack.get_lapack_funcs("geev", [a])
    oriented = geev(a)[3]  # rounding decides the sign

    def primal(a: np.ndarray, wr: np.ndarray, wi: np.ndarray, vr: np.ndarray) -> Arrays:
        real, imag, _, vectors, _ = lapack.dgeev(a, compute_vl=0)
        vectors *= np.sign(np.sum(vectors * oriented, axis=0))
        return 0 * a, real, imag, vectors if jobvr == "V" else vr

    def arguments(_: Builder, p: Sequence[Value]) -> list[Value]:
        jobs = [letter(kind), letter("N"), letter(jobvr)]
        return [*jobs, number(4), p[0], number(4), p[1], p[2], p[4], number(1), p[3], number(4)]

    values = np.zeros((3, 4), DTYPE[kind])
    arrays = (np.asfortranarray(a), values[0], values[1], fortran(kind, 4, 4), values[2])
    overwritten = (0, 1, 2, 3) if later else ()
    check("numba_ez_rgeev", kind, arrays, arguments, primal, active=(0, 1, 2, 3), overwrite=overwritten)


@pytest.mark.parametrize(("kind", "later", "jobvr"), list(product("zc", [False, True], "NV")))
def test_eigenvalues_of_complex_matrices(kind: str, later: bool, jobvr: str):
    a = fortran(kind, 3, 3) * DTYPE[kind](0.3) + np.diag(np.array([1, 3j, 6], DTYPE[kind]))

    def primal(a: np.ndarray, w: np.ndarray, vr: np.ndarray) -> Arrays:
        values, _, vectors, _ = lapack.zgeev(a, compute_vl=0)
        return 0 * a, values, vectors if jobvr == "V" else vr

    def arguments(_: Builder, p: Sequence[Value]) -> list[Value]:
        jobs = [letter(kind), letter("N"), letter(jobvr)]
        return [*jobs, number(3), p[0], number(3), p[1], p[3], number(1), p[2], number(3)]

    arrays = (np.asfortranarray(a), np.zeros(3, DTYPE[kind]), fortran(kind, 3, 3), np.zeros(3, DTYPE[kind]))
    overwritten = (0, 1, 2) if later else ()
    check("numba_ez_cgeev", kind, arrays, arguments, primal, active=(0, 1, 2), overwrite=overwritten)


SHAPES_AND_JOBS = [
    *product(KINDS, [(4, 3), (3, 4), (3, 3)], [("N", True), ("S", False), ("S", True)]),
    *product("ds", [(4, 3), (3, 4), (3, 3)], [("A", True)]),
    *product("zc", [(3, 3)], [("A", True)]),
]


@pytest.mark.parametrize(("kind", "shape", "job"), SHAPES_AND_JOBS)
def test_singular_values(kind: str, shape: tuple[int, int], job: tuple[str, bool]):
    jobz, later = job
    (m, n), k = shape, min(shape)
    width, height = (m, n) if jobz == "A" else (k, k)

    def primal(a: np.ndarray, s: np.ndarray, u: np.ndarray, vt: np.ndarray) -> Arrays:
        left, values, right, _ = in_double(kind, "gesdd")(a, full_matrices=jobz == "A")
        return (0 * a, values, left, right) if jobz != "N" else (0 * a, values, u, vt)

    def arguments(_: Builder, p: Sequence[Value]) -> list[Value]:
        out = [p[1], p[2], number(m), p[3], number(height)]
        return [letter(kind), letter(jobz), number(m), number(n), p[0], number(m), *out]

    a = fortran(kind, m, n, shift=2.0)
    a[0, 0] += 2
    arrays = (a, np.zeros(k, REAL[kind]), fortran(kind, m, width), fortran(kind, height, n))
    overwritten = (0, 1, 2, 3) if later else ()
    check("numba_ez_gesdd", kind, arrays, arguments, primal, active=(0, 1, 2, 3), overwrite=overwritten)


# ------------------------------------------------------------------------------------------------ reflectors


@pytest.mark.parametrize(("kind", "shape", "later"), list(product(KINDS, [(4, 4), (5, 3), (3, 5)], [False, True])))
def test_reflectors(kind: str, shape: tuple[int, int], later: bool):
    m, n = shape

    def primal(a: np.ndarray, tau: np.ndarray) -> Arrays:
        factors, scales, _, _ = in_double(kind, "geqrf")(a)
        return factors, scales

    def arguments(_: Builder, p: Sequence[Value]) -> list[Value]:
        return [letter(kind), number(m), number(n), p[0], number(m), p[1]]

    arrays = (fortran(kind, m, n), np.zeros(min(shape), DTYPE[kind]))
    check("numba_ez_geqrf", kind, arrays, arguments, primal, active=(0, 1), overwrite=(0, 1) if later else ())


@pytest.mark.parametrize("kind", "dz")
def test_reflectors_of_which_only_r_counts(kind: str):
    def primal(a: np.ndarray) -> Arrays:
        return (in_double(kind, "geqrf")(a)[0],)

    def arguments(_: Builder, p: Sequence[Value]) -> list[Value]:
        return [letter(kind), number(4), number(3), p[0], number(4), p[1]]

    check("numba_ez_geqrf", kind, (fortran(kind, 4, 3), np.zeros(3, DTYPE[kind])), arguments, primal, active=(0,))


@pytest.mark.parametrize("kind", "dz")
def test_columns_that_need_no_reflector(kind: str):
    """They are zero below the diagonal and real on it. The sign goes on as it is, with either sign in the primal."""
    a = np.asfortranarray(np.triu(fortran(kind, 4, 3)))
    np.fill_diagonal(a, [1.5, -0.7, 0.4])

    def primal(a: np.ndarray) -> Arrays:
        q, r = np.linalg.qr(a)
        signs = np.sign(np.real(np.diag(r))) * [1, -1, 1]
        return q * signs, r * signs[:, None]

    seeds = [random_array(kind, 4, 3, seed=1), np.triu(random_array(kind, 3, 3, seed=2))]
    q_bar, scales = np.asfortranarray(seeds[0]), np.zeros(3, DTYPE[kind])
    reflectors, _, _, _ = in_double(kind, "geqrf")(a)
    tau_bar, q = np.zeros_like(scales), np.asfortranarray(reflectors)

    def assembled(_: Builder, p: Sequence[Value]) -> list[Value]:
        return [letter(kind), number(4), number(3), number(3), p[0], number(4), p[1]]

    def factorised(_: Builder, p: Sequence[Value]) -> list[Value]:
        return [letter(kind), number(4), number(3), p[0], number(4), p[1]]

    Program(kind, [q, scales], [q_bar, tau_bar]).run("numba_ez_xxgqr", assembled)
    q_bar[:3] += seeds[1]
    Program(kind, [a.copy(order="F"), scales], [q_bar, tau_bar]).run("numba_ez_geqrf", factorised)

    def loss(a: np.ndarray) -> float:
        return sum(float(np.sum(np.conj(s) * v).real) for s, v in zip(seeds, primal(a), strict=True))

    expected = np.zeros_like(a)
    for place in np.ndindex(*a.shape):
        for unit in (1, 1j) if kind == "z" else (1,):
            step = np.zeros_like(a)
            step[place] = 1e-6 * unit
            expected[place] += unit * (loss(a + step) - loss(a - step)) / 2e-6
    np.testing.assert_allclose(q_bar, expected, atol=1e-7)

    direction = np.asfortranarray(random_array(kind, 4, 3, seed=3))
    tangent, tau_dot, factors = direction.copy(order="F"), np.zeros_like(scales), a.copy(order="F")
    Program(kind, [factors, scales], [tangent, tau_dot], forward=True).run("numba_ez_geqrf", factorised)
    r_dot = np.triu(tangent[:3])
    Program(kind, [factors, scales], [tangent, tau_dot], forward=True).run("numba_ez_xxgqr", assembled)
    above, below = (primal(a + step * direction) for step in (1e-6, -1e-6))
    np.testing.assert_allclose(tangent, (above[0] - below[0]) / 2e-6, atol=1e-7)
    np.testing.assert_allclose(r_dot, (above[1] - below[1]) / 2e-6, atol=1e-7)


@pytest.mark.parametrize(("kind", "later"), KINDS_AND_LATER_WRITES)
def test_columns_of_reflectors(kind: str, later: bool):
    reflectors, scales, _, _ = in_double(kind, "geqrf")(fortran("z" if kind in "cz" else "d", 5, 3))

    def primal(a: np.ndarray, tau: np.ndarray) -> Arrays:
        return in_double(kind, "ungqr" if kind in "cz" else "orgqr")(a, tau)[0], tau

    def arguments(_: Builder, p: Sequence[Value]) -> list[Value]:
        return [letter(kind), number(5), number(3), number(3), p[0], number(5), p[1]]

    arrays = (np.asfortranarray(reflectors, DTYPE[kind]), scales.astype(DTYPE[kind]))
    check("numba_ez_xxgqr", kind, arrays, arguments, primal, active=(0, 1), overwrite=(0,) if later else ())


# ------------------------------------------------------------------------------------------------ least squares


@pytest.mark.parametrize(("kind", "shape", "later"), list(product(KINDS, [(5, 3), (3, 3), (2, 4)], [False, True])))
def test_least_squares(kind: str, shape: tuple[int, int], later: bool):
    (m, n), long, k = shape, max(shape), min(shape)

    def primal(a: np.ndarray, b: np.ndarray, s: np.ndarray) -> Arrays:
        x = np.zeros_like(b)
        x[:n] = np.linalg.pinv(a) @ b[:m]
        return 0 * a, x, np.linalg.svd(a)[1]

    def arguments(_: Builder, p: Sequence[Value]) -> list[Value]:
        sizes, rcond = [number(m), number(n), number(2)], const_float(types.DOUBLE, -1.0)
        return [letter(kind), *sizes, p[0], number(m), p[1], number(long), p[2], rcond, p[3]]

    b = fortran(kind, long, 2, seed=1)
    arrays = (fortran(kind, m, n), b, np.zeros(k, REAL[kind]), np.zeros(2, np.int32))
    overwritten = (0, 1, 2, 3) if later else ()
    below = {1: slice(n, m)}  # the sum of squares there is the residual; single elements have no rule
    check("numba_ez_gelsd", kind, arrays, arguments, primal, active=(0, 1, 2), overwrite=overwritten, silent=below)


# ------------------------------------------------------------------------------------------------ refusals


def test_a_choice_between_values_and_vectors_at_run_time_is_refused():
    a, flag = fortran("d", 2, 2), np.array([1], np.int8)

    def arguments(b: Builder, p: Sequence[Value]) -> list[Value]:
        wanted = b.icmp("eq", b.load(types.I8, p[2]), const_int(types.I8, 1))
        jobz = b.select(wanted, letter("V"), letter("N"))
        return [letter("d"), jobz, letter("L"), number(2), p[0], number(2), p[1]]

    with pytest.raises(UnsupportedError, match="at run time"):
        Program("d", [a, np.zeros(2), flag], [a, np.zeros(2), None]).run("numba_ez_xxxevd", arguments)
