"""Events of `irad.ode.solve` with effects: values and derivatives against closed forms, forward against reverse."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from numba import njit

import irad
from irad.ode import evaluate, solve

H = 1e-30


def by_complex_steps(closed, *given):
    """The derivatives of a closed form with respect to its arguments."""
    moved = [[x + (1j * H if i == j else 0.0) for j, x in enumerate(given)] for i in range(len(given))]
    return [closed(*each).imag / H for each in moved]


@njit
def fall(t, y, bounciness, gravity):
    return np.array([y[1], -gravity])


@njit
def height(t, y, bounciness, gravity):
    return y[0]


@njit
def bounce(t, y, bounciness, gravity):
    y[1] *= -bounciness  # in place: a state after an event may be the one before
    return y


def bounced(bounciness, gravity, start, t):
    """Height and speed of the ball in closed form, and the times at which it has landed before."""
    speed = np.sqrt(2.0 * gravity * start)
    landings = [speed / gravity]
    while True:
        speed = bounciness * speed
        flight = 2.0 * speed / gravity
        if np.real(landings[-1] + flight) > t:
            since = t - landings[-1]
            return speed * since - 0.5 * gravity * since**2, speed - gravity * since, landings
        landings.append(landings[-1] + flight)


@njit
def ball(bounciness, gravity, start, end, t, weights, terminal):
    """What a solution has after several bounces, in one number: rows, any time, the end, events."""
    args, y0 = (bounciness, gravity), np.array([start, 0.0])
    found = solve(
        fall,
        y0,
        (0.0, end),
        args,
        (0.3, t, end),
        event=height,
        effect=bounce,
        terminal=terminal,
        snapshots=2,
        dense_output=True,
    )
    total = weights[0] * found.y[1, 0] + weights[1] * evaluate(found, t)[0] + weights[2] * found.y[-1, 1]
    return total + weights[3] * found.t_events[2] + weights[4] * found.y_events[1, 1]


def test_a_bouncing_ball():
    """The polynomials of the steps are exact here, and so are derivatives, with the jumps of these."""
    given, end, t = (0.8, 9.81, 1.0), 2.5, 2.0
    closed = {
        0: lambda *x: bounced(*x[:3], x[4])[0],
        1: lambda *x: bounced(*x[:3], x[4])[0],
        2: lambda *x: bounced(*x[:4])[1],
        3: lambda *x: bounced(*x[:4])[2][2],
        4: lambda *x: -np.sqrt(2.0 * x[1] * x[2]) * x[0],
    }
    gradient, tangents = irad.value_and_grad(ball, argnums=(0, 1, 2, 3, 4)), (0.3, -0.2, 0.5, 0.4, -0.7)
    for which, each in closed.items():
        value, found = gradient(*given, end, t, np.eye(5)[which], 0)
        assert value == pytest.approx(np.real(each(*given, end, t)), rel=1e-10)
        assert found == pytest.approx(by_complex_steps(each, *given, end + 0j, t + 0j), rel=1e-9, abs=1e-11)
    weights = np.array([0.3, 1.0, -0.4, 0.7, 0.2])
    _, pushed = irad.jvp(ball, (*given, end, t, weights, 0), (*tangents, None, None))
    assert pushed == pytest.approx(np.dot(gradient(*given, end, t, weights, 0)[1], tangents), rel=1e-11)
    # the third landing ends it, before its effect
    landings = bounced(*given, end)[2]
    value, found = gradient(*given, end, 1.2, np.array([0.0, 0.0, 0.0, 1.0, 0.0]), 3)
    assert value == pytest.approx(landings[2], rel=1e-10)
    assert found[:3] == pytest.approx(by_complex_steps(lambda *x: bounced(*x, end)[2][2], *given), rel=1e-9)


def test_what_a_solution_has():
    found = solve(
        fall, np.array([1.0, 0.0]), (0.0, 2.5), (0.8, 9.81), event=height, effect=bounce, terminal=3, dense_output=True
    )
    speeds = -np.sqrt(2.0 * 9.81) * np.array([1.0, 0.8, 0.64])
    assert found.ended
    assert found.t[0] == found.t_events[2]
    np.testing.assert_allclose(found.y_events, np.column_stack([np.zeros(3), speeds]), rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(found.y[0], found.y_events[2])
    # at an event the state is that before its effect
    np.testing.assert_allclose(evaluate(found, found.t_events), found.y_events, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(evaluate(found, found.t_events[:2] + 1e-9)[:, 1], -0.8 * speeds[:2], rtol=1e-7)
    with pytest.raises(RuntimeError, match="again in no time"):
        solve(
            fall,
            np.array([1.0, 0.0]),
            (0.0, 9.0),
            (0.5, 9.81),
            event=height,
            effect=bounce,
            terminal=0,
            dense_output=True,
        )


@pytest.mark.parametrize("method", ["rk4", "radau"])
def test_methods(method):
    """Equal steps are as many as the time that is left takes."""

    @njit
    def end_of(bounciness, gravity, start):
        args, y0 = (bounciness, gravity), np.array([start, 0.0])
        given = solve(fall, y0, (0.0, 2.0), args, None, method, steps=12, event=height, effect=bounce, snapshots=3)
        return given.y[0, 0]

    value, found = irad.value_and_grad(end_of, argnums=(0, 1, 2))(0.8, 9.81, 1.0)
    assert value == pytest.approx(bounced(0.8, 9.81, 1.0, 2.0)[0], rel=1e-8)
    truth = by_complex_steps(lambda *x: bounced(*x, 2.0)[0], 0.8, 9.81, 1.0)
    assert found == pytest.approx(truth, rel=1e-7)


@njit
def decay(t, y, rate, times, dose):
    return -rate * y


@njit
def first(t, y, rate, times, dose):
    return t - times[0]


@njit
def second(t, y, rate, times, dose):
    return t - times[1]


@njit
def low(t, y, rate, times, dose):
    return y[0] - 0.9


@njit
def give(t, y, rate, times, dose):
    return y + dose


@njit
def give_more(t, y, rate, times, dose):
    return y + dose * y


@njit
def dosed(y0, rate, times, dose, span, wanted, weights):
    found = solve(
        decay,
        y0,
        (span[0], span[1]),
        (rate, times, dose),
        wanted,
        "tsit5",
        1e-10,
        1e-12,
        event=(first, second, low),
        effect=(give, give_more, None),
        terminal=0,
    )
    return (weights * found.y[:, 0]).sum()


def in_doses(y0, rate, one, other, dose, begin, wanted):
    """The amount in closed form; a dose at the time that is wanted is not in it yet."""
    y, before = y0, begin
    sign = 1.0 if np.real(wanted) > np.real(begin) else -1.0
    doses = sorted([(one, 0), (other, 1)], key=lambda each: sign * np.real(each[0]))
    for t, kind in doses:
        if sign * np.real(t) < sign * np.real(wanted):
            y = y * np.exp(-rate * (t - before))
            y, before = y + dose * (1.0 if kind == 0 else y), t
    return y * np.exp(-rate * (wanted - before))


@pytest.mark.parametrize(
    ("times", "span", "wanted"),
    [
        ((0.5, 1.7), (0.0, 3.0), (0.3, 1.0, 1.7, 3.0)),
        ((1.7, 0.5), (0.0, 3.0), (0.5, 1.0, 1.7, 3.0)),
        ((0.7, 0.7), (0.0, 3.0), (0.3, 0.7, 0.8, 3.0)),  # at the same time, in the order of the events
        ((0.1, 3.0), (0.0, 3.0), (0.1, 0.2, 2.9, 3.0)),  # at the end there is no effect
        ((1.7, 0.5), (3.0, 0.0), (2.5, 1.7, 0.5, 0.0)),
    ],
)
def test_doses(times, span, wanted):
    """Rows at the time of a dose are those before it."""
    given = np.array([1.0]), 0.4, np.array(times), np.array([0.5]), np.array(span), np.array(wanted)
    gradient = irad.value_and_grad(dosed, argnums=(0, 1, 2, 3))
    for which in range(4):
        value, found = gradient(*given, np.eye(4)[which])
        numbers = 1.0, 0.4, *times, 0.5

        def closed(*x, at=wanted[which]):
            return in_doses(*x, span[0], at)

        assert value == pytest.approx(closed(*numbers), rel=1e-7)
        if times[0] != times[1]:  # or else the derivatives of the two times are those of this order
            assert np.hstack(found) == pytest.approx(by_complex_steps(closed, *numbers), rel=1e-6, abs=1e-7)


class Neuron(NamedTuple):
    """A state with a part that only events change."""

    potential: Any
    load: Any


@njit
def charge(t, y, current, reset, adaption):
    return Neuron(current - y.load[0] - y.potential, np.zeros(1))


@njit
def threshold(t, y, current, reset, adaption):
    return y.potential - 1.0


@njit
def fire(t, y, current, reset, adaption):
    return Neuron(reset * y.potential, y.load + adaption * y.potential)


@njit
def potential(current, reset, adaption, start, end):
    y0 = Neuron(start, np.zeros(1))
    args = current, reset, adaption
    found = solve(charge, y0, (0.0, end), args, None, "rodas", 1e-9, 1e-11, event=threshold, effect=fire, direction=1)
    return found.y.potential[0] + 0.1 * found.t_events.sum()


def charged(current, reset, adaption, start, end):
    y, t, total = start, 0.0, 0.0
    while True:
        time = np.log((current - y) / (current - 1.0))
        if np.real(t + time) > np.real(end):
            return current + (y - current) * np.exp(t - end) + 0.1 * total
        t, y, current = t + time, reset, current - adaption
        total = total + t


def test_an_effect_on_a_part_of_a_structure():
    given, tangents = (3.0, 0.2, 0.3, 0.1, 2.0), (0.3, -0.2, 0.5, 0.4, -0.7)
    value, found = irad.value_and_grad(potential, argnums=tuple(range(5)))(*given)
    assert value == pytest.approx(np.real(charged(*given)), rel=1e-7)
    assert found == pytest.approx(by_complex_steps(charged, *given), rel=1e-5)
    _, pushed = irad.jvp(potential, given, tangents)
    assert pushed == pytest.approx(np.dot(found, tangents), rel=1e-10)


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"effect": bounce}, irad.SignatureError, "has 1 entries for 0 events"),
        ({"event": (height, height), "effect": bounce}, irad.SignatureError, "has 1 entries for 2 events"),
        ({"event": height, "effect": height}, irad.SignatureError, "the effect of an event of a differential equation"),
        ({"event": height, "effect": njit(lambda t, y, *args: y[:1])}, ValueError, "changes the length of the state"),
        ({"event": height, "effect": bounce, "adjoint": "continuous"}, irad.SignatureError, "asked for with an event"),
        (
            {"event": height, "effect": bounce, "method": "radau", "mass": np.eye(2)},
            irad.SignatureError,
            "with an effect of an event",
        ),
    ],
)
def test_refused(options, error, said):
    with pytest.raises(error, match=said):
        solve(fall, np.array([1.0, 0.0]), (0.0, 2.0), (0.8, 9.81), **options)
