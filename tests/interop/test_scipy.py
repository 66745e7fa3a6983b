"""The bridge to SciPy: every method of `minimize`, structures, constraints, equations, integrals."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
import scipy.sparse
from numba import float64, njit
from numba.experimental import jitclass
from scipy import integrate, optimize

import irad
from irad.interop import scipy as bridge

METHODS = (
    *("Nelder-Mead", "Powell", "CG", "BFGS", "Newton-CG", "L-BFGS-B", "TNC", "COBYLA", "SLSQP", "trust-constr"),
    *("dogleg", "trust-ncg", "trust-exact", "trust-krylov"),
)


@njit
def bowl(x, scale, shift):
    """Its minimum is at shift, with a Hessian that varies."""
    away = x - shift
    return scale * np.sum(np.cosh(away)) + 0.5 * np.sum(away) ** 2


@pytest.mark.parametrize("method", METHODS)
def test_each_method_finds_the_minimum(method):
    fit = bridge.minimize(bowl, [0.3, 0.2, -0.4], args=(2.0, 0.5), method=method, tol=1e-9)
    np.testing.assert_allclose(fit.x, 0.5, atol=2e-4)
    assert isinstance(fit, optimize.OptimizeResult)


@pytest.mark.parametrize(("method", "counted"), [("Newton-CG", "njev"), ("trust-krylov", "nhev"), ("dogleg", "nhev")])
def test_methods_are_given_derivatives(method, counted):
    """Without them, SciPy calls the function for each component, or refuses."""
    fit = bridge.minimize(bowl, np.full(30, 1.2), args=(2.0, 0.5), method=method)
    assert fit.success
    assert 0 < fit[counted] < 40
    assert fit.nfev < 40


def test_default_method_needs_few_calls():
    fit = bridge.minimize(bowl, np.full(30, 1.2), (2.0, 0.5))
    assert fit.success
    assert fit.nfev < 30  # 31 for a single gradient of differences


def test_derivatives_of_the_user_replace_those_of_irad():
    calls = []

    def slope(x, scale, shift):
        calls.append(1)
        return scale * np.sinh(x - shift) + np.sum(x - shift)

    fit = bridge.minimize(bowl, np.ones(2), args=(2.0, 0.5), jac=slope, tol=1e-9)
    np.testing.assert_allclose(fit.x, 0.5, atol=1e-5)
    assert calls


def test_one_argument_that_is_no_tuple():
    fit = bridge.minimize(lambda x, c: np.sum((x - c) ** 2), np.zeros(2), args=3.0)
    np.testing.assert_allclose(fit.x, 3.0)


# ------------------------------------------------------------------------------------------------ structures


@dataclass
class Line:
    slope: float
    offsets: np.ndarray


@jitclass([("slope", float64), ("offsets", float64[:])])
class CompiledLine:
    def __init__(self, slope, offsets):
        self.slope = slope
        self.offsets = offsets


def misfit(line, x):
    total = (line.slope - 3.0) ** 4 + (line.slope - 3.0) ** 2
    for offset in line.offsets:
        total += (line.slope * x + offset - 7.0) ** 2
    return total


def of_dictionary(line, x):
    total = (line["slope"] - 3.0) ** 4 + (line["slope"] - 3.0) ** 2
    for offset in line["offsets"]:
        total += (line["slope"] * x + offset - 7.0) ** 2
    return total


@pytest.mark.parametrize("method", ["BFGS", "trust-ncg", "trust-exact", "Nelder-Mead"])
def test_structures(method):
    start = {"slope": 1.0, "offsets": np.zeros(2)}
    fit = bridge.minimize(of_dictionary, start, args=(2.0,), method=method, tol=1e-8)
    assert fit.x["slope"] == pytest.approx(3.0, abs=1e-3)
    np.testing.assert_allclose(fit.x["offsets"], 1.0, atol=1e-3)
    assert start["slope"] == 1.0
    assert not start["offsets"].any()
    if "jac" in fit:
        assert fit.jac.keys() == start.keys()


@pytest.mark.parametrize("method", ["Powell", "Newton-CG"])
def test_functions_of_njit_take_structures(method):
    fit = bridge.minimize(njit(of_dictionary), {"slope": 1.0, "offsets": np.zeros(2)}, args=(2.0,), method=method)
    assert fit.x["slope"] == pytest.approx(3.0, abs=1e-3)


@pytest.mark.parametrize("kind", [Line, CompiledLine])
def test_instances(kind):
    fit = bridge.minimize(misfit, kind(1.0, np.zeros(2)), args=(2.0,), tol=1e-9)
    assert isinstance(fit.x, kind)
    assert fit.x.slope == pytest.approx(3.0, abs=1e-5)
    np.testing.assert_allclose(fit.x.offsets, 1.0, atol=1e-5)


def test_callbacks_see_structures():
    seen = []
    bridge.minimize(of_dictionary, {"slope": 1.0, "offsets": np.zeros(2)}, (2.0,), callback=seen.append)
    assert [line.keys() for line in seen] == [{"slope", "offsets"}] * len(seen)
    reports = []

    def report(intermediate_result):
        reports.append(intermediate_result)

    bridge.minimize(of_dictionary, {"slope": 1.0, "offsets": np.zeros(2)}, (2.0,), callback=report)
    assert reports[-1].x["slope"] == pytest.approx(3.0, abs=1e-3)
    assert reports[-1].fun < reports[0].fun


def test_a_start_without_floats():
    with pytest.raises(irad.SignatureError, match="holds no floats"):
        bridge.minimize(of_dictionary, {"slope": "steep"})


# ------------------------------------------------------------------------------------------------ constraints


def distance(x):
    return np.sum((x - np.array([2.0, 1.0])) ** 2)


def on_circle(x):
    return 1.0 - np.sum(x**2)


def both(x):
    return np.array([1.0 - x[0] ** 2 - x[1] ** 2, x[0] - x[1]])


@pytest.mark.parametrize("method", ["SLSQP", "trust-constr", "COBYLA"])
@pytest.mark.parametrize("constraint", [on_circle, both])
def test_constraints_are_given_derivatives(method, constraint):
    wanted = np.array([2.0, 1.0]) / math.sqrt(5.0)
    for given in (
        {"type": "ineq", "fun": constraint},
        [optimize.NonlinearConstraint(constraint, 0.0, np.inf)],
    ):
        fit = bridge.minimize(distance, [0.1, 0.0], method=method, constraints=given, tol=1e-8)
        np.testing.assert_allclose(fit.x, wanted, atol=1e-4)


def test_constraints_of_structures():
    def cost(point):
        return (point["a"] - 2.0) ** 2 + (point["b"] - 1.0) ** 2

    def inside(point):
        return np.array([1.0 - point["a"] ** 2 - point["b"] ** 2, point["a"]])

    fit = bridge.minimize(
        cost, {"a": 0.1, "b": 0.0}, method="SLSQP", constraints={"type": "ineq", "fun": inside}, bounds=[(0, 5)] * 2
    )
    assert fit.x["a"] == pytest.approx(2.0 / math.sqrt(5.0), abs=1e-5)
    assert fit.x["b"] == pytest.approx(1.0 / math.sqrt(5.0), abs=1e-5)


# ------------------------------------------------------------------------------------------------ other solvers


def stiff(t, y, rate):
    return np.array([-rate * y[0] + t, rate * y[0] * y[1] - y[1]])


def test_stiff_equations():
    d = bridge.derivatives(stiff, args=(50.0,), wrt="y")
    y0 = np.array([1.0, 1.0])
    np.testing.assert_allclose(d.jac(0.5, y0), [[-50.0, 0.0], [50.0, 49.0]])
    with_jac = integrate.solve_ivp(d.fun, (0.0, 0.5), y0, method="Radau", jac=d.jac)
    without = integrate.solve_ivp(d.fun, (0.0, 0.5), y0, method="Radau")
    np.testing.assert_allclose(with_jac.y[:, -1], without.y[:, -1], rtol=1e-3)
    with_pattern = integrate.solve_ivp(d.fun, (0.0, 0.5), y0, method="BDF", jac_sparsity=d.pattern(0.0, y0))
    np.testing.assert_allclose(with_pattern.y[:, -1], without.y[:, -1], rtol=1e-2)


def heat(u):
    r = 2.0 * u + u**3 - 1.0
    r[1:] -= u[:-1]
    r[:-1] -= u[1:]
    return r


def test_equations_and_least_squares():
    d = bridge.derivatives(heat)
    u0 = np.zeros(20)
    found = optimize.root(d.fun, u0, jac=d.jac)
    assert found.success
    fit = optimize.least_squares(d.fun, u0, jac=d.sparse_jac)
    np.testing.assert_allclose(fit.x, found.x, atol=1e-6)
    assert scipy.sparse.issparse(d.sparse_jac(u0))
    np.testing.assert_allclose(d.sparse_jac(u0).toarray(), d.jac(u0))


def test_the_pattern_grows_with_the_branches():
    def branching(x):
        y = 1.0 * x
        if x[0] > 0.0:
            y[1] += x[0] * x[2]
        else:
            y[2] += x[1] ** 2
        return y

    d = bridge.derivatives(branching)
    for point in (np.array([1.0, 2.0, 3.0]), np.array([-1.0, 2.0, 3.0]), np.array([2.0, 0.5, 1.0])):
        np.testing.assert_allclose(d.sparse_jac(point).toarray(), d.jac(point))


def test_sparse_hessians():
    d = bridge.derivatives(lambda x: np.sum(x[1:] * x[:-1] ** 2) + np.sum(x**4))
    x = np.linspace(0.5, 1.5, 6)
    np.testing.assert_allclose(d.sparse_hess(x).toarray(), d.hess(x))
    v = np.linspace(-1.0, 1.0, 6)
    np.testing.assert_allclose(d.hessp(x, v), d.hess(x) @ v)
    value, tangent = bridge.derivatives(heat).jvp(x, v)
    np.testing.assert_allclose(tangent, bridge.derivatives(heat).jac(x) @ v)
    np.testing.assert_allclose(value, heat(x))


@njit
def bell(x, height, width):
    return height * math.exp(-((x / width) ** 2))


def test_integrals_without_python():
    whole = integrate.quad(bridge.low_level_callable(bell, 3), -np.inf, np.inf, args=(2.0, 3.0))[0]
    assert whole == pytest.approx(6.0 * math.sqrt(math.pi))
    by_width = bridge.low_level_callable(irad.grad(bell, 2), 3)
    assert integrate.quad(by_width, -np.inf, np.inf, args=(2.0, 3.0))[0] == pytest.approx(2.0 * math.sqrt(math.pi))
    slope = bridge.low_level_callable(irad.grad(lambda x: math.sin(x) ** 2))
    assert integrate.quad(slope, 0.0, 1.0)[0] == pytest.approx(math.sin(1.0) ** 2)
    with pytest.raises(irad.SignatureError, match="has no variable"):
        bridge.low_level_callable(bell, 0)
