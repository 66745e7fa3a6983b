"""`easy_rule` in forward mode: against its reverse by dot product, and against closed forms."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numba import njit, prange

import irad
from irad import rules
from irad.frontend.custom import catalogue


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    before = {rule.target for rule in catalogue.rules()}
    yield
    for rule in catalogue.rules():
        if rule.target not in before:
            rules.remove(rule.target)


def agree(f: Any, arguments: tuple[Any, ...], directions: tuple[Any, ...]) -> None:
    """⟨1, J·dx⟩ = ⟨Jᵀ·1, dx⟩ for a function that returns a float, in each activity pattern."""
    positions = [i for i, direction in enumerate(directions) if direction is not None]
    patterns = [tuple(positions), *((i,) for i in positions)] if len(positions) > 1 else [tuple(positions)]
    for active in patterns:
        given = tuple(direction if i in active else None for i, direction in enumerate(directions))
        value, tangent = irad.jvp(f, arguments, given)
        gradients = irad.grad(f, argnums=active)(*arguments)
        expected = sum(np.sum(g * d) for g, d in zip(gradients, (directions[i] for i in active), strict=True))
        assert value == pytest.approx(f(*arguments), rel=1e-14)
        assert tangent == pytest.approx(expected, rel=1e-10)


RNG = np.random.default_rng(3)
A = RNG.normal(size=4)
DA = RNG.normal(size=4)
WEIGHTS = RNG.normal(size=(4, 4))


def test_numbers():
    @njit
    def area(width, height):
        return width * height

    rules.easy_rule(area, lambda w, h: 10.0 * h, lambda w, h, value: value / h)
    loss = njit(lambda w, h: area(w, h) * np.sin(h))
    agree(loss, (3.0, 4.0), (0.5, -0.25))
    assert irad.jvp(area, (3.0, 4.0), (1.0, None)) == (12.0, 40.0)


def test_a_number_from_an_array():
    @njit
    def norm(a):
        return np.sqrt((a * a).sum())

    rules.easy_rule(norm, lambda a, value: a / value)
    agree(njit(lambda a: norm(a) * a[0]), (A,), (DA,))


def test_an_array_from_a_number():
    @njit
    def powers(x):
        return np.array([x, x * x, x * x * x])

    rules.easy_rule(powers, lambda x: np.array([1.0, 2.0 * x, 3.0 * x * x]))
    value, tangent = irad.jvp(powers, (2.0,), (0.5,))
    np.testing.assert_array_equal(value, [2.0, 4.0, 8.0])
    np.testing.assert_array_equal(tangent, [0.5, 2.0, 6.0])
    agree(njit(lambda x: (powers(x) * powers(x)).sum()), (2.0,), (0.5,))


def test_a_jacobian_and_a_diagonal():
    weights = WEIGHTS

    @njit
    def mixed(a, b):
        return weights @ a + np.sin(b)

    rules.easy_rule(mixed, lambda a, b: weights, lambda a, b: np.cos(b))
    loss = njit(lambda a, b: (mixed(a, b) ** 2).sum())
    agree(loss, (A, 2.0 * A), (DA, DA[::-1].copy()))
    _, tangent = irad.jvp(mixed, (A, A), (DA, None))
    np.testing.assert_allclose(tangent, WEIGHTS @ DA, rtol=1e-14)


def test_a_tuple_of_results():
    @njit
    def several(a, k):
        return a * k, k * k, a.size, (a * a).sum()

    def by_a(a, k):
        return np.full(a.size, k), None, None, 2.0 * a

    rules.easy_rule(several, by_a, lambda a, k: (a, 2.0 * k, None, None))

    @njit
    def loss(a, k):
        y, z, n, s = several(a, k)
        return (y * y).sum() * z + n * s

    agree(loss, (A, 1.5), (DA, 0.7))


def test_an_argument_without_a_partial_is_constant():
    @njit
    def scaled(a, k):
        return a * k

    rules.easy_rule(scaled, lambda a, k: np.full(a.size, k), None)
    assert irad.jvp(njit(lambda a, k: scaled(a, k).sum()), (A, 3.0), (None, 1.0))[1] == 0.0
    agree(njit(lambda a, k: scaled(a, k).sum() * k), (A, 3.0), (DA, 0.7))


def test_complex_numbers():
    @njit
    def square(z):
        return z * z

    @njit
    def real_square(z):
        return (z * z).real

    rules.easy_rule(square, lambda z: 2.0 * z)
    rules.easy_rule(real_square, lambda z: 2.0 * z)
    z, dz = 1.5 - 0.5j, 0.25 + 2.0j
    assert irad.jvp(square, (z,), (dz,))[1] == pytest.approx(2.0 * z * dz, rel=1e-15)
    assert irad.jvp(real_square, (z,), (dz,))[1] == pytest.approx((2.0 * z * dz).real, rel=1e-15)
    loss = njit(lambda x, y: (square(x + 1j * y) * (2.0 - 3.0j)).real)
    agree(loss, (0.3, 0.7), (1.25, -0.5))


def test_complex_arrays():
    @njit
    def squares(z):
        return z * z

    rules.easy_rule(squares, lambda z: 2.0 * z)
    z, dz = A + 1j * DA, DA - 2j * A
    np.testing.assert_allclose(irad.jvp(squares, (z,), (dz,))[1], 2.0 * z * dz, rtol=1e-14)


def test_single_precision():
    @njit
    def cubes(a, k):
        return a**3 * k

    rules.easy_rule(cubes, lambda a, k: 3.0 * a**2 * k, lambda a, k: a**3)
    a, da = A.astype(np.float32), DA.astype(np.float32)
    value, tangent = irad.jvp(cubes, (a, np.float32(2.0)), (da, np.float32(0.5)))
    assert value.dtype == tangent.dtype == np.float32
    np.testing.assert_allclose(tangent, 6.0 * a**2 * da + 0.5 * a**3, rtol=1e-5)


def test_a_tangent_of_zero_does_not_meet_an_infinite_partial():
    @njit
    def root(x):
        return np.sqrt(x)

    rules.easy_rule(root, lambda x, value: 0.5 / value if value > 0.0 else np.inf)
    assert irad.jvp(njit(lambda x, y: root(x) + y), (0.0, 1.0), (0.0, 1.0)) == (1.0, 1.0)


def test_calls_in_loops():
    @njit
    def step(x, k):
        return np.sin(x) * k

    rules.easy_rule(step, lambda x, k: np.cos(x) * k, lambda x, k: np.sin(x))

    @njit
    def serial(x, k, n):
        for _ in range(n):
            x = step(x, k)
        return x

    agree(serial, (0.5, 1.25, 20), (1.0, 0.5, None))


@pytest.mark.parametrize("parallel", [False, True])
def test_calls_in_parallel_loops(parallel):
    @njit
    def weighted(x, k):
        return x * x * k

    rules.easy_rule(weighted, lambda x, k: 2.0 * x * k, lambda x, k: x * x)

    @njit(parallel=parallel)
    def total(x, k):
        y = np.empty_like(x)
        for i in prange(x.size):
            y[i] = weighted(x[i], k) * x[i]
        return y.sum()

    agree(total, (A, 1.5), (DA, 0.5))


def test_library_functions_and_nopython_callers():
    rules.easy_rule(np.linalg.det, lambda a, value: 10.0 * value * np.linalg.inv(a).T)
    push = irad.pushforward(njit(lambda a: np.linalg.det(a)))

    @njit
    def caller(a, da):
        return push(a, da)

    value, tangent = caller(WEIGHTS, np.eye(4))
    assert value == pytest.approx(np.linalg.det(WEIGHTS))
    assert tangent == pytest.approx(10.0 * value * np.trace(np.linalg.inv(WEIGHTS)))


def test_a_partial_of_the_wrong_dimension():
    @njit
    def double(a):
        return 2.0 * a

    rules.easy_rule(double, lambda a: np.ones((2, 2, 2)))
    with pytest.raises(irad.RuleError, match="has 3 dimensions; the result has 1, the argument 1"):
        irad.jvp(double, (A,), (DA,))
