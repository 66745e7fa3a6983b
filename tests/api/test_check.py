"""`irad.check`: everything that is unsupported, at once, and nothing has run."""

from __future__ import annotations

import dataclasses
import inspect
from collections import namedtuple

import numba
import numpy as np
import pytest
from numba import njit, types

import irad

CALLS = []


@njit
def smooth(x, scale):
    return np.sum(x * x) * scale


@njit
def written(x):
    x[0] = x[1] * x[1]


@njit
def _unknown(x):
    return _first(2, x) + _second(3, x)


_first = types.ExternalFunction("my_first", types.float64(types.int32, types.float64))
_second = types.ExternalFunction("my_second", types.float64(types.int32, types.float64))


@njit
def several(x, z, n):
    a = _first(n, x[0])
    return a * _unknown(x[1]) + z.real


def line_of(function, text):
    lines, start = inspect.getsourcelines(function.py_func)
    return start + next(i for i, line in enumerate(lines) if text in line)


def test_a_function_that_works():
    report = irad.check(smooth, np.ones(3), 2.0)
    assert report.supported
    assert report.problems == ()
    assert report.positions == (0, 1)
    assert str(report).splitlines()[0] == "smooth(x: float64[::1], scale: float64)"
    assert str(report).endswith("irad differentiates it with respect to x and scale.")


@njit
def of_long_names(positions_of_all_the_particles, velocities_of_all_the_particles, masses):
    return np.sum(positions_of_all_the_particles * velocities_of_all_the_particles) * masses


def test_long_signatures_have_a_line_for_each_parameter():
    lines = str(irad.check(of_long_names, np.ones(3), np.ones(3), 2.0)).splitlines()
    assert lines[:5] == [
        "of_long_names(",
        "    positions_of_all_the_particles: float64[::1],",
        "    velocities_of_all_the_particles: float64[::1],",
        "    masses: float64,",
        ")",
    ]
    assert max(len(line) for line in lines if not line.startswith("  at  ")) <= 80
    said = " ".join(" ".join(lines[6:]).split())
    assert said.endswith("to positions_of_all_the_particles, velocities_of_all_the_particles and masses.")


def test_nothing_runs():
    x = np.array([1.0, 3.0])
    assert irad.check(written, x).supported
    assert x[0] == 1.0
    assert written.signatures == []


def test_all_problems_at_once_each_with_its_line_and_a_remedy():
    report = irad.check(several, np.ones(2), 3, 2, argnums=(0, 1))
    assert not report.supported
    integer, *calls = report.problems
    assert isinstance(integer, irad.SignatureError)
    assert "(z) of several" in integer.problem
    assert all(isinstance(error, irad.NoRuleError) for error in calls)
    found = {(error.location.line, error.location.file) for error in calls}
    assert found == {(line_of(several, "_first("), __file__), (line_of(_unknown, "_second("), __file__)}
    assert all(error.remedy for error in report.problems)
    text = str(report)
    assert text.count("\n  do  ") == len(report.problems)
    assert f"irad does not differentiate it: {len(report.problems)} problems." in text


def test_one_problem_is_what_grad_raises():
    report = irad.check(_unknown, 0.5)
    with pytest.raises(irad.IradError) as raised:
        irad.grad(_unknown)(0.5)
    listed = str(raised.value)
    assert all(str(problem) in listed for problem in report.problems)


def test_argnums_leaves_the_others_constant():
    report = irad.check(smooth, np.ones(3), 2.0, argnums=-1)
    assert report.positions == (1,)
    assert report.supported
    report = irad.check(several, np.ones(2), 3, 2, argnums=0)
    assert not any("(z)" in problem.problem for problem in report.problems)


def test_types_in_place_of_values():
    assert irad.check(smooth, types.float64[:], types.float32).supported
    pair = namedtuple("pair", "x y")
    report = irad.check(njit(lambda p: p.x * p.y), pair(1.0, 2.0))
    assert report.supported
    assert irad.check(njit(lambda p: p[0] * p[1]), (types.float64, types.float64)).supported


def test_no_float_among_the_arguments():
    report = irad.check(njit(lambda n: n * 2.0), 3)
    assert report.positions == ()
    (problem,) = report.problems
    assert isinstance(problem, irad.SignatureError)
    assert "no argument" in problem.problem


def test_a_value_without_derivative():
    (problem,) = irad.check(njit(lambda x: int(x)), 3.0).problems
    assert "which has no derivative" in problem.problem


def test_what_numba_cannot_compile():
    @njit
    def broken(x):
        return x.no_such_attribute

    (problem,) = irad.check(broken, 1.0).problems
    assert isinstance(problem, irad.BackendError)
    assert problem.location.line == line_of(broken, "no_such")
    (problem,) = irad.check(smooth, object(), 1.0).problems
    assert isinstance(problem, irad.BackendError)
    assert "argument 0 (x) of smooth is an object" in problem.problem


def test_defaults_and_star_arguments():
    @njit
    def flexible(x, scale=2.0, *more):
        return x * scale * (1.0 + len(more))

    assert irad.check(flexible, 1.0).positions == (0,)
    report = irad.check(flexible, 1.0, 2.0, 3.0, 4.0)
    assert report.positions == (0, 1, 2, 3)
    assert str(report).endswith("with respect to x, scale and more.")


def test_literals_that_numba_asks_for():
    @njit
    def with_literal(x, n):
        return x * numba.literally(n)

    assert irad.check(with_literal, 2.0, 3).supported
    with pytest.raises(irad.SignatureError, match="needs the values of n"):
        irad.check(with_literal, 2.0, types.int64)


def test_wrong_calls_raise():
    with pytest.raises(irad.SignatureError, match="cannot be called with these arguments"):
        irad.check(smooth, 1.0)
    with pytest.raises(irad.SignatureError, match="is not a function"):
        irad.check(3.0)
    with pytest.raises(irad.SignatureError, match="argnums"):
        irad.check(smooth, np.ones(3), 2.0, argnums=5)


def test_the_report_is_frozen():
    report = irad.check(smooth, np.ones(3), 2.0)
    with pytest.raises(dataclasses.FrozenInstanceError):
        report.problems = ()
