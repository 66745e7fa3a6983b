"""`argmin` with constraints, on problems of Hock and Schittkowski, against closed forms and differences."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

import irad
from irad.implicit import argmin
from irad.implicit.constrained import _check_independent

INF = np.inf


@njit
def objective(x, problem):
    if problem == 6:
        return (1.0 - x[0]) ** 2
    if problem == 7:
        return np.log(1.0 + x[0] ** 2) - x[1]
    if problem in (14, 22):
        return (x[0] - 2.0) ** 2 + (x[1] - 1.0) ** 2
    if problem == 26:
        return (x[0] - x[1]) ** 2 + (x[1] - x[2]) ** 4
    if problem == 28:
        return (x[0] + x[1]) ** 2 + (x[1] + x[2]) ** 2
    if problem == 29:
        return -x[0] * x[1] * x[2]
    if problem == 33:
        return (x[0] - 1.0) * (x[0] - 2.0) * (x[0] - 3.0) + x[2]
    if problem == 35:
        return (
            9.0 - 8.0 * x[0] - 6.0 * x[1] - 4.0 * x[2] + 2.0 * x[0] ** 2 + 2.0 * x[1] ** 2 + x[2] ** 2
            + 2.0 * x[0] * x[1] + 2.0 * x[0] * x[2]
        )  # fmt: skip
    if problem == 43:
        return x[0] ** 2 + x[1] ** 2 + 2.0 * x[2] ** 2 + x[3] ** 2 - 5.0 * x[0] - 5.0 * x[1] - 21.0 * x[2] + 7.0 * x[3]
    if problem == 71:
        return x[0] * x[3] * (x[0] + x[1] + x[2]) + x[2]
    if problem == 76:
        return (
            x[0] ** 2 + 0.5 * x[1] ** 2 + x[2] ** 2 + 0.5 * x[3] ** 2 - x[0] * x[2] + x[2] * x[3]
            - x[0] - 3.0 * x[1] + x[2] - x[3]
        )  # fmt: skip
    if problem == LINEAR:
        return -x[0] - 2.0 * x[1]
    if problem in (WACHTER, FALLING):
        return x[0]
    return (x**2).sum()


@njit
def equations(x, problem):
    if problem == 6:
        return np.array([10.0 * (x[1] - x[0] ** 2)])
    if problem == 7:
        return np.array([(1.0 + x[0] ** 2) ** 2 + x[1] ** 2 - 4.0])
    if problem == 14:
        return np.array([x[0] - 2.0 * x[1] + 1.0])
    if problem == 26:
        return np.array([(1.0 + x[1] ** 2) * x[0] + x[2] ** 4 - 3.0])
    if problem == 28:
        return np.array([x[0] + 2.0 * x[1] + 3.0 * x[2] - 1.0])
    if problem == 71:
        return np.array([(x**2).sum() - 40.0])
    if problem == WACHTER:
        return np.array([x[0] ** 2 - x[1] - 1.0, x[0] - x[2] - 0.5])
    if problem == TWICE:
        return np.array([x[0] + x[1] - 1.0, 2.0 * x[0] + 2.0 * x[1] - 2.0])
    if problem == IMAGINARY:
        return np.array([x[0] ** 2 + x[1] ** 2 + 1.0])
    return np.zeros(0)


@njit
def inequalities(x, problem):
    if problem == 14:
        return np.array([1.0 - x[0] ** 2 / 4.0 - x[1] ** 2])
    if problem == 22:
        return np.array([2.0 - x[0] - x[1], x[1] - x[0] ** 2])
    if problem == 29:
        return np.array([48.0 - x[0] ** 2 - 2.0 * x[1] ** 2 - 4.0 * x[2] ** 2])
    if problem == 33:
        return np.array([x[2] ** 2 - x[1] ** 2 - x[0] ** 2, (x**2).sum() - 4.0])
    if problem == 35:
        return np.array([3.0 - x[0] - x[1] - 2.0 * x[2]])
    if problem == 43:
        square = (x**2).sum()
        return np.array([
            8.0 - square - x[0] + x[1] - x[2] + x[3],
            10.0 - square - x[1] ** 2 - x[3] ** 2 + x[0] + x[3],
            5.0 - square - x[0] ** 2 + x[3] ** 2 - 2.0 * x[0] + x[1] + x[3],
        ])  # fmt: skip
    if problem == 71:
        return np.array([x[0] * x[1] * x[2] * x[3] - 25.0])
    if problem == 76:
        return np.array([
            5.0 - x[0] - 2.0 * x[1] - x[2] - x[3],
            4.0 - 3.0 * x[0] - x[1] - 2.0 * x[2] + x[3],
            x[1] + 4.0 * x[2] - 1.5,
        ])  # fmt: skip
    if problem == LINEAR:
        return np.array([4.0 - x[0] - x[1], 3.0 - x[1]])
    if problem == TWICE:
        return np.array([x[0] - 0.6, 2.0 * x[0] - 1.2])
    if problem == APART:
        return np.array([x[0] - 1.0, -x[0] - 1.0])
    if problem == FREE:
        return np.array([10.0 + x[0]])
    return np.zeros(0)


LINEAR, WACHTER, TWICE, IMAGINARY, APART, FREE, FALLING = range(1000, 1007)
PROBLEMS = [  # the number, x0, lower and upper bounds, the solution
    (6, [-1.2, 1.0], None, None, [1.0, 1.0]),
    (7, [2.0, 2.0], None, None, [0.0, np.sqrt(3.0)]),
    (14, [2.0, 2.0], None, None, [(np.sqrt(7.0) - 1.0) / 2.0, (np.sqrt(7.0) + 1.0) / 4.0]),
    (22, [2.0, 2.0], None, None, [1.0, 1.0]),
    (26, [-2.6, 2.0, 2.0], None, None, [1.0, 1.0, 1.0]),
    (28, [-4.0, 1.0, 1.0], None, None, [0.5, -0.5, 0.5]),
    (29, [1.0, 1.0, 1.0], None, None, [4.0, 2.0 * np.sqrt(2.0), 2.0]),
    (33, [0.0, 0.0, 3.0], [0.0, 0.0, 0.0], [INF, INF, 5.0], [0.0, np.sqrt(2.0), np.sqrt(2.0)]),
    (35, [0.5] * 3, [0.0] * 3, None, [4.0 / 3.0, 7.0 / 9.0, 4.0 / 9.0]),
    (43, [0.0] * 4, None, None, [0.0, 1.0, 2.0, -1.0]),
    (71, [1.0, 5.0, 5.0, 1.0], [1.0] * 4, [5.0] * 4, [1.0, 4.74299964, 3.82114998, 1.37940829]),
    (76, [0.5] * 4, [0.0] * 4, None, [3.0 / 11.0, 23.0 / 11.0, 0.0, 6.0 / 11.0]),
    (LINEAR, [0.0, 0.0], [0.0, 0.0], None, [1.0, 3.0]),
    (WACHTER, [2.0, 3.0, 1.0], [-INF, 0.0, 0.0], None, [1.0, 0.0, 0.5]),
    (TWICE, [3.0, 2.0], None, None, [0.6, 0.4]),
    (FREE, [3.0, 2.0], None, None, [0.0, 0.0]),
]


def check_conditions(found, problem, low, high):
    """Of Karush, Kuhn and Tucker, with the gradient of the Lagrangian by differences."""
    x, y, z = found.x, found.y, found.z
    g, h, step = equations(x, problem), inequalities(x, problem), 1e-5
    assert np.abs(g).max(initial=0.0) <= 1e-10
    assert h.min(initial=0.0) >= -1e-10
    assert z.min(initial=0.0) >= 0.0
    assert np.abs(z * h).max(initial=0.0) <= 1e-9
    for i, unit in enumerate(np.eye(x.size)):
        parts = [
            objective(at, problem) + y @ equations(at, problem) - z @ inequalities(at, problem)
            for at in (x + step * unit, x - step * unit)
        ]
        slope = (parts[0] - parts[1]) / (2.0 * step)
        assert low[i] <= x[i] <= high[i]
        assert slope >= -1e-6 or x[i] == high[i]
        assert slope <= 1e-6 or x[i] == low[i]


def test_problems():
    def solved(problem, start, low=None, high=None, rtol=1e-10):
        low = np.full(len(start), -INF) if low is None else np.array(low)
        high = np.full(len(start), INF) if high is None else np.array(high)
        given = {"equality": equations, "inequality": inequalities, "bounds": (low, high)}
        return argmin(objective, np.array(start), problem, **given, rtol=rtol, full_output=True), low, high

    for problem, start, low, high, expected in PROBLEMS:
        found, low, high = solved(problem, start, low, high)
        if problem == 26:
            # The Hessian is singular there, so that Newton's steps leave 2/3 of the error each. At an error of 4e-9 the
            # fourth power is as large as the square of the rounding of the unknowns: no step to rtol=1e-10 is better.
            np.testing.assert_allclose(found.x, expected, atol=1e-7)
            found = solved(problem, start, rtol=1e-7)[0]
            assert found.success
            np.testing.assert_allclose(found.x, expected, atol=1e-6)
            continue
        assert found.success, problem
        np.testing.assert_allclose(found.x, expected, atol=5e-9, err_msg=str(problem))
        check_conditions(found, problem, low, high)
        assert found.nit < found.nfev < 300
    for problem in (IMAGINARY, APART, FALLING):
        assert not solved(problem, [1.0, 2.0])[0].success


@njit
def near(x, p, b, r):
    return ((x - p) ** 2).sum() / 2.0 + 0.1 * (x**4).sum()


@njit
def surface(x, p, b, r):
    return x[0] + x[1] * x[2] - b


@njit
def rooms(x, p, b, r):
    room = r**2 - x[0] ** 2 - x[1] ** 2
    return room, x[2] + 9.0 * r, 2.0 * room + b - 0.8  # the last is the first once more if b is 0.8


@njit
def pooled(p, b, r, upper):
    found = argmin(
        near, np.ones(4), (p, b, r), equality=surface, inequality=rooms, bounds=(None, upper), full_output=True
    )
    return found.x[0] - 2.0 * found.x[1] + 0.5 * found.x[2] + found.x[3] + found.y[0] ** 2 + 0.3 * found.z.sum()


GIVEN = np.array([1.2, 0.9, 0.5, 2.0]), 0.9, 0.7, np.array([3.0, 3.0, 3.0, 1.1])
CHANGE = tuple(np.random.default_rng(4).normal(size=np.shape(each))[()] for each in GIVEN)


def difference(value_of, h=1e-6):
    """Along the change, of a value that some derivative returns, so that nothing else is compiled."""
    moved = [tuple(one + sign * h * other for one, other in zip(GIVEN, CHANGE, strict=True)) for sign in (1, -1)]
    return (value_of(*moved[0]) - value_of(*moved[1])) / (2.0 * h)


def test_reverse():
    both = irad.value_and_grad(pooled, argnums=(0, 1, 2, 3))
    gradient = both(*GIVEN)[1]
    assert gradient[3][3] != 0.0
    slope = sum(np.sum(one * other) for one, other in zip(gradient, CHANGE, strict=True))
    assert slope == pytest.approx(difference(lambda *given: both(*given)[0]), rel=1e-6)
    with pytest.raises(ValueError, match="active constraints depend on each other"):
        both(GIVEN[0], 0.8, *GIVEN[2:])


def test_forward():
    slope = irad.jvp(pooled, GIVEN, CHANGE)[1]
    assert slope == pytest.approx(difference(lambda *given: irad.jvp(pooled, given, CHANGE)[0]), rel=1e-6)


@njit
def square(x, p):
    return (x - p) ** 2


@njit
def reach(x, p):
    return p + 1.0 - x * x


@njit
def squares(x, p):
    return (x[0] - p) ** 2 + ((x[1] - p) ** 2).sum()


@njit
def excess(x, p):
    return x[0] + x[1].sum() - 1.0


@njit
def of_other_kinds(p):
    number = argmin(square, np.float32(0.5), (p,), inequality=reach)
    return number, argmin(squares, (0, np.zeros((2, 3), np.float32)), (p,), equality=excess)


def test_unknowns_that_are_no_vectors():
    number, (first, table) = of_other_kinds(3.0)
    assert number == pytest.approx(2.0, rel=1e-12)
    assert first == pytest.approx(1.0 / 7.0, rel=1e-12)
    assert table.dtype == np.float64
    np.testing.assert_allclose(table, np.full((2, 3), 1.0 / 7.0), rtol=1e-12)
    with pytest.raises(ValueError, match="no point that satisfies the constraints"):
        of_other_kinds(-2.0)


@njit
def distance(x, point, radius):
    return ((x - point) ** 2).sum()


@njit
def disc(x, point, radius):
    return radius**2 - (x**2).sum()


def test_second_derivatives():
    """Of the point of a disc that is nearest to another point."""

    @njit
    def of_minimum(point, radius):
        x = argmin(distance, np.zeros(2), (point, radius), inequality=disc)
        return (x[0] - 2.0 * x[1]) ** 2

    @njit
    def of_formula(point, radius):
        x = radius * point / np.sqrt((point**2).sum())
        return (x[0] - 2.0 * x[1]) ** 2

    given, change = (np.array([1.5, 2.0]), 1.2), (np.array([0.3, -0.7]), 0.4)
    for found, wanted in zip(*(irad.jvp(irad.grad(f), given, change) for f in (of_minimum, of_formula)), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-9)


def conditions_of(rows, fixed=()):
    """The matrix of a derivative, for equations with these rows and unknowns at bounds."""
    n = rows.shape[1]
    found = np.block([[np.eye(n), rows.T], [rows, np.zeros((rows.shape[0],) * 2)]])
    for i in fixed:
        found[i] = np.eye(found.shape[0])[i]
    return found, n


def test_constraints_that_depend_on_each_other():
    check = njit(lambda matrix, n: _check_independent(matrix, n))
    check(*conditions_of(np.array([[1.0, 1.0], [1.0, -1.0]])))
    check(*conditions_of(np.array([[1e-9, 1.0], [1e-9, -1e12]])))  # units do not matter
    check(*conditions_of(np.array([[1.0, 1.0]]), fixed=(0,)))
    for rows, fixed in (
        ([[1.0, 1.0], [2.0, 2.0]], ()),
        ([[1.0, 0.0]], (0,)),
        ([[1.0, 1.0], [1.0, -1.0]], (1,)),
        ([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], ()),
    ):
        with pytest.raises(ValueError, match="active constraints depend on each other or on bounds"):
            check(*conditions_of(np.array(rows), fixed))


def test_constraints_that_are_refused():
    with pytest.raises(irad.SignatureError, match="method='l-bfgs' with constraints"):
        argmin(objective, np.ones(2), 6, equality=equations, method="l-bfgs")
    with pytest.raises(irad.SignatureError, match=r"a constraint of argmin returns .*complex128"):
        argmin(objective, np.ones(2), 6, inequality=njit(lambda x, problem: 1j * x[0]))
    with pytest.raises(irad.SignatureError, match="a constraint of argmin returns None"):
        argmin(objective, np.ones(2), 6, inequality=njit(lambda x, problem: None))
    with pytest.raises(irad.SignatureError, match=r"starts from .*complex128"):
        argmin(objective, 1j * np.ones(2), 6, equality=equations)
