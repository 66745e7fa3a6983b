"""`irad.ode.solve`: values against SciPy and closed forms, events, counts, errors."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.integrate
from numba import njit

import irad
from irad.ode import solve
from irad.ode.dense import put_between, slope_between
from irad.ode.events import watching
from irad.ode.march import METHODS, error_size, marching
from tests.ode.equations import BLOW_UP, LORENZ, OSCILLATOR, STIFF, height, oscillation, settings, slope

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


@pytest.mark.parametrize(
    ("name", "order", "between"),
    [
        ("euler", 1, 1),
        ("midpoint", 2, 2),
        ("heun", 2, 2),
        ("rk4", 4, 4),
        ("bosh3", 3, 3),
        ("dopri5", 5, 5),
        ("tsit5", 5, 5),
        ("dop853", 8, 8),
    ],
)
def test_order_of_convergence(name, order, between):
    """In the interpreter, with equal steps: half of them, 2^order times the error."""
    method = METHODS[name]._replace(order=0)
    march = marching(slope.py_func, watching(()), method).py_func
    args, times = (OSCILLATOR, 2.0, W), np.array([1.1, 2.3])
    errors = []
    for steps in (15, 30) if order < 8 else (4, 8):
        course = march(Y0, 0.0, 3.0, args, times, settings(steps=steps))
        errors.append([abs(course.last - oscillation(3.0)).max(), abs(course.rows.T - oscillation(times)).max()])
    whole, within = np.log2(np.array(errors[0]) / errors[1])
    assert whole > order - 0.5
    assert within > between - 0.7  # the error in a step has one power more


@pytest.mark.parametrize("name", ["bosh3", "dopri5", "tsit5", "dop853"])
def test_error_estimates(name):
    """They fall with the power of the step that the choice of its size counts on; 7 are needed to tell 8 from 7."""
    method = METHODS[name]
    steps, y1 = method.steps_of(slope.py_func), None
    sizes = []
    for h in (0.2, 0.1):
        y1, _, kept = steps.step(0.5, h, Y0, slope.py_func(0.5, Y0, OSCILLATOR, 2.0, W), (OSCILLATOR, 2.0, W))
        sizes.append(error_size(h, kept, steps.errors, Y0, y1, np.zeros(2), np.ones(2)))
    assert method.order - 0.5 < np.log2(sizes[0] / sizes[1]) < method.order + 0.7


@pytest.mark.parametrize(
    ("name", "truth"),
    [("bosh3", scipy.integrate.RK23), ("dopri5", scipy.integrate.RK45), ("dop853", scipy.integrate.DOP853)],
)
def test_steps_are_those_of_scipy(name, truth):
    h, args = 0.4, (OSCILLATOR, 2.0, W)
    solver = truth(lambda t, y: slope.py_func(t, y, *args), 0.5, Y0, 9.0, first_step=h, rtol=1.0, atol=1.0)
    solver.step()
    steps = METHODS[name].steps_of(slope.py_func)
    y1, slope1, kept = steps.step(0.5, h, Y0, slope.py_func(0.5, Y0, *args), args)
    np.testing.assert_allclose(y1, solver.y, rtol=1e-14)
    np.testing.assert_allclose(slope1, solver.f, rtol=1e-13)
    size = error_size(h, kept, steps.errors, Y0, y1, np.zeros(2), np.ones(2))
    norm = solver._estimate_error_norm(solver.K, h, np.ones(2)) if name == "dop853" else None
    known = np.linalg.norm(solver.K.T @ solver.E * h) / np.sqrt(2.0) if norm is None else norm
    assert size == pytest.approx(known, rel=1e-10)
    dense, found = steps.dense(0.5, h, Y0, y1, kept, args), np.empty(2)
    known = solver.dense_output()
    for share in (0.0, 0.3, 0.8, 1.0):
        put_between(found, Y0, y1, dense, share)
        if name != "dopri5":  # SciPy's polynomial is another one
            np.testing.assert_allclose(found, known(0.5 + share * h), rtol=1e-12)
        change = [np.empty(2), np.empty(2)]
        for side, out in zip((1e-5, -1e-5), change, strict=True):
            put_between(out, Y0, y1, dense, share + side)
        np.testing.assert_allclose(
            slope_between(Y0, y1, dense, share), (change[0] - change[1]) / 2e-5, rtol=1e-7, atol=1e-9
        )


def test_the_longest_step():
    course = marching(slope.py_func, watching(()), METHODS["tsit5"]).py_func(
        Y0, 3.0, 0.5, (OSCILLATOR, 2.0, W), np.zeros(0), settings(rtol=1e-3, longest=0.13)
    )
    sizes = 2.5 * np.diff(course.places)
    assert sizes.max() <= 0.13 * (1.0 + 1e-12)
    assert sizes.size < 24  # most are as long as they may be
    found = solve(slope, Y0, (0.0, 1.0), (OSCILLATOR, 2.0, W), max_step=0.01)
    assert 100 <= found.steps < 110
    free = solve(slope, Y0, (0.0, 1.0), (OSCILLATOR, 2.0, W), max_step=0.5)
    assert free.steps == solve(slope, Y0, (0.0, 1.0), (OSCILLATOR, 2.0, W)).steps


def test_tolerances_of_parts():
    """The first state counts alone, as if it had been solved for by itself with its tolerances."""
    args = (OSCILLATOR, 2.0, W)
    same = solve(slope, Y0, (0.0, 6.0), args, rtol=np.full(2, 1e-5), atol=[1e-7, 1e-7])
    np.testing.assert_array_equal(same.y, solve(slope, Y0, (0.0, 6.0), args, rtol=1e-5, atol=1e-7).y)
    loose = [solve(slope, Y0, (0.0, 6.0), args, rtol=0.0, atol=atol) for atol in ([1e-9, 1e3], [1e3, 1e-9], [1e3, 1e3])]
    both = solve(slope, Y0, (0.0, 6.0), args, rtol=0.0, atol=1e-9)
    assert loose[2].steps < 10 < loose[0].steps <= both.steps
    assert 10 < loose[1].steps <= both.steps
    given = [1e-5, 1e-4]
    np.testing.assert_array_equal(tolerant(Y0, np.array(given)), solve(slope, Y0, (0.0, 6.0), args, rtol=given).y[0])
    for wrong in ([1e-5], [1e-5, 1e-5, 1e-5]):
        with pytest.raises(ValueError, match="the length of the state"):
            solve(slope, Y0, (0.0, 6.0), args, rtol=wrong)
        with pytest.raises(ValueError, match="the length of the state"):
            tolerant(Y0, np.array(wrong))


@njit
def tolerant(y0, rtol):
    return solve(slope, y0, (0.0, 6.0), (OSCILLATOR, 2.0, W), rtol=rtol).y[0]


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
    with pytest.raises(ValueError, match="both are zero"):
        solve(slope, Y0, (0.0, 1.0), args, rtol=0.0, atol=[1e-9, 0.0])
    for wrong in (0.0, -1.0, np.nan):
        with pytest.raises(ValueError, match="max_step of a differential equation is not positive"):
            solve(slope, Y0, (0.0, 1.0), args, max_step=wrong)
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
    march = marching(lambda t, y: y[:1], watching(()), METHODS["rk4"]).py_func
    with pytest.raises(ValueError, match="differ in length"):
        march(Y0, 0.0, 1.0, (), np.zeros(0), settings(steps=5))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"method": "rk45"}, "not a method"),
        ({"adjoint": "none"}, "not an adjoint"),
        ({"adjoint": "continuous", "method": "rodas"}, "with the method rodas"),
        ({"adjoint": "continuous", "event": height}, "with an event"),
        ({"snapshots": 0}, "not a positive int"),
        ({"y0": np.zeros(2, bool)}, "the state of a differential equation is"),
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
