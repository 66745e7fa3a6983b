"""Functions of arrays at special points: value, forward and reverse mode, second derivatives."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from numba import njit
from numba.core.typing.templates import builtin_registry

import irad
from irad.frontend.numba import methods, stand_ins
from tests.special_points.arrays_table import ELSEWHERE, FIRST, LATER, LINEAR, Case
from tests.support.entries import Outcome
from tests.support.numpy_functions import GROUPS

_STEP = 2e-4
SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in LATER]
GROUPED = {**FIRST, **LATER}


@njit
def weighted(value: Any) -> float:
    """All elements, each with its own weight; of a complex number half the imaginary part."""
    total = 0.0
    for i, entry in enumerate(np.asarray(value).flat):
        total += (1.0 + i) * (entry.real + 0.5 * entry.imag)
    return total


def function_of(cases: Sequence[Case]) -> Callable[..., Any]:
    """`(points of each case, …) -> sum, (values of each case, …)`, compiled at once."""
    lines, scope = [], {"np": np, "weighted": weighted}
    for k, case in enumerate(cases):
        exec(f"def use(x):\n    return weighted({case.use})", scope)
        scope[f"use{k}"] = njit(scope["use"])
        lines += [f"v{k} = np.empty(len(x{k}))", f"for i in range(len(x{k})): v{k}[i] = use{k}(x{k}[i])"]
    names = range(len(cases))
    result = f"return {' + '.join(f'v{k}.sum()' for k in names)}, ({''.join(f'v{k}, ' for k in names)})"
    exec("\n    ".join([f"def all_of({', '.join(f'x{k}' for k in names)}):", *lines, result]), scope)
    return njit(scope["all_of"])


def gradient(case: Case, x: np.ndarray) -> np.ndarray:
    """Of the reference, by complex steps."""
    step = 1e-30j * np.eye(len(x))
    return np.array([np.imag(case.reference(x + each)) / 1e-30 for each in step])


def second(case: Case, x: np.ndarray, v: np.ndarray) -> np.ndarray:
    """The Hessian of the reference, times a vector: by imaginary steps, which stay on the branch of the point."""

    def difference(u: np.ndarray, step: float) -> float:
        return 2.0 * np.real(case.reference(x + 0j) - case.reference(x + 1j * step * u)) / step**2

    def form(u: np.ndarray) -> float:
        """By Richardson's extrapolation: fourth derivatives near small differences are large."""
        return (4.0 * difference(u, _STEP) - difference(u, 2.0 * _STEP)) / 3.0

    return np.array([(form(v + e) - form(v - e)) / 4.0 for e in np.eye(len(x))])


def shared(case: Case, x: np.ndarray, found: np.ndarray, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both, summed over equal elements where ties share their derivative."""
    if not case.ties:
        return found, wanted
    groups = np.unique(x, return_inverse=True)[1]
    totals = np.bincount(groups, found)
    assert np.all(found * totals[groups] >= 0.0), (case, x, found)
    return totals, np.bincount(groups, wanted)


def directions(case: Case, points: np.ndarray) -> np.ndarray:
    """A vector for each point, which is the same for equal elements."""
    return np.cos(1.0 + np.nan_to_num(points) + (0.0 if case.ties else np.arange(points.shape[1])))


def arguments(cases: Sequence[Case]) -> tuple[np.ndarray, ...]:
    return tuple(np.array(case.points) for case in cases)


def points_of(cases: Sequence[Case], *rows: Sequence[np.ndarray]) -> Iterator[tuple[Any, ...]]:
    for case, *given in zip(cases, *rows, strict=True):
        yield from ((case, *each) for each in zip(*given, strict=True))


@pytest.mark.parametrize("group", [*FIRST, *SLOW])
def test_first_derivatives(group: str):
    cases = GROUPED[group]
    f, given = function_of(cases), arguments(cases)
    argnums = tuple(range(len(cases)))
    (_, values), gradients = irad.value_and_grad(f, argnums, has_aux=True)(*given)
    for case, x, value in points_of(cases, given, values):
        np.testing.assert_allclose(
            value, np.real(case.reference(x)), rtol=1e-9, atol=1e-9, err_msg=f"{case.use} at {x}"
        )
    for case, x, found in points_of(cases, given, gradients):
        wanted = gradient(case, x)
        assert np.all(np.isfinite(found)), (case, x)
        np.testing.assert_allclose(*shared(case, x, found, wanted), rtol=1e-9, atol=1e-9, err_msg=f"{case.use} at {x}")


@pytest.mark.parametrize("group", [*FIRST, *SLOW])
def test_forward_mode_agrees(group: str):
    cases = GROUPED[group]
    f, given = function_of(cases), arguments(cases)
    tangents = tuple(directions(case, points) for case, points in zip(cases, given, strict=True))
    _, change, *_ = irad.jvp(f, given, tangents, has_aux=True)
    wanted = sum(gradient(case, x) @ v for case, x, v in points_of(cases, given, tangents))
    assert change == pytest.approx(wanted, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("group", GROUPED)
def test_values_keep_their_bits(group: str):
    cases = GROUPED[group]
    f, given = function_of(cases), arguments(cases)
    (_, values), _ = irad.value_and_grad(f, tuple(range(len(cases))), has_aux=True)(*given)
    for case, found, plain in zip(cases, values, f(*given)[1], strict=True):
        assert found.tobytes() == plain.tobytes(), (case.use, found, plain)


@pytest.mark.parametrize(
    "group", [pytest.param(name, marks=[] if name == "reflectors" else pytest.mark.slow) for name in GROUPED]
)
def test_second_derivatives(group: str):
    cases = [case for case in GROUPED[group] if case.order > 1]
    f, given = function_of(cases), arguments(cases)
    tangents = tuple(directions(case, points) for case, points in zip(cases, given, strict=True))
    products = irad.hvp(f, tuple(range(len(cases))), has_aux=True)(*given, tangents)[0]
    for case, x, v, found in points_of(cases, given, tangents, products):
        both = shared(case, x, found, second(case, x, v))
        np.testing.assert_allclose(*both, rtol=1e-5, atol=2e-5, err_msg=f"{case.use} at {x}")


def test_eigenvalues_without_a_full_set_of_vectors_have_no_derivative():
    """That of the trace of the square is 2Aᵀ, which the eigenvalues and the one vector do not tell."""

    @njit
    def trace_of_square(a):
        return np.sum(np.linalg.eigvals(a) ** 2)

    gradient_of = irad.grad(trace_of_square)
    for matrix in (
        [[1.0, 1.0], [0.0, 1.0]],
        [[1.0, 1e-3], [0.0, 1.0]],
        [[1.0, 0.5, 3.0], [0.0, 1.0, 2.0], [0.0, 0.0, 2.0]],
    ):
        assert np.all(np.isnan(gradient_of(np.array(matrix))))
    several = np.array([[1.0, 0.0, 3.0], [0.0, 1.0, 2.0], [0.0, 0.0, 2.0]])
    np.testing.assert_allclose(gradient_of(several), 2.0 * several.T, atol=1e-14)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("values", "hessian"),
    [
        ("np.linalg.eigh(a)[0]", [2.0, 0.0, 4.0, 2.0]),
        ("np.linalg.eigvalsh(a)", [2.0, 0.0, 4.0, 2.0]),
        ("np.linalg.lstsq(a, np.ones(2))[3]", [2.0, 2.0, 2.0, 2.0]),
    ],
)
def test_second_derivatives_of_equal_values_are_right_or_nan(values: str, hessian: list[float]):
    """In reverse over reverse mode the cotangents of all vectors are 0."""
    scope = {"np": np}
    exec(f"def sum_of_squares(x):\n    a = x.reshape(2, 2)\n    return np.sum({values} ** 2)", scope)
    gradient_of = irad.grad(njit(scope["sum_of_squares"]))

    @njit
    def along(x, v):
        return np.sum(gradient_of(x) * v)

    second_of = irad.grad(along)
    for direction, wanted in zip(np.eye(4), np.diag(hessian), strict=True):
        found = second_of(np.zeros(4), direction)
        known = ~np.isnan(found)
        np.testing.assert_array_equal(found[known], wanted[known])


@njit
def of_pseudo_inverse(a, weights):
    return np.sum(np.sin(np.linalg.pinv(a, 0.2)) * weights)


def _cut_off(random: Any) -> Iterator[tuple[Any, ...]]:
    """Matrices of which singular values are left out, with a direction and weights; whether all of them are 0."""
    for (m, n), values in (
        ((4, 3), (2.0, 1.0, 0.1)),
        ((3, 4), (2.0, 0.3, 0.2)),
        ((3, 2), (2.0, 0.0)),
        ((2, 3), (1, 0)),
    ):
        a, v, weights = random.normal(size=(m, n)), random.normal(size=(m, n)), random.normal(size=(n, m))
        u, _, vt = np.linalg.svd(a, full_matrices=False)
        yield (u * values) @ vt, v, weights, 0.0 in values


def test_pseudo_inverses_that_leave_singular_values_out():
    """The vectors of those that count turn towards the others."""
    gradient_of, step = irad.grad(of_pseudo_inverse), 1e-5
    for a, v, weights, _ in _cut_off(np.random.default_rng(7)):
        difference = of_pseudo_inverse(a + step * v, weights) - of_pseudo_inverse(a - step * v, weights)
        found = np.sum(gradient_of(a, weights) * v)
        assert found == pytest.approx(0.5 * difference / step, rel=1e-7)
        assert irad.jvp(of_pseudo_inverse, (a, weights), (v, 0.0 * weights))[1] == pytest.approx(found, rel=1e-12)


@pytest.mark.slow
def test_second_derivatives_of_pseudo_inverses_that_leave_singular_values_out():
    """Where those are 0, none is known: other matrices nearby have another rank."""
    gradient_of, step = irad.grad(of_pseudo_inverse), 1e-5

    @njit
    def along(a, weights, v):
        return np.sum(gradient_of(a, weights) * v)

    forward, reverse = irad.hvp(of_pseudo_inverse), irad.grad(along)
    for a, v, weights, is_deficient in _cut_off(np.random.default_rng(7)):
        wanted = 0.5 * (gradient_of(a + step * v, weights) - gradient_of(a - step * v, weights)) / step
        for found in (forward(a, v, weights), reverse(a, weights, v)):
            if is_deficient:
                assert not np.isfinite(found).any()
            else:
                np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-7)


@njit
def of_least_squares(a, b):
    return np.sum(np.linalg.lstsq(a, b, 0.2)[0])


def test_least_squares_that_leave_singular_values_out():
    """With respect to the matrix: NaN where they are not 0."""
    gradients_of = irad.grad(of_least_squares, argnums=(0, 1))
    for a, v, _, is_deficient in _cut_off(np.random.default_rng(7)):
        b, tangent = v[:, 0].copy(), irad.jvp(of_least_squares, (a, v[:, 0].copy()), (v, 0.0 * v[:, 0]))[1]
        by_a, by_b = gradients_of(a, b)
        np.testing.assert_allclose(by_b, np.linalg.pinv(a, 0.2).sum(axis=0), rtol=1e-12)
        if is_deficient:
            assert tangent == pytest.approx(np.sum(by_a * v), rel=1e-12)
        else:
            assert np.isnan(by_a).all()
            assert np.isnan(tangent)


@njit
def _norms(a):
    return np.array([np.linalg.norm(a, 2), np.linalg.svd(a)[1].sum()])


@pytest.mark.parametrize("dtype", [np.float64, pytest.param(np.complex128, marks=pytest.mark.slow)])
def test_norms_of_matrices_with_equal_singular_values(dtype: Any):
    """A subgradient: its product with the matrix is the norm, and its dual norm is not above 1."""
    u = np.linalg.qr(
        np.random.default_rng(3).normal(size=(3, 3)).astype(dtype) + (1j if dtype is np.complex128 else 0)
    )[0]
    jacobian_of = irad.jacobian(_norms)
    for values in ((1.0, 1.0, 1.0), (2.0, 2.0, 1.0), (2.0, 1.0, 1.0), (1.0, 0.0, 0.0), (0.0, 0.0, 0.0)):
        a = (u * values) @ u.conj().T
        for found, value, dual in zip(jacobian_of(a), _norms(a), ("nuc", 2), strict=True):
            assert np.vdot(found, a).real == pytest.approx(value, abs=1e-13)
            assert np.linalg.norm(found, dual) <= 1.0 + 1e-13


def test_every_differentiable_function_is_listed():
    listed = {name for cases in GROUPED.values() for case in cases for name in case.names.split()}
    listed |= {name for words in (*LINEAR.values(), *ELSEWHERE.values()) for name in words.split()}
    entries = [entry for group in GROUPS for entry in group.entries if entry.outcome is Outcome.DERIVATIVE]
    assert sorted({name for entry in entries for name in entry.names} - listed) == []


def test_every_function_with_a_stand_in_is_registered_with_numba():
    """Numba asks for it by this name: what it has renamed would be differentiated as it is."""
    registered = {
        methods.name_of(template)
        for _, function in builtin_registry.globals
        for template in getattr(function, "templates", ())
        if hasattr(template, "_overload_func")
    }
    assert set(stand_ins.MAKERS) - registered == set()
