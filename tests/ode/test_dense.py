"""`irad.ode.evaluate`: solutions as functions of time, against rows of `t_eval`, closed forms and SciPy."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.integrate
from numba import njit

import irad
from irad.ode import evaluate, solve
from irad.ode.march import METHODS
from tests.ode.equations import OSCILLATOR, height, oscillation, slope

W = np.array([0.5, 1.3])
Y0 = np.array([1.0, 0.2])
TIMES = np.array([0.1, 0.3, 1.7, 3.0])


@pytest.mark.parametrize("method", list(METHODS))
def test_states_are_those_of_t_eval(method):
    """Also where steps end, in any order, and backwards."""
    for span in ((0.1, 3.0), (3.0, 0.1)):
        times = np.sort(np.append(TIMES, np.linspace(0.1, 3.0, 31)))[:: 1 if span[0] < span[1] else -1].copy()
        given = {"method": method, "rtol": 1e-5, "steps": 30, "dense_output": True}
        found = solve(slope, Y0, span, (OSCILLATOR, 2.0, W), times, **given)
        np.testing.assert_allclose(evaluate(found, times), found.y, rtol=1e-12)
        np.testing.assert_array_equal(evaluate(found, times[::-1].copy()), evaluate(found, times)[::-1])
        np.testing.assert_array_equal(evaluate(found, times)[7], evaluate(found, times[7]))
        np.testing.assert_allclose(evaluate(found, found.dense.times)[:-1], found.dense.pieces[:, 0], rtol=1e-12)


@pytest.mark.parametrize(
    ("method", "name"), [("bosh3", "RK23"), ("dopri5", "RK45"), ("dop853", "DOP853"), ("radau", "Radau")]
)
def test_solutions_are_those_of_scipy(method, name):
    times = np.linspace(0.1, 3.0, 40)
    found = solve(slope, Y0, (0.1, 3.0), (OSCILLATOR, 2.0, W), method=method, rtol=1e-7, atol=1e-9, dense_output=True)
    truth = scipy.integrate.solve_ivp(
        slope.py_func, (0.1, 3.0), Y0, name, args=(OSCILLATOR, 2.0, W), rtol=1e-7, atol=1e-9, dense_output=True
    )
    np.testing.assert_allclose(evaluate(found, times), truth.sol(times).T, atol=3e-6)


@njit
def compared(y0, t0, t1, p, w, times, shift, terminal, weights):
    """What evaluation gives and what rows give, with a weight for each."""
    args = OSCILLATOR, p, w
    found = solve(
        slope, y0, (t0, t1), args, times, "tsit5", 1e-5, event=height, terminal=terminal, snapshots=4, dense_output=True
    )
    states, rows = evaluate(found, found.t), found.y
    total = weights[0] * (states[:, 0] * states[:, 1]).sum() + weights[1] * (rows[:, 0] * rows[:, 1]).sum()
    return total + weights[2] * (evaluate(found, shift) ** 2).sum()


TANGENTS = np.array([0.3, -0.2]), 0.1, -0.2, 0.4, np.array([0.1, 0.5]), np.array([0.2, -0.1, 0.3, 0.4]), -0.3


def test_derivatives_are_those_of_t_eval():
    """For all times, up to a terminal event, and backwards; forward and reverse mode agree."""
    gradient, times = irad.grad(compared, argnums=tuple(range(7))), np.array([0.1, 0.9, 2.2, 3.0])
    for terminal, t0, t1 in ((0, 0.1, 3.0), (1, 0.1, 3.0), (0, 3.0, 0.1)):
        ordered = times if t0 < t1 else times[::-1].copy()
        given = Y0, t0, t1, 2.0, W, ordered, 0.7, terminal
        found = gradient(*given, np.array([1.0, 0.0, 0.0]))
        truth = gradient(*given, np.array([0.0, 1.0, 0.0]))
        for one, other in zip(found, truth, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)
        both = np.array([0.3, 1.0, 0.4])
        _, pushed = irad.jvp(compared, (*given, both), (*TANGENTS, None, None))
        pulled = sum(np.sum(a * b) for a, b in zip(gradient(*given, both), TANGENTS, strict=True))
        assert pushed == pytest.approx(pulled, rel=1e-11)


@njit
def at(y0, p, t):
    found = solve(slope, y0, (0.0, 3.0), (OSCILLATOR, p, W), None, "dop853", 1e-11, 1e-12, dense_output=True)
    return evaluate(found, t)[0]


def test_the_derivative_with_respect_to_time_is_the_slope():
    for t in (0.0, 0.37, 1.9, 3.0):
        assert at(Y0, 2.0, t) == pytest.approx(oscillation(t)[0], rel=1e-9)
        assert irad.grad(at, 2)(Y0, 2.0, t) == pytest.approx(oscillation(t)[1], rel=1e-6)


@njit
def implicitly(y0, rate, t1, t):
    def decay(t, y, rate):
        return -rate * t * y

    found = solve(decay, y0, (0.5, t1), (rate,), None, "radau", 1e-9, snapshots=3, dense_output=True)
    return evaluate(found, (t, 1.0))[0, 0]


def test_derivatives_of_an_implicit_method():
    """y = y0 exp(rate (1/4 - t²)/2)"""
    given, tangents = (np.array([2.0]), 0.7, 1.5, 1.2), (np.array([0.3]), 0.5, -0.3, 0.2)
    found, y = irad.grad(implicitly, (0, 1, 2, 3))(*given), 2.0 * np.exp(0.35 * (0.25 - 1.44))
    truth = [y / 2.0, y * (0.25 - 1.44) / 2.0, 0.0, -0.7 * 1.2 * y]
    np.testing.assert_allclose(np.hstack(found), truth, rtol=1e-5, atol=1e-6)
    assert irad.jvp(implicitly, given, tangents)[1] == pytest.approx(np.hstack(found) @ np.hstack(tangents), rel=1e-9)


@njit
def left(y0, rate, t0, t1, t):
    def decay(t, y, rate):
        return -rate * t * y

    return evaluate(solve(decay, y0, (t0, t1), (rate,), None, "rk4", steps=40, dense_output=True), t)[0]


def test_second_derivatives():
    """y = y0 exp(rate (t0² - t²)/2)"""
    given = np.array([2.0]), 0.7, 0.5, 1.5, 1.2
    half, y = (0.25 - 1.44) / 2.0, left(*given)
    # with respect to y0, rate, t0, t1, t
    truth = [half * y / 2.0, half**2 * y, (0.5 + half * 0.35) * y, 0.0, (-1.2 - half * 0.84) * y]
    found = irad.grad(irad.grad(left, 1), (0, 1, 2, 3, 4))(*given)
    np.testing.assert_allclose(np.hstack(found), truth, rtol=1e-4, atol=1e-5)


def test_over_no_time():
    """The state at the only time still changes with that time."""
    given = np.array([2.0]), 0.7, 1.0, 1.0, 1.0
    assert left(*given) == 2.0
    np.testing.assert_allclose(
        np.hstack(irad.grad(left, (0, 1, 2, 3, 4))(*given)), (1.0, 0.0, 1.4, 0.0, -1.4), rtol=1e-14
    )


class Body(NamedTuple):
    """A state with a number, an array in single precision, and a complex number."""

    angle: Any
    field: Any
    wave: Any


@njit
def motion(t, y, rate):
    return Body(-rate * y.angle, np.float32(-rate) * y.field, 1j * rate * y.wave)


@njit
def halfway(t, y, rate):
    return y.wave.real


@njit
def solved(start, rate):
    return solve(motion, start, (0.0, 3.0), (rate,), event=halfway, dense_output=True)


def test_structures():
    """Of a solution that compiled code has returned; a terminal event ends it within its last step."""
    start = Body(0.3, np.array([[1.0, 2.0]], np.float32), 1.0 + 0.0j)
    found = solved(start, 0.7)
    end = found.t[0]
    assert end == pytest.approx(0.5 * np.pi / 0.7, rel=1e-6)
    rows = evaluate(found, [end, 0.5])
    assert isinstance(rows, Body)
    assert [each.shape for each in rows] == [(2,), (2, 1, 2), (2,)]
    assert [each.dtype for each in rows] == [np.float64, np.float32, np.complex128]
    one = evaluate(found, 0.5)
    np.testing.assert_array_equal(rows.field[1], one.field)
    assert one.angle == pytest.approx(0.3 * np.exp(-0.35), rel=1e-6)
    assert one.wave == pytest.approx(np.exp(0.35j), rel=1e-6)
    np.testing.assert_allclose(rows.wave[0], found.y.wave[0], rtol=1e-12)
    with pytest.raises(ValueError, match="outside the solution"):
        evaluate(found, end + 1e-9)


@njit
def of_parts(start, rate, t):
    state = evaluate(solved(start, rate), t)
    return state.angle * (state.field * state.field).sum() + 0.5 * state.wave.imag


def test_derivatives_of_structures():
    start = Body(0.3, np.array([[1.0, 2.0]], np.float32), 1.0 + 0.5j)
    d_start, d_rate, d_t = irad.grad(of_parts, (0, 1, 2))(start, 0.7, 0.5)
    shrunk, wave = np.exp(-0.35), start.wave * np.exp(0.35j)
    assert d_start.angle == pytest.approx(5.0 * shrunk**3, rel=1e-5)
    np.testing.assert_allclose(d_start.field, 0.6 * shrunk**3 * start.field, rtol=1e-5)
    assert d_start.wave == pytest.approx(0.5 * 1j * np.exp(-0.35j), rel=1e-5)
    by_angle = -1.5 * 3.0 * shrunk**3 + 0.5 * wave.real
    assert (d_rate, d_t) == pytest.approx((by_angle * 0.5, by_angle * 0.7), rel=1e-5)


def test_refused():
    args = (OSCILLATOR, 2.0, W)
    with pytest.raises(irad.SignatureError, match="dense_output=True") as caught:
        evaluate(solve(slope, Y0, (0.0, 1.0), args), 0.5)
    assert caught.value.location.file == __file__
    with pytest.raises(irad.SignatureError, match="continuous adjoint is asked for with dense_output"):
        solve(slope, Y0, (0.0, 1.0), args, dense_output=True, adjoint="continuous")
    with pytest.raises(irad.SignatureError, match="dense_output=1 is not a bool"):
        solve(slope, Y0, (0.0, 1.0), args, dense_output=1)
    found = solve(slope, Y0, (0.0, 1.0), args, dense_output=True)
    for t in (-0.1, 1.1, np.nan, (0.5, np.inf)):
        with pytest.raises(ValueError, match="outside the solution"):
            evaluate(found, t)
    with pytest.raises(irad.SignatureError, match="points or times are"):
        evaluate(found, "noon")
