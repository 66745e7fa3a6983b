"""Factors that calls of LAPACK share: what is taken over, and that no number and no derivative changes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from numba import float64, njit
from scipy.linalg import lapack

import irad
from irad.frontend.calls.task import Role, Task
from irad.frontend.derivation import derivation_of
from irad.frontend.external import finds_linear_algebra
from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.module import Module
from irad.ir.values import const_int
from irad.rules.dense.elements import element_of
from irad.rules.dense.kernel import I1, I64, PTR, Kernel
from irad.rules.lapack.shared import _taken
from tests.rules.test_blas import execute, letter, number, random_array

EXACT = irad.Options(vector_math=False)
ORACLE = irad.Options(plan="save_all")


# ------------------------------------------------------------------------------------------------ what is taken over


def take(kind: str, size: int, record: list[Any], a: np.ndarray, ipiv: np.ndarray, b: np.ndarray | None) -> bool:
    """Runs the code in front of a factorisation, or a solution; returns whether factors were taken over."""
    assert finds_linear_algebra(f"scipy.linalg.cython_lapack.{kind}getrs")
    module = Module()
    function = module.define("run", types.function_type(types.VOID, [PTR] * 5))
    build = Builder(function.add_block("entry"))
    given, *arrays, found = function.params
    system = [] if b is None else [number(1), arrays[2], number(size)]
    operands = [number(size), *arrays[:2], *system]
    k = Kernel(build, element_of(letter(kind), ""))
    taken = k.outline("take", partial(_taken, bool(system)), const_int(I1, 0), given, *operands, result=I1)
    build.store(build.zext(taken, I64), found)
    build.ret()
    addresses = np.array(
        [0 if each is None else each if isinstance(each, int) else each.ctypes.data for each in record]
    )
    result = np.zeros(1, np.int64)
    execute(module, [addresses, a, ipiv, b, result])
    return bool(result[0])


@pytest.mark.parametrize("kind", "dszc")
@pytest.mark.parametrize("wide", [False, True])
def test_factors_of_the_same_matrix_are_taken_over(kind: str, wide: bool):
    size = 5
    a, b = np.asfortranarray(random_array(kind, size, size)), random_array(kind, size)
    factors, exchanged, x, _ = getattr(lapack, f"{kind}gesv")(a, b)
    rows, ipiv = np.asarray(exchanged, np.int64) + 1, np.zeros(size, np.int64 if wide else np.int32)
    given, found = a.copy(order="F"), b.copy()
    # The library at hand has narrow integers: only for those it can solve.
    assert take(kind, size, [a, factors, rows, int(wide), size], given, ipiv, None if wide else found)
    if not wide:
        np.testing.assert_allclose(found, x, rtol=1e-12 if kind in "dz" else 1e-4)
    np.testing.assert_array_equal(given, factors)
    np.testing.assert_array_equal(ipiv, rows)


@pytest.mark.parametrize("kind", "dszc")
def test_nothing_is_taken_over_otherwise(kind: str):
    a, b = np.asfortranarray(random_array(kind, 4, 4)), random_array(kind, 4)
    factors, rows = np.zeros_like(a), np.arange(1, 5)

    def refuses(record: list[Any], given: np.ndarray) -> None:
        before, ipiv = given.copy(), np.zeros(4, np.int32)
        assert not take(kind, len(given), record, given, ipiv, b)
        np.testing.assert_array_equal(given, before)
        assert not ipiv.any()

    refuses([None, factors, rows, 0, 4], a.copy(order="F"))
    for place in ((0, 0), (3, 3)):
        other = a.copy(order="F")
        part = other.real if place == (0, 0) else other.imag if kind in "zc" else other
        part[place] = np.nextafter(part[place], part.dtype.type(9.0))
        refuses([a, factors, rows, 0, 4], other)
    negative, positive = a.copy(order="F"), a.copy(order="F")
    negative[1, 2], positive[1, 2] = -0.0, 0.0
    refuses([negative, factors, rows, 0, 4], positive)
    refuses([a, factors, rows, 0, 5], a.copy(order="F"))
    refuses([a[:1, :1].copy(), factors, rows, 0, 1], a[:1, :1].copy(order="F"))


# ------------------------------------------------------------------------------------------------ programs


@njit
def density(a, y):
    return 0.5 * np.dot(y, np.linalg.solve(a, y)) + 0.5 * np.linalg.slogdet(a)[1]


@njit
def density_in_another_order(a, y):
    logarithm = np.linalg.slogdet(a)[1]
    return 0.5 * np.dot(y, np.linalg.inv(a) @ y) + 0.5 * logarithm


@njit
def density_by_three(a, y):
    z = np.linalg.inv(a) @ y
    return 0.25 * np.dot(y, z + np.linalg.solve(a, y)) + 0.5 * np.linalg.slogdet(a)[1]


@njit
def density_of_a_matrix_in_order_of_columns(a, y):
    b = np.asfortranarray(a)
    return 0.5 * np.dot(y, np.linalg.solve(b, y)) + 0.5 * np.linalg.slogdet(b)[1]


@njit
def of_a_factor_and_its_transpose(a, y):
    factor = np.linalg.cholesky(a)
    return np.dot(y, np.linalg.solve(factor.T, np.linalg.solve(factor, y)))


def positive(size: int) -> np.ndarray:
    x = random_array("d", size, size)
    return x @ x.T + size * np.eye(size)


@pytest.mark.parametrize(
    "f", [density, density_in_another_order, density_by_three, density_of_a_matrix_in_order_of_columns]
)
def test_derivatives_and_values_of_calls_that_share(f: Callable[..., Any]):
    evaluate = irad.value_and_grad(f, argnums=(0, 1))
    exact = f is density_in_another_order  # the others solve as well, with a different division among threads
    for size in (0, 1, 2, 20):
        a, y = positive(size), random_array("d", size)
        value, (slope_of_a, slope_of_y) = evaluate(a, y)
        np.testing.assert_allclose(value, f(a, y), rtol=0.0 if exact else 1e-14)
        inverse = np.linalg.inv(a)
        z = inverse @ y
        np.testing.assert_allclose(slope_of_a, 0.5 * inverse - 0.5 * np.outer(z, z), rtol=1e-9, atol=1e-13)
        np.testing.assert_allclose(slope_of_y, z, rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize(
    ("f", "options", "shares"),
    [
        (density, irad.Options(), True),
        (density, ORACLE, False),
        (density, EXACT, False),
        (density_in_another_order, EXACT, True),
        (of_a_factor_and_its_transpose, irad.Options(), False),
    ],
)
def test_which_calls_compare_matrices(f: Callable[..., Any], options: irad.Options, shares: bool):
    task = Task(((0, Role.GRADIENT),), options=options)
    text = derivation_of(f, (float64[:, ::1], float64[::1]), task).compiled.derivative.text
    assert ("irad_take_factors" in text) == shares


@njit
def written_between(a, y):
    s = np.dot(y, np.linalg.solve(a, y))
    a[0, 1] += s
    s += np.linalg.slogdet(a)[1]
    for k in range(3):
        a[1, k % 2] *= 1.5
        s += y[k % 2] * np.linalg.slogdet(a)[1] + np.linalg.solve(a, y)[0]
    return s


@njit
def equal_by_chance(x, z, y):
    """The second matrix has the numbers of the first, but depends on another argument."""
    a = np.empty((2, 2))
    a[:] = x
    s = np.dot(y, np.linalg.solve(a, y))
    a[:] = z
    return s + 2.0 * np.linalg.slogdet(a)[1] + np.dot(y, np.linalg.solve(a, y))


@njit
def chosen(a, y, first):
    s = 0.0
    if first:
        s = np.linalg.slogdet(a)[1]
    return s + np.linalg.solve(a, y)[0]


def test_a_matrix_that_is_written_between():
    a, y = positive(2), random_array("d", 2)
    found, expected = (
        irad.value_and_grad(written_between, argnums=(0, 1), options=options)(a.copy(), y)
        for options in (EXACT, ORACLE)
    )
    np.testing.assert_allclose(found[0], written_between(a.copy(), y), rtol=1e-14)
    for x, z in zip(found[1], expected[1], strict=True):
        np.testing.assert_allclose(x, z, rtol=1e-10)


def test_equal_matrices_that_depend_on_different_arguments():
    a, y = positive(2), random_array("d", 2)
    of_x, of_z = irad.grad(equal_by_chance, argnums=(0, 1))(a, a.copy(), y)
    inverse = np.linalg.inv(a)
    outer = np.outer(inverse.T @ y, inverse @ y)
    np.testing.assert_allclose(of_x, -outer, rtol=1e-10)
    np.testing.assert_allclose(of_z, 2.0 * inverse.T - outer, rtol=1e-10)


def test_a_call_that_may_not_have_been_made():
    slopes = irad.grad(chosen)
    a, y = positive(3), random_array("d", 3)
    inverse = np.linalg.inv(a)
    of_solution = -np.outer(inverse[0], inverse @ y)
    np.testing.assert_allclose(slopes(a, y, False), of_solution, rtol=1e-9, atol=1e-14)
    np.testing.assert_allclose(slopes(a, y, True), of_solution + inverse.T, rtol=1e-9, atol=1e-14)


def test_a_singular_matrix_is_not_shared():
    a = np.ones((2, 2))
    for f in (chosen.py_func, irad.grad(chosen)):
        with pytest.raises(np.linalg.LinAlgError):
            f(a, np.ones(2), True)


def test_the_second_derivative():
    a, y, v = positive(3), random_array("d", 3), random_array("d", 3, 3)
    found = irad.hvp(density)(a, v, y)
    inverse = np.linalg.inv(a)
    turn = -inverse @ v @ inverse
    z, z_dot = inverse @ y, turn @ y
    expected = 0.5 * turn.T - 0.5 * (np.outer(inverse.T @ y, z_dot) + np.outer(turn.T @ y, z))
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-13)
