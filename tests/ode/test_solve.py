"""`irad.ode.solve`: values against SciPy and closed forms, events, counts, errors."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.integrate
from numba import njit

import irad
from irad.ode import solve
from irad.ode.march import METHODS, Settings, marching
from tests.ode.equations import BLOW_UP, LORENZ, OSCILLATOR, STIFF, height, slope

W = np.array([0.5, 1.3])
Y0 = np.array([1.0, 0.2])


def of_scipy(span, y0, args, times, event=None, method="DOP853"):
    return scipy.integrate.solve_ivp(
        slope.py_func, span, y0, method, times, args=args, events=event, rtol=1e-11, atol=1e-12
    )


@pytest.mark.parametrize("span", [(0.3, 6.0), (6.0, 0.3)])
def test_values_and_events_are_those_of_scipy(span):
    args, times = (OSCILLATOR, 2.0, W), np.linspace(*span, 7)
    found = solve(slope, Y0, span, args, times, rtol=1e-9, atol=1e-11, event=height, terminal=0)
    truth = of_scipy(span, Y0, args, times, height.py_func)
    np.testing.assert_allclose(found.y, truth.y.T, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(found.t_events, truth.t_events[0], rtol=1e-8)
    np.testing.assert_allclose(found.y_events, truth.y_events[0], rtol=1e-7, atol=1e-8)
    assert not found.ended
    assert found.calls == 1 + 6 * (found.steps + found.rejected)


def test_a_terminal_event_ends_it():
    args, times = (OSCILLATOR, 2.0, W), np.linspace(0.0, 6.0, 13)
    tolerances = {"rtol": 1e-9, "atol": 1e-11, "event": height}
    whole = solve(slope, Y0, (0.0, 6.0), args, times, **tolerances, terminal=0)
    for direction, terminal, which in ((0, 1, 0), (1, 1, 1), (-1, 1, 0), (0, 2, 1)):
        found = solve(slope, Y0, (0.0, 6.0), args, times, **tolerances, direction=direction, terminal=terminal)
        assert found.ended
        assert found.t_events[-1] == whole.t_events[which]
        assert found.t_events.size == terminal
        np.testing.assert_array_equal(found.t, times[times <= whole.t_events[which]])
        np.testing.assert_array_equal(found.y, whole.y[: found.t.size])
    last = solve(slope, Y0, (0.0, 6.0), args, **tolerances)  # without times the end is what is given
    assert last.t[0] == last.t_events[0]
    np.testing.assert_array_equal(last.y, last.y_events)


def test_an_event_at_the_beginning_is_none():
    args = (OSCILLATOR, 2.0, W)
    found = solve(slope, np.array([0.0, 1.0]), (0.0, 1.0), args, event=height, terminal=0)
    assert found.t_events.size == 0


def test_stiff():
    args, times = (STIFF, 1e6, W), np.array([1e-6, 1e-3, 1.0, 10.0])
    found = solve(slope, np.array([2.0, 0.0]), (0.0, 10.0), args, times, method="rodas", rtol=1e-7, atol=1e-9)
    truth = of_scipy((0.0, 10.0), np.array([2.0, 0.0]), args, times, method="Radau")
    np.testing.assert_allclose(found.y, truth.y.T, rtol=1e-6, atol=1e-7)
    assert found.steps < 400
    with pytest.raises(RuntimeError, match="max_steps"):
        solve(slope, np.array([2.0, 0.0]), (0.0, 10.0), args, rtol=1e-7, max_steps=500)


@pytest.mark.parametrize(("name", "order"), [("rk4", 4), ("dopri5", 5)])
def test_order_of_convergence(name, order):
    """In the interpreter, with equal steps: half of them, 2^order times the error."""
    method = METHODS[name]._replace(order=0)
    march = marching(slope.py_func, None, method).py_func
    args, times = (OSCILLATOR, 2.0, W), np.array([1.1, 2.3])
    truth = of_scipy((0.0, 3.0), Y0, args, [*times, 3.0]).y.T
    errors = []
    for steps in (15, 30):
        course = march(Y0, 0.0, 3.0, args, times, Settings(1e-6, 1e-6, 0.0, steps, 0, 0))
        errors.append([abs(course.last - truth[2]).max(), abs(course.rows - truth[:2]).max()])
    whole, between = np.log2(np.array(errors[0]) / errors[1])
    assert whole > order - 0.4
    assert between > min(order, 4) - 0.7  # a polynomial of one order less, of the error in a step


def test_closures_and_functions_in_compiled_code():
    @njit
    def grown(rate):
        def by(t, y, rate):
            return rate * y

        return solve(by, np.array([1, 2]), (0.0, 1.0), rate, None, "rk4", steps=20).y[-1]

    np.testing.assert_allclose(grown(0.5), np.exp(0.5) * np.array([1.0, 2.0]), rtol=1e-7)


def test_edges():
    args = (OSCILLATOR, 2.0, W)
    found = solve(slope, Y0, (1.0, 1.0), args)  # nothing to do
    np.testing.assert_array_equal(found.y, [Y0])
    found = solve(slope, Y0, (1.0, 1.0), args, (1.0, 1.0))
    np.testing.assert_array_equal(found.y, [Y0, Y0])
    nothing = solve(slope, np.zeros(0), (0.0, 1.0), (BLOW_UP, 1.0, W))
    assert nothing.y.shape == (1, 0)
    assert nothing.steps < 20
    ends = solve(slope, Y0, (0.0, 1.0), args, (0.0, 0.0, 1.0))
    np.testing.assert_array_equal(ends.y[:2], [Y0, Y0])
    np.testing.assert_allclose(ends.y[2], solve(slope, Y0, (0.0, 1.0), args).y[0], rtol=1e-14)
    single = solve(slope, Y0.astype(np.float32), (0.0, 1.0), args, first_step=0.01)
    np.testing.assert_allclose(single.y[0], ends.y[2], rtol=1e-5)


def test_errors_at_run_time():
    args = (OSCILLATOR, 2.0, W)
    with pytest.raises(RuntimeError, match="too small"):  # y = 1 / (1 - t)
        solve(slope, np.array([1.0, 1.0]), (0.0, 2.0), (BLOW_UP, 1.0, W))
    for times in ((2.0,), (0.6, 0.5), (-0.1,), (np.nan,)):
        with pytest.raises(ValueError, match="not in order"):
            solve(slope, Y0, (0.0, 1.0), args, times)
    with pytest.raises(ValueError, match="not in order"):
        solve(slope, Y0, (1.0, 1.0), args, (1.0, 1.5))
    with pytest.raises(ValueError, match="both are zero"):
        solve(slope, Y0, (0.0, 1.0), args, rtol=0.0, atol=0.0)
    with pytest.raises(ValueError, match="number of steps"):
        solve(slope, Y0, (0.0, 1.0), args, max_steps=0)
    with pytest.raises(ValueError, match="not finite"):
        solve(slope, Y0, (0.0, np.inf), args)
    with pytest.raises(RuntimeError, match="max_steps"):
        solve(slope, np.ones(3), (0.0, 10.0), (LORENZ, 28.0, W), max_steps=3)


@njit
def end(t_span, y0):
    return solve(decaying, y0, t_span, method="rk4", steps=20).y[0, 0]


@njit
def decaying(t, y):
    return -y


def test_ends_from_an_array():
    assert end(np.array([0, 1]), np.ones(1)) == pytest.approx(np.exp(-1.0), rel=1e-6)
    for size in (0, 1, 3):
        with pytest.raises(ValueError, match="does not have two ends"):
            end(np.zeros(size, int), np.ones(1))


def test_a_slope_of_another_length():
    march = marching(lambda t, y: y[:1], None, METHODS["rk4"]).py_func
    with pytest.raises(ValueError, match="differ in length"):
        march(Y0, 0.0, 1.0, (), np.zeros(0), Settings(1e-6, 1e-6, 0.0, 5, 0, 0))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"method": "euler"}, "not a method"),
        ({"adjoint": "none"}, "not an adjoint"),
        ({"adjoint": "continuous", "method": "rodas"}, "with the method rodas"),
        ({"adjoint": "continuous", "event": height}, "with an event"),
        ({"snapshots": 0}, "not a positive int"),
        ({"y0": np.zeros(2, complex)}, "complex128"),
        ({"y0": np.zeros((2, 2))}, "with 2 axes"),
        ({"t_span": 1.0}, r"t_span of a differential equation is 1\.0"),
        ({"t_span": (0.0,)}, "t_span of a differential equation is"),
        ({"f": njit(lambda t, y, *args: y[0])}, "returns a float64"),
        ({"f": njit(lambda t, y, *args: 1j * y)}, r"returns a complex128\[::1\] array"),
        ({"f": njit(lambda t, y, *args: y.reshape(-1, 1))}, r"returns a float64\[:, ::1\] array"),
    ],
)
def test_refused(given, said):
    with pytest.raises(irad.SignatureError, match=said):
        solve(**{"f": slope, "y0": Y0, "t_span": (0.0, 1.0), "args": (OSCILLATOR, 2.0, W), **given})
