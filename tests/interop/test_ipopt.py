"""The bridge to Ipopt: derivatives against dense ones and its own checker, errors, a trajectory of 10⁴ variables."""

from __future__ import annotations

import time
import tracemalloc

import numpy as np
import pytest
from numba import njit
from numba.core.runtime import rtsys

import irad
from irad.testing.allocations import allocations

pytest.importorskip("cyipopt", reason="cyipopt is an extra: nox -s bridges")
from irad.interop import ipopt

QUIET = {"print_level": 0, "sb": "yes"}
X0 = np.array([1.0, 5.0, 5.0, 1.0])


def cost(x):
    return x[0] * x[3] * (x[0] + x[1] + x[2]) + x[2]


def limits(x):
    return np.array([np.prod(x), np.sum(x**2)])


@njit
def swing_cost(z, step):
    total = 0.0
    for torque in z[2 * (z.size // 3) :]:
        total += torque**2
    return step * total


@njit
def defects(out, z, step):
    """A pendulum with a torque by the trapezoidal rule: angles, speeds and torques in one vector."""
    n = z.size // 3
    angle, speed, torque = z[:n], z[n : 2 * n], z[2 * n :]
    for i in range(n - 1):
        out[i] = angle[i + 1] - angle[i] - 0.5 * step * (speed[i] + speed[i + 1])
        rates = torque[i] - np.sin(angle[i]) + torque[i + 1] - np.sin(angle[i + 1])
        out[n - 1 + i] = speed[i + 1] - speed[i] - 0.5 * step * rates


def swing(n, **more):
    """The swing to the top in 4 seconds with little effort, and where to start."""
    lower, upper = np.full(3 * n, -np.inf), np.full(3 * n, np.inf)
    lower[2 * n :], upper[2 * n :] = -1.5, 1.5
    for at, value in ((0, 0.0), (n - 1, np.pi), (n, 0.0), (2 * n - 1, 0.0)):
        lower[at] = upper[at] = value
    start = np.concatenate([np.linspace(0.0, np.pi, n), np.full(n, 0.5), np.zeros(n)])
    step = 4.0 / (n - 1)
    made = ipopt.problem(
        swing_cost, defects, (lower, upper), (0.0, 0.0), x0=start, args=(step,), writes=2 * (n - 1), **more
    )
    return made, start, step


def solved(program, start, **options):
    for name, value in (QUIET | options).items():
        program.add_option(name, value)
    return program.solve(start)


def test_a_known_problem_with_bounds_of_each_kind(capfd):
    """Hock and Schittkowski's number 71; Ipopt compares all derivatives with differences."""
    program = ipopt.problem(cost, limits, (1.0, [5.0, 5.0, 5.0, 5.0]), ([25.0, 40.0], [np.inf, 40.0]), x0=X0)
    x, info = solved(program, X0, derivative_test="second-order", print_level=4)
    np.testing.assert_allclose(x, [1.0, 4.742999637, 3.821149979, 1.379408293], rtol=1e-7)
    assert info["status"] == 0
    assert "No errors detected by derivative checker" in capfd.readouterr().out
    fewer = ipopt.problem(cost, limits, (1.0, 5.0), ([25.0, 40.0], [np.inf, 40.0]), x0=X0, hessian=False)
    np.testing.assert_allclose(solved(fewer, X0)[0], x, rtol=1e-6)


def test_derivatives_are_those_of_dense_ones(capfd):
    n = 8
    program, start, step = swing(n)
    z = start + 0.1 * np.sin(np.arange(3.0 * n))
    slopes = np.zeros((2 * (n - 1), 3 * n))
    slopes[program.jacobianstructure()] = program.jacobian(z)
    np.testing.assert_allclose(slopes, irad.jacobian(defects, 1, outputs=0)(np.empty(2 * (n - 1)), z, step), atol=1e-14)
    np.testing.assert_allclose(program.gradient(z), irad.grad(swing_cost)(z, step), rtol=1e-14)
    multipliers = np.linspace(-1.0, 2.0, 2 * (n - 1))

    @njit
    def lagrangian(z, factor):
        out = np.empty(2 * (n - 1))
        defects(out, z, step)
        return factor * swing_cost(z, step) + (multipliers * out).sum()

    rows, columns = program.hessianstructure()
    assert (rows >= columns).all()
    for factor in (0.0, 0.7):
        curvatures = np.zeros((3 * n, 3 * n))
        curvatures[rows, columns] = program.hessian(z, multipliers, factor)
        np.testing.assert_allclose(curvatures, np.tril(irad.hessian(lagrangian)(z, factor)), atol=1e-14)
    _, info = solved(program, start, derivative_test="second-order", print_level=4)
    assert info["status"] == 0
    assert "No errors detected by derivative checker" in capfd.readouterr().out


def test_nothing_is_allocated_from_the_second_call_on():
    program, z, _ = swing(4000)
    multipliers = np.ones(program.constraints(z).size)
    entries = 1 + 4 + 1  # an array for these, the plan, scratch memory
    for call, passed in (
        (lambda: program.gradient(z), 2),
        (lambda: program.constraints(z), 2),
        (lambda: program.jacobian(z), entries + 2),
        (lambda: program.hessian(z, multipliers, 1.0), entries + 3),
    ):
        call()
        with allocations():
            before = rtsys.get_allocation_stats().alloc
            call()
            headers = rtsys.get_allocation_stats().alloc - before
        tracemalloc.start()
        start, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        call()
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak - start < 4000
        assert headers == passed  # Numba has one for each array that Python passes


def test_without_constraints_without_curvature_and_one_number():
    program = ipopt.problem(lambda x: np.sum((x - 3.0) ** 4) + x[0] * x[1], None, (None, 2.5), x0=np.zeros(3))
    x, info = solved(program, np.ones(3))
    assert (info["status"], x[2]) == (0, pytest.approx(2.5))

    def plane(x, slope):
        return slope * x[0] + x[1]

    flat = ipopt.problem(plane, lambda x, slope: x[0] + 2.0 * x[1], (0.0, 4.0), (2.0, None), x0=np.ones(2), args=(3.0,))
    assert flat.hessianstructure()[0].size == 0
    np.testing.assert_allclose(solved(flat, np.ones(2))[0], [0.0, 1.0], atol=1e-6)


def test_what_functions_raise_reaches_the_user():
    def raising(x, limit):
        if x[0] > limit:
            raise ValueError("beyond the table")
        return (x[0] - 3.0) ** 2 + x[1] ** 2

    program = ipopt.problem(raising, x0=np.zeros(2), args=(1.0,))
    for _ in range(2):  # the second time as the first
        with pytest.raises(ValueError, match="beyond the table"):
            solved(program, np.zeros(2))
    calls = []

    def intermediate(*given):
        calls.append(given[1])
        if len(calls) == 3:
            raise KeyError("enough")
        return True

    watched = ipopt.problem(cost, limits, (1.0, 5.0), ([25.0, 40.0], [np.inf, 40.0]), x0=X0, intermediate=intermediate)
    with pytest.raises(KeyError, match="enough"):
        solved(watched, X0)
    assert calls == [0, 1, 2]
    assert solved(watched, X0)[1]["status"] == 0  # it can be solved again

    def kinked(x):
        total = x[0] ** 2 + x[1] ** 2
        if x[0] > 0.5:
            for i in range(1, x.size):  # a loop stays a branch
                total += x[0] * x[i] ** 3
        return total

    with pytest.raises(irad.SignatureError, match="lacks an entry"):
        solved(ipopt.problem(kinked, x0=np.zeros(2)), np.ones(2))


def test_what_does_not_fit_is_refused_by_name():
    def refuses(match, *given, x0=X0, **more):
        with pytest.raises(irad.SignatureError, match=match):
            ipopt.problem(cost, *given, x0=x0, **more)

    pair = ([25.0, 40.0], [np.inf, 40.0])
    refuses(r"the start x0 has the shape \(2, 2\)", x0=np.ones((2, 2)))
    refuses("the start x0 is a dict", x0={"a": 1.0})
    refuses("bounds is not a pair", None, 1.0)
    refuses(r"the upper bounds have the shape \(3,\), and there are 4 variables", None, (0.0, np.ones(3)))
    refuses("the lower bounds hold a NaN", None, (np.nan, 1.0))
    refuses(r"the lower bounds exceed the upper ones: 2.0 > 1.0 at 0", None, (2.0, 1.0))
    refuses("without bounds of their values", limits)
    refuses("without constraints", None, None, pair)
    refuses(
        r"the lower constraint_bounds have the shape \(3,\), and there are 2 constr", limits, None, (np.ones(3), None)
    )
    refuses("writes=0 is not a number of constraints", limits, None, pair, writes=0)
    program = ipopt.problem(cost, limits, (1.0, 5.0), pair, x0=X0)
    with pytest.raises(irad.SignatureError, match="the start has 3 numbers, the program has 4 variables"):
        program.solve(np.ones(3))
    with pytest.raises(AttributeError, match="'Problem' object has no attribute 'nothing'"):
        program.nothing  # noqa: B018


def test_a_trajectory_of_ten_thousand_variables(monkeypatch):
    seconds = {}
    plain = ipopt._Calls._call

    def timed(self, function, *given):
        begin = time.perf_counter()
        try:
            return plain(self, function, *given)
        finally:
            name = function.__name__
            seconds[name] = seconds.get(name, 0.0) + time.perf_counter() - begin

    monkeypatch.setattr(ipopt._Calls, "_call", timed)
    program, start, step = swing(3334)
    begin = time.perf_counter()
    z, info = solved(program, start)
    total = time.perf_counter() - begin
    assert info["status"] == 0
    assert abs(program.constraints(z)).max() < 1e-8
    derivatives = sum(seconds[name] for name in ("gradient", "jacobian", "hessian"))
    print(f"{z.size} variables: {total:.2f} s, of which derivatives {derivatives:.3f} s")
    assert derivatives < 0.5 * total
    coarse, from_there, _ = swing(100)
    assert solved(coarse, from_there)[1]["obj_val"] == pytest.approx(info["obj_val"], rel=1e-2)
    from scipy.integrate import solve_ivp

    n = z.size // 3
    times, torque = step * np.arange(n), z[2 * n :]
    found = solve_ivp(
        lambda t, y: [y[1], np.interp(t, times, torque) - np.sin(y[0])],
        (0.0, times[-1]),
        [0.0, 0.0],
        rtol=1e-8,
        max_step=step,
    )
    np.testing.assert_allclose(found.y[:, -1], [np.pi, 0.0], atol=1e-3)
