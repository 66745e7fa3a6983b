"""`quadratic_program` against the conditions of Karush, Kuhn and Tucker, closed forms and differences."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit
from scipy.optimize import linprog

import irad
from irad.implicit import quadratic_program


def check_conditions(found, P, q, A, b, G, h):
    x, y, z = found
    forces = np.abs(P).sum() + np.abs(q).sum()
    np.testing.assert_allclose((P + P.T) @ x / 2.0 + q + A.T @ y + G.T @ z, 0.0, atol=1e-9 * forces)
    np.testing.assert_allclose(A @ x, b, atol=1e-9 * (1.0 + np.abs(x).max()))
    slacks = h - G @ x
    assert (slacks >= -1e-9 * (1.0 + np.abs(h).max(initial=0.0))).all()
    assert (z >= 0.0).all()
    assert np.abs(z * slacks).max(initial=0.0) <= 1e-8 * forces * (1.0 + np.abs(x).max())


def random_program(rng, n, equations, inequalities, rank):
    root = rng.normal(size=(rank, n))
    A, G = rng.normal(size=(equations, n)), rng.normal(size=(inequalities, n))
    inside = rng.normal(size=n)
    return root.T @ root, rng.normal(size=n), A, A @ inside, G, G @ inside + rng.random(inequalities)


@pytest.mark.slow
def test_conditions():
    rng = np.random.default_rng(8)
    for n, equations, inequalities in ((1, 0, 1), (3, 0, 0), (4, 2, 0), (5, 0, 8), (8, 3, 12), (20, 5, 40)):
        for unit in (1.0, 1e-6, 1e6):
            P, q, A, b, G, h = random_program(rng, n, equations, inequalities, n)
            given = unit * P, unit * q, A, b, 1e3 * G, 1e3 * h
            check_conditions(quadratic_program(*given), *given)
    box = np.concatenate([np.eye(6), -np.eye(6)])
    for _ in range(5):  # linear programs in a box
        q, A = rng.normal(size=6), rng.normal(size=(2, 6))
        given = np.zeros((6, 6)), q, A, A @ np.full(6, 0.3), box, np.ones(12)
        expected = linprog(q, A_eq=A, b_eq=A @ np.full(6, 0.3), bounds=[(-1, 1)] * 6)
        np.testing.assert_allclose(quadratic_program(*given).x, expected.x, atol=1e-8)


@njit
def pooled(P, q, A, b, G, h, weights):
    x, y, z = quadratic_program(P, q, A, b, G, h)
    return (x * weights[: x.size]).sum() + (y**2).sum() + (z * z).sum()


PROGRAM = random_program(np.random.default_rng(11), 4, 1, 5, 4)
WEIGHTS = np.array([1.0, -2.0, 0.5, 1.5])


@pytest.mark.slow
def test_first_order():
    active = quadratic_program(*PROGRAM).z > 0.0
    assert 0 < active.sum() < 5
    gradient = irad.grad(pooled, argnums=tuple(range(6)))(*PROGRAM, WEIGHTS)
    rng, h = np.random.default_rng(12), 1e-6
    tangents = [rng.normal(size=each.shape) for each in PROGRAM]
    moved = [
        pooled(*[each + sign * h * change for each, change in zip(PROGRAM, tangents, strict=True)], WEIGHTS)
        for sign in (1.0, -1.0)
    ]
    slope = sum((one * other).sum() for one, other in zip(gradient, tangents, strict=True))
    assert slope == pytest.approx((moved[0] - moved[1]) / (2.0 * h), rel=1e-6)
    assert irad.jvp(pooled, (*PROGRAM, WEIGHTS), (*tangents, None))[1] == pytest.approx(slope, rel=1e-9)


@njit
def largest_share(budget):
    """Of x² + 2 y² - 4 x with x + y = budget and x <= 1: y = budget - 1 from a budget of 1/3 on, so f = 2 y²."""
    P, q, ones = np.diag(np.array([2.0, 4.0])), np.array([-4.0, 0.0]), np.ones((1, 2))
    found = quadratic_program(P, q, ones, np.full(1, budget), np.array([[1.0, 0.0]]), np.ones(1))
    return found.x[1] ** 2 * 2.0


@pytest.mark.slow
def test_second_order():
    assert irad.grad(largest_share)(2.0) == pytest.approx(4.0)
    assert irad.grad(irad.grad(largest_share))(2.0) == pytest.approx(4.0)


@pytest.mark.slow
def test_a_degenerate_program():
    def nearest(p):
        return quadratic_program(np.eye(1), -p, None, None, -np.eye(1), np.zeros(1)).x

    jacobian = irad.jacobian(nearest)
    np.testing.assert_allclose(jacobian(np.array([1.0])), [[1.0]], rtol=1e-12)
    np.testing.assert_allclose(jacobian(np.array([-1.0])), [[0.0]], atol=1e-12)
    np.testing.assert_allclose(nearest(np.zeros(1)), 0.0, atol=1e-12)
    assert min(abs(jacobian(np.zeros(1))[0, 0] - side) for side in (0.0, 1.0)) < 1e-9


@pytest.mark.slow
def test_programs_without_a_minimum():
    one = np.ones((1, 1))
    for contradicting in (
        (one, np.ones(1), None, None, np.array([[1.0], [-1.0]]), np.array([-1.0, -1.0])),
        (0.0 * one, np.ones(1), None, None, one, np.ones(1)),  # falls forever
    ):
        with pytest.raises(ValueError, match="found no minimum"):
            quadratic_program(*contradicting)
        assert not quadratic_program(*contradicting, full_output=True).success
    for wrong in (
        (np.eye(2), np.ones(3)),
        (np.eye(2), np.ones(2), np.ones((1, 3)), np.ones(1)),
        (np.eye(2), np.ones(2), None, None, np.ones((2, 2)), np.ones(1)),
        (np.eye(2), np.ones(2), np.ones((1, 2))),
    ):
        with pytest.raises(ValueError, match="do not fit together"):
            quadratic_program(*wrong)
    with pytest.raises(ValueError, match="not finite"):
        quadratic_program(np.eye(2), np.array([np.nan, 1.0]))
    with pytest.raises(irad.SignatureError, match="P is an array of float64 with 1 axes"):
        quadratic_program(np.ones(2), np.ones(2))
    with pytest.raises(irad.SignatureError, match="quadratic_program: G is"):
        njit(lambda p: quadratic_program(np.eye(2), p, G=p, h=p).x)(np.ones(2))
