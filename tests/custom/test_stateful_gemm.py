"""The example of a rule with workspace: the product of matrices that overwrites c, with both policies."""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import njit

import irad
from irad import rules
from irad.testing.allocations import allocations

_SOURCE = Path(__file__).parents[2] / "docs" / "programs" / "stateful_gemm.py"


def _load() -> Any:
    spec = importlib.util.spec_from_file_location("stateful_gemm", _SOURCE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_example = _load()
POLICIES = {"leaving": _example.gemm, "restoring": _example.gemm_restoring}


@pytest.fixture(autouse=True, scope="session")  # of a module: tests of it that came later would have no rule
def _registered() -> Iterator[None]:
    yield
    for gemm in POLICIES.values():
        rules.close(gemm)
        rules.remove(gemm)


def _once(gemm: Any) -> Any:
    @njit(nogil=True)
    def f(c, a, b, alpha, beta):
        gemm(c, a, b, alpha, beta)
        return (c * c).sum()

    return f


def _chain(gemm: Any) -> Any:
    """The same c again and again, an operand that is overwritten, and a read of c between the products."""

    @njit
    def f(c, a, b, alpha, beta, n):
        total = c.dtype.type(0.0)
        for _ in range(n):
            gemm(c, a, b, alpha, beta)
            a[0, 0] += c[0, 0]
            b *= alpha
            total += c[-1, -1] * c[0, 0]
        return total

    return f


def _recursive(gemm: Any) -> Any:
    @njit
    def f(c, a, alpha, beta, depth):
        if depth == 0:
            return c.sum()
        gemm(c, a, a, alpha, beta)
        a[0, 0] += c[0, 1]
        return f(c, a, alpha, beta, depth - 1) + c[0, 0]

    return f


ONCE = {policy: _once(gemm) for policy, gemm in POLICIES.items()}


def gradients_of_once(c: Any, a: Any, b: Any, alpha: float, beta: float) -> tuple[Any, ...]:
    """By hand."""
    product = a @ b
    by_result = 2 * (alpha * product + beta * c)
    by_a, by_b = alpha * by_result @ b.T, alpha * a.T @ by_result
    return beta * by_result, by_a, by_b, (by_result * product).sum(), (by_result * c).sum()


def matrices(m: int, k: int, n: int, dtype: Any = np.float64) -> list[Any]:
    random = np.random.default_rng(m + 10 * k + 100 * n)
    return [random.standard_normal(shape).astype(dtype) for shape in ((m, n), (m, k), (k, n))]


@pytest.mark.parametrize(
    ("policy", "dtype"), [("leaving", np.float64), ("restoring", np.float64), ("restoring", np.float32)]
)
def test_gradient_and_memory(policy, dtype):
    derivative = irad.value_and_grad(ONCE[policy], argnums=(0, 1, 2, 3, 4))
    tolerance = 1e-12 if dtype is np.float64 else 1e-4
    for shape in ((4, 5, 3), (1, 1, 1), (7, 2, 9), (3, 0, 2), (0, 2, 2), (4, 5, 3)):
        for alpha, beta in ((1.0, 0.0), (0.7, 0.0), (0.7, 0.5), (0.0, 1.0)):
            c, a, b = matrices(*shape, dtype)
            mine, result = c.copy(), alpha * a @ b + beta * c
            value, gradients = derivative(mine, a, b, dtype(alpha), dtype(beta))
            np.testing.assert_allclose(value, (result**2).sum(), tolerance, tolerance)
            for found, right in zip(gradients, gradients_of_once(c, a, b, alpha, beta), strict=True):
                np.testing.assert_allclose(found, right, tolerance, tolerance)
                assert np.asarray(found).dtype == dtype
            np.testing.assert_allclose(mine, c if policy == "restoring" else result, tolerance, tolerance)


def check(f: Any, arguments: tuple[Any, ...], rest: tuple[Any, ...], gradients: tuple[Any, ...]) -> list[Any]:
    """Compares gradients with a central difference along a random direction.

    Returns:
        The arguments as the plain call leaves them.
    """
    random = np.random.default_rng(1)
    along = [random.standard_normal(np.shape(each)) for each in arguments]

    def moved(step: float) -> list[Any]:
        return [each + step * direction for each, direction in zip(arguments, along, strict=True)]

    step = 1e-6
    difference = (f(*moved(step), *rest) - f(*moved(-step), *rest)) / (2 * step)
    found = sum((gradient * direction).sum() for gradient, direction in zip(gradients, along, strict=True))
    np.testing.assert_allclose(found, difference, 1e-7)
    final = moved(0.0)
    f(*final, *rest)
    return final


@pytest.mark.parametrize("policy", POLICIES)
def test_a_loop_over_the_same_matrix(policy):
    f = _chain(POLICIES[policy])
    derivative = irad.grad(f, argnums=(0, 1, 2, 3, 4))
    for count in (3, 5, 0, 1):
        arguments = (*matrices(3, 4, 2), np.float64(0.8), np.float64(0.5))
        mine = [each.copy() for each in arguments]
        final = check(f, arguments, (count,), derivative(*mine, count))
        np.testing.assert_array_equal(mine[0], arguments[0] if policy == "restoring" else final[0])
        np.testing.assert_array_equal(mine[1], final[1])
    assert rules.workspace(derivative) == rules.Workspace(0, 5)


def test_recursion_with_one_matrix_as_both_operands():
    f = _recursive(POLICIES["restoring"])
    derivative = irad.grad(f, argnums=(0, 1, 2, 3))
    for depth in (2, 4):
        c, a, _ = matrices(3, 3, 3)
        arguments = c, 0.3 * a, np.float64(0.9), np.float64(0.5)
        mine = [each.copy() for each in arguments]
        final = check(f, arguments, (depth,), derivative(*mine, depth))
        np.testing.assert_array_equal(mine[0], c)
        np.testing.assert_array_equal(mine[1], final[1])


def test_an_overlap_with_the_result_is_refused():
    f = ONCE["restoring"]
    _, a, b = matrices(3, 3, 3)
    before = rules.workspace(f).in_use
    for c in (a, b):
        with pytest.raises(ValueError, match="shares memory"):
            f(c, a, b, 1.0, 0.0)
        with pytest.raises(ValueError, match="shares memory"):
            irad.value_and_grad(f, argnums=(0, 1, 2, 3, 4))(c, a, b, 1.0, 0.0)
    assert rules.workspace(f).in_use == before


def test_a_pullback_runs_again():
    c, a, b = matrices(3, 4, 2)
    mine, expected = c.copy(), gradients_of_once(c, a, b, 0.7, 0.5)
    _, pullback = irad.vjp(ONCE["restoring"], mine, a.copy(), b.copy(), 0.7, 0.5)
    for scale in (1.0, -2.0):
        mine[:] = 7.0  # the caller's business, until the pullback restores
        for found, right in zip(pullback(scale), expected, strict=True):
            np.testing.assert_allclose(found, scale * np.asarray(right), 1e-12)
        np.testing.assert_array_equal(mine, c)


def test_a_pullback_runs_again_over_restored_memory():
    """What the second run reads of c is not what the first run has put back there."""
    gemm = POLICIES["restoring"]

    @njit
    def called(c, a, b, depth):
        if depth > 0:
            gemm(c, a, b, 1.0, 0.0)
            called(c, a, b, depth - 1)

    @njit
    def f(a, b):
        c, d, e = np.zeros_like(a), np.zeros_like(a), np.zeros_like(a)
        gemm(c, a, b, 1.0, 0.0)
        gemm(d, c, b, 1.0, 0.0)
        called(e, d, a, 1)
        return (c * d).sum() + (e * e * d).sum()

    def plain(a, b):
        c = a @ b
        d = c @ b
        e = d @ a
        return (c * d).sum() + (e * e * d).sum()

    _, a, b = matrices(3, 3, 3)
    _, pullback = irad.vjp(f, a, b)
    first, again = pullback(1.0), pullback(1.0)
    step = 1e-6
    for number, (found, same) in enumerate(zip(first, again, strict=True)):
        np.testing.assert_array_equal(found, same)
        moved = [[each + sign * step * (i == number) for i, each in enumerate((a, b))] for sign in (1, -1)]
        difference = (plain(*moved[0]) - plain(*moved[1])) / (2 * step)
        np.testing.assert_allclose(found.sum(), difference, 1e-6)


def test_threads():
    derivative = irad.value_and_grad(ONCE["restoring"], argnums=(0, 1, 2, 3, 4))
    derivative(*matrices(1, 1, 1), 0.7, 0.5)
    wrong: list[int] = []

    def work(number: int) -> None:
        c, a, b = matrices(2 + number, 3, 4)
        old, expected = c.copy(), gradients_of_once(c, a, b, 0.7, 0.5)
        for _ in range(300):
            _, found = derivative(c, a, b, 0.7, 0.5)
            good = all(np.allclose(left, right) for left, right in zip(found, expected, strict=True))
            if not (good and np.array_equal(c, old)):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_nothing_is_allocated_from_the_second_call_on():
    f = ONCE["restoring"]
    rules.close(f)
    arguments = [irad.Duplicated(each, np.zeros_like(each)) for each in matrices(16, 32, 8)]

    def gradient() -> Any:
        for each in arguments:
            each.shadow[:] = 0.0
        return irad.autodiff(irad.Reverse, f, *arguments, irad.Active(0.7), irad.Active(0.5))

    first = gradient()
    rules.close(f)
    counts = []
    for _ in range(4):
        with allocations() as count:
            assert gradient()[3:] == first[3:]
            counts.append(count().made)
    others = 6 + 1  # headers that Numba gives to arrays from Python; c·c in the function itself
    assert counts == [others + 1 + 4 + 2, others, others, others]  # the slot, its empty buffers, those that fit
