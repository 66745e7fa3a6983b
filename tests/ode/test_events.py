"""Several events of `irad.ode.solve`: values against SciPy, derivatives against closed forms."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.integrate
from numba import njit

import irad
from irad.ode import solve

H = 1e-30


@njit
def circle(t, y, speed):
    return np.array([-speed * y[1], speed * y[0]])


@njit
def across(t, y, speed):
    return y[0] - 0.3


@njit
def level(t, y, speed):
    return y[1] - 0.1 * t - 0.1


def test_several_events_are_those_of_scipy():
    y0, times = np.array([1.0, 0.0]), np.linspace(0.0, 9.0, 5)
    found = solve(circle, y0, (0.0, 9.0), (1.3,), times, rtol=1e-10, event=(across, level), terminal=0)
    truth = scipy.integrate.solve_ivp(
        circle.py_func,
        (0.0, 9.0),
        y0,
        "DOP853",
        args=(1.3,),
        events=[across.py_func, level.py_func],
        rtol=1e-11,
        atol=1e-12,
    )
    assert (np.diff(found.t_events) > 0.0).all()
    assert set(found.which) == {0, 1}
    for which in (0, 1):
        np.testing.assert_allclose(found.t_events[found.which == which], truth.t_events[which], rtol=1e-8)
        np.testing.assert_allclose(found.y_events[found.which == which], truth.y_events[which], rtol=1e-7)
    for directions, terminal, chosen in (((1, -1), (0, 0), None), (-1, (2, 0), 0), (0, (0, 2), 1), (0, 1, 1)):
        part = solve(
            circle,
            y0,
            (0.0, 9.0),
            (1.3,),
            times,
            rtol=1e-10,
            event=(across, level),
            direction=directions,
            terminal=terminal,
        )
        assert part.ended == (chosen is not None)
        ways = (directions, directions) if isinstance(directions, int) else directions
        rises = np.where(found.which == 0, -found.y_events[:, 1], 1.3 * found.y_events[:, 0] - 0.1) > 0.0
        watched = np.array([ways[which] for which in found.which])
        kept = (watched == 0) | ((watched > 0) == rises)
        np.testing.assert_array_equal(part.t_events, found.t_events[kept][: part.which.size])
        np.testing.assert_array_equal(part.which, found.which[kept][: part.which.size])
        if chosen is None:
            assert part.which.size == kept.sum()
        else:
            assert part.which[-1] == chosen
            assert (part.which == chosen).sum() == (1 if terminal == 1 else terminal[chosen])
            assert part.t.size == (times <= part.t_events[-1]).sum()


@njit
def upper(t, y, speed):
    return y[1] - 0.9


@njit
def crossings(speed, radius, end, steps):
    start = np.array([radius, 0.0])
    found = solve(circle, start, (0.0, end), (speed,), None, "rk4", steps=steps, event=(across, upper), terminal=(0, 3))
    return (found.t_events * (1.0 + found.which)).sum() + 0.5 * found.y_events[:, 1].sum() + found.y[0, 0]


def test_derivatives_of_several_events():
    """With two steps, two events are in the first one; with many, the solution is that in closed form."""

    def closed(speed, radius, end):
        across, upper = np.arccos(0.3 / radius), np.arcsin(0.9 / radius)
        times = (2.0 * upper + across + 2.0 * (np.pi - upper)) / speed
        return times + 0.5 * (1.8 + np.sqrt(radius * radius - 0.09)) + radius * np.cos(speed * end)

    given, tangents = (1.3, 1.1, 2.2), (0.3, -0.2, 0.4)
    value_and_grad = irad.value_and_grad(crossings, argnums=(0, 1, 2))
    for steps in (2, 300):
        value, found = value_and_grad(*given, steps)
        _, tangent = irad.jvp(crossings, (*given, steps), (*tangents, None))
        assert tangent == pytest.approx(np.dot(found, tangents), rel=1e-12)
    assert value == pytest.approx(closed(*given), rel=1e-8)
    for i in range(3):
        moved = closed(*[x + (1j * H if j == i else 0.0) for j, x in enumerate(given)])
        assert found[i] == pytest.approx(moved.imag / H, rel=1e-6)


def test_refused():
    given = circle, np.array([1.0, 0.0]), (0.0, 1.0), (1.0,)
    for options, said in (
        ({"event": (across, level), "direction": (0, 0, 0)}, "has 3 entries for 2 events"),
        ({"event": (across, level), "terminal": (1,)}, "has 1 entries for 2 events"),
        ({"event": (across,), "adjoint": "continuous"}, "with an event"),
        ({"event": circle}, r"an event of a differential equation returns a float64\[::1\] array"),
    ):
        with pytest.raises(irad.SignatureError, match=said):
            solve(*given, **options)
