"""`irad.ode.solve` with the method "radau": stiff systems, mass matrices, and their derivatives."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.integrate
import scipy.linalg
from numba import njit

import irad
from irad.ode import radau, solve
from irad.ode.dense import put_between

ROBERTSON, VAN_DER_POL, HIRES, DRIVEN = range(4)


@njit
def problem(t, y, kind, p):
    """Stiff problems, as in Hairer, Wanner: Solving Ordinary Differential Equations II, IV.10."""
    found = np.empty(y.size)
    if kind == ROBERTSON:
        slow, back, fast = p[0] * y[0], p[1] * y[1] * y[2], p[2] * y[1] * y[1]
        found[0] = back - slow
        found[1] = slow - back - fast
        found[2] = fast
    elif kind == VAN_DER_POL:
        found[0] = y[1]
        found[1] = p[0] * ((1.0 - y[0] ** 2) * y[1]) - p[1] * y[0]
    elif kind == HIRES:
        found[0] = -1.71 * y[0] + 0.43 * y[1] + 8.32 * y[2] + p[0]
        found[1] = 1.71 * y[0] - 8.75 * y[1]
        found[2] = -10.03 * y[2] + 0.43 * y[3] + 0.035 * y[4]
        found[3] = 8.32 * y[1] + 1.71 * y[2] - 1.12 * y[3]
        found[4] = -1.745 * y[4] + 0.43 * y[5] + 0.43 * y[6]
        found[5] = -p[1] * y[5] * y[7] + 0.69 * y[3] + 1.71 * y[4] - 0.43 * y[5] + 0.69 * y[6]
        found[6] = p[1] * y[5] * y[7] - 1.81 * y[6]
        found[7] = -found[6]
    else:  # y = cos(t) if it begins there; a second state is driven by the first
        found[0] = -p[0] * (y[0] - np.cos(t)) - np.sin(t)
        found[1] = p[1] * y[0] - p[2] * y[1]
    return found


LEVELS = np.array([0.9, 1.8, 0.5, 0.5])


@njit
def falls(t, y, kind, p):
    """An event that each problem has once."""
    return y[0] - LEVELS[kind]


@njit
def total(y0, t1, p, kind, rtol, atol, weights):
    times = 0.3 * t1, t1
    found = solve(problem, y0, (0.0, t1), (kind, p), times, "radau", rtol, atol, event=falls, terminal=0, snapshots=7)
    return (found.y * weights).sum() + 0.01 * found.t_events.sum()


PROBLEMS = [
    (ROBERTSON, [1.0, 0.0, 0.0], 1e3, [0.04, 1e4, 3e7], [1.0, 1e4, 2.0]),
    (VAN_DER_POL, [2.0, 0.0], 500.0, [1e3, 1.0], [1.0, 100.0]),
    (HIRES, [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0057], 100.0, [0.0007, 280.0], [1.0, 2.0, 30.0, 1.0, 1.0, 0.5, 1, 1]),
    (DRIVEN, [1.0, 0.4], 2.0, [1e5, 0.5, 1.3], [0.0, 1.0]),
]


@pytest.fixture(scope="module")
def gradient():
    return irad.grad(total, argnums=(0, 1, 2))


def given_of(each, rtol):
    kind, y0, t1, p, weights = each
    return np.array(y0), t1, np.array(p), kind, rtol, 1e-5 * rtol, np.array(weights)


@pytest.mark.parametrize("each", PROBLEMS)
def test_values_and_derivatives(gradient, each):
    """Values are SciPy's; derivatives agree with differences at tight tolerances, and with each other at loose ones."""
    given = given_of(each, 1e-10)
    y0, t1, p, kind, _, _, weights = given
    truth = scipy.integrate.solve_ivp(
        problem.py_func,
        (0.0, t1),
        y0,
        "Radau",
        (0.3 * t1, t1),
        False,
        falls.py_func,
        args=(kind, p),
        rtol=1e-10,
        atol=1e-14,
    )
    assert truth.t_events[0].size == 1
    assert total(*given) == pytest.approx((truth.y.T * weights).sum() + 0.01 * truth.t_events[0][0], rel=1e-7)
    tangents = np.where(y0 == 0.0, 0.0, 0.1 * y0), 0.02 * t1, p * np.linspace(0.3, -0.2, p.size)
    sides = [total(*(x + h * v for x, v in zip(given, tangents, strict=False)), *given[3:]) for h in (1e-4, -1e-4)]
    for rtol, precision in ((1e-10, 1e-6), (1e-3, 0.1)):
        given = given_of(each, rtol)
        _, tangent = irad.jvp(total, given, (*tangents, None, None, None, None))
        pulled = sum(np.sum(a * b) for a, b in zip(gradient(*given), tangents, strict=True))
        assert tangent == pytest.approx((sides[0] - sides[1]) / 2e-4, rel=precision)
        assert tangent == pytest.approx(pulled, rel=1e-10)


def test_the_closed_form(gradient):
    """However stiff the first state is, it is a cosine, which drives the second one."""

    def closed(y1, a, b):
        def at(t):
            part = a * (b * np.cos(t) + np.sin(t)) / (1.0 + b * b)
            return part + (y1 - a * b / (1.0 + b * b)) * np.exp(-b * t)

        return at(0.6) + at(2.0)

    given, h = given_of(PROBLEMS[DRIVEN], 1e-9), 1e-30
    by_y0, _, by_p = gradient(*given)
    assert total(*given) == pytest.approx(closed(0.4, 0.5, 1.3) + 0.01 * np.pi / 3.0, rel=1e-8)
    assert by_y0[1] == pytest.approx(closed(0.4 + 1j * h, 0.5, 1.3).imag / h, rel=1e-8)
    assert by_p[1] == pytest.approx(closed(0.4, 0.5 + 1j * h, 1.3).imag / h, rel=1e-8)
    assert by_p[2] == pytest.approx(closed(0.4, 0.5, 1.3 + 1j * h).imag / h, rel=1e-8)


LINEAR, CONSTRAINED = range(2)


@njit
def with_mass(t, y, kind, p):
    if kind == LINEAR:
        return np.array([-p[0] * y[0] + p[1] * y[1], p[2] * y[0] - p[0] * y[1]])
    found = problem(t, y, ROBERTSON, p)
    found[2] = y[0] + y[1] + y[2] - 1.0
    return found


@njit
def slopes(t, y, kind, p):
    """The derivative by the state; an approximation of that of Robertson's problem."""
    if kind == LINEAR:
        return np.array([[-p[0], p[1]], [p[2], -p[0]]])
    a, b = p[1] * y[2], 2.0 * p[2] * y[1]
    return np.array([[-p[0], a, 0.95 * p[1] * y[1]], [p[0], -a - b, -p[1] * y[1]], [1.0, 1.0, 1.0]])


@njit
def weighed(y0, t1, p, mass, kind, rtol, weights):
    found = solve(
        with_mass, y0, (0.0, t1), (kind, p), None, "radau", rtol, 1e-5 * rtol, jac=slopes, mass=mass, snapshots=7
    )
    return (found.y * weights).sum()


@pytest.fixture(scope="module")
def mass_gradient():
    return irad.grad(weighed, argnums=(0, 1, 2, 3))


def test_a_mass_matrix(mass_gradient):
    """M y' = A y, y = exp(t M⁻¹ A) y0; all derivatives by complex steps in the closed form."""
    y0, t1, p, mass = np.array([1.0, 0.3]), 1.5, np.array([3.0, 0.5, 0.2]), np.array([[2.0, 0.5], [0.3, 1.0]])

    def closed(y0, t1, p, mass):
        matrix = np.array([[-p[0], p[1]], [p[2], -p[0]]])
        return np.array([1.0, 2.0]) @ scipy.linalg.expm(t1 * np.linalg.solve(mass, matrix)) @ y0

    given, h = (y0, t1, p, mass), 1e-30
    rest = LINEAR, 1e-10, np.array([1.0, 2.0])
    assert weighed(*given, *rest) == pytest.approx(closed(*given), rel=1e-9)
    for i, each in enumerate(mass_gradient(*given, *rest)):
        for place in np.ndindex(np.shape(each)):
            step = np.zeros(np.shape(each), complex)
            step[place] = 1j * h
            moved = [x + step if j == i else x + 0j for j, x in enumerate(given)]
            assert np.asarray(each)[place] == pytest.approx(closed(*moved).imag / h, rel=1e-8)
    assert weighed(y0, 0.0, p, mass, *rest) == y0 @ [1.0, 2.0]
    with pytest.raises(ValueError, match="solved over no time"):
        mass_gradient(y0, 0.0, p, mass, *rest)


@pytest.mark.slow
def test_second_derivatives():
    @njit
    def decay(t, y, rate):
        return np.array([-rate * y[0] * y[0]])

    @njit
    def left(rate):
        return solve(decay, np.array([1.0]), (0.0, 1.5), (rate,), method="radau", rtol=1e-10, atol=1e-12).y[-1, 0]

    slope, rate = irad.grad(left), 2.0  # of 1 / (1 + 1.5 rate)
    assert irad.grad(slope)(rate) == pytest.approx(4.5 / (1.0 + 1.5 * rate) ** 3, rel=1e-8)
    assert irad.jvp(slope, (rate,), (1.0,))[1] == pytest.approx(4.5 / (1.0 + 1.5 * rate) ** 3, rel=1e-8)


@pytest.mark.slow
def test_derivatives_of_a_derivative_that_is_zero():
    """The solution of the step's linear system is zero at once; its derivative is not."""

    @njit
    def decay(t, y, rate):
        return np.array([-rate * y[0] * y[0]])

    @njit
    def weighed(rate, weight):
        return weight * solve(decay, np.array([1.0]), (0.0, 1.5), (rate,), method="radau", rtol=1e-4).y[-1, 0]

    slope = irad.grad(weighed)
    assert irad.jvp(slope, (2.0, 0.0), (0.0, 1.0))[1] == pytest.approx(slope(2.0, 1.0), rel=1e-12)


@pytest.mark.slow
def test_a_diagonal_mass_matrix(mass_gradient):
    """A vector is the matrix with it as diagonal, in values and in all derivatives."""
    given, diagonal = (np.array([1.0, 0.3]), 1.5, np.array([3.0, 0.5, 0.2])), np.array([2.0, 0.7])
    rest = LINEAR, 1e-10, np.array([1.0, 2.0])
    assert weighed(*given, diagonal, *rest) == pytest.approx(weighed(*given, np.diag(diagonal), *rest), rel=1e-12)
    *found, by_diagonal = mass_gradient(*given, diagonal, *rest)
    *wanted, by_matrix = mass_gradient(*given, np.diag(diagonal), *rest)
    for one, other in zip((*found, by_diagonal), (*wanted, np.diag(by_matrix)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9)


def test_a_singular_mass_matrix(mass_gradient, gradient):
    """The sum of Robertson's three states is conserved: as an equation in place of the last one it changes nothing."""
    each = PROBLEMS[ROBERTSON]
    y0, t1, p, _, _, _, weights = given_of(each, 1e-9)
    mass = np.diag([1.0, 1.0, 0.0])
    given = y0, t1, p, mass, CONSTRAINED, 1e-9, weights
    truth = scipy.integrate.solve_ivp(
        problem.py_func, (0.0, t1), y0, "Radau", args=(ROBERTSON, p), rtol=1e-10, atol=1e-14
    ).y[:, -1]
    assert weighed(*given) == pytest.approx(truth @ weights, rel=1e-7)
    by_y0, by_t1, by_p, by_mass = mass_gradient(*given)
    for i, found in ((1, by_t1), (2, by_p)):
        for j in range(np.size(found)):
            step = 1e-4 * np.ravel(given[i])[j] * (np.eye(np.size(found))[j] if np.ndim(found) else 1.0)
            sides = [weighed(*[x + s * step if k == i else x for k, x in enumerate(given)]) for s in (1.0, -1.0)]
            assert np.ravel(found)[j] == pytest.approx((sides[0] - sides[1]) / (2.0 * np.max(np.abs(step))), rel=1e-5)
    # the rows of differential equations may be scaled, or the last state may have a share in them
    step = np.array([[1e-3, 2e-3, 1e-3], [1e-3, -1e-3, 2e-3], [0.0, 0.0, 0.0]])
    sides = [weighed(y0, t1, p, mass + s * step, CONSTRAINED, 1e-9, weights) for s in (0.1, -0.1)]
    assert (by_mass * step).sum() == pytest.approx((sides[0] - sides[1]) / 0.2, rel=1e-5)
    tangents = 0.1 * y0, 0.02 * t1, 0.1 * p, step
    _, tangent = irad.jvp(weighed, given, (*tangents, None, None, None))
    pulled = sum(np.sum(a * b) for a, b in zip((by_y0, by_t1, by_p, by_mass), tangents, strict=True))
    assert tangent == pytest.approx(pulled, rel=1e-9)
    with pytest.raises(ValueError, match="is not as large as the state"):
        weighed(y0, t1, p, mass[:2], CONSTRAINED, 1e-9, weights)


# Parts, in the interpreter.


def test_one_derivative_for_all_stages():
    """The real and the complex system are the whole one, and its transpose."""
    rng, n, h = np.random.default_rng(0), 4, 0.3
    matrix, right = rng.normal(size=(n, n)), rng.normal(size=4 * n)
    correct = radau._correcting(lambda system, right, turned: np.linalg.solve(system.T if turned else system, right))
    systems = [shift / h * np.eye(n) - matrix for shift in (radau._REAL, radau._COMPLEX)]
    whole = np.eye(4 * n)
    whole[: 3 * n, : 3 * n] -= h * np.kron(radau._STAGES, matrix)
    for turned in (False, True):
        found = correct(systems, h, right, turned)
        np.testing.assert_allclose((whole.T if turned else whole) @ found, right, rtol=1e-12)


def test_the_polynomial_passes_through_the_stages():
    dense = radau.radau(problem).dense
    kept, y, point = np.random.default_rng(1).normal(size=(4, 2)), np.array([1.0, 2.0]), np.empty(2)
    for share, change in zip(radau._NODES, kept, strict=False):
        put_between(point, y, y + kept[2], dense(0.0, 0.1, y, y + kept[2], kept, ()), share)
        np.testing.assert_allclose(point, y + change, rtol=1e-14)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"method": "rodas", "jac": slopes}, "jac of a differential equation is passed with the method rodas"),
        ({"method": "rodas", "mass": np.eye(2)}, "mass of a differential equation is passed with the method rodas"),
        ({"mass": np.zeros((2, 2, 2))}, "the mass matrix of a differential equation is"),
        ({"mass": np.eye(2) * 1j}, "the mass matrix of a differential equation is"),
        ({"adjoint": "continuous"}, "with the method radau"),
        ({"y0": np.ones((2, 1)), "mass": np.eye(2)}, "with a state that is not an array of doubles"),
        ({"y0": np.ones(2, np.float32), "jac": slopes}, "with a state that is not an array of doubles"),
        ({"jac": njit(lambda t, y, kind, p: y[0])}, "jac of a differential equation returns a float64"),
    ],
)
def test_refused(given, said):
    with pytest.raises(irad.SignatureError, match=said):
        solve(
            **{
                "f": with_mass,
                "y0": np.ones(2),
                "t_span": (0.0, 1.0),
                "args": (LINEAR, np.ones(3)),
                "method": "radau",
                **given,
            }
        )
