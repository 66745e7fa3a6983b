"""`irad.ode.solve`: derivatives against complex steps along the same steps, closed forms, and forward mode."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from numba import njit

import irad
from irad.ode import solve
from irad.ode.events import watching
from irad.ode.march import METHODS, marching
from tests.ode.equations import LORENZ, OSCILLATOR, STIFF, dormand_prince_along, height, settings, slope

W = np.array([0.5, 1.3])
Y0 = np.array([1.0, 0.2])
TIMES = np.array([0.7, 1.0, 2.9])
H = 1e-30


@njit
def with_all(y0, t0, t1, p, w, times, tolerance, weights):
    """Everything that a solution has, in one number."""
    found = solve(
        slope,
        y0,
        (t0, t1),
        (OSCILLATOR, p, w),
        times,
        rtol=tolerance,
        atol=1e-10,
        event=height,
        terminal=0,
        snapshots=3,
    )
    total = weights[0] * found.y[-1, 1] ** 2 + weights[1] * (found.t_events**2).sum()
    return total + weights[2] * found.y_events[:, 1].sum() + weights[3] * (found.y[:, 0] * found.t).sum()


@pytest.fixture(scope="module")
def gradient():
    return irad.grad(with_all, argnums=(0, 1, 2, 3, 4, 5))


def arguments(tolerance=1e-4, weights=(1.0, 0.5, 0.3, 0.2)):
    return Y0, 0.1, 3.0, 2.0, W, np.append(TIMES, 3.0), tolerance, np.array(weights)


def test_by_everything_along_the_same_steps(gradient):
    """Loose tolerances, few steps: only a derivative of these steps agrees to rounding."""
    by_y0, by_t0, by_t1, by_p, by_w, by_times = gradient(*arguments(1e-3, (1.0, 0.0, 0.0, 0.0)))
    found = marching(slope.py_func, watching(()), METHODS["dopri5"]).py_func(
        Y0, 0.1, 3.0, (OSCILLATOR, 2.0, W), TIMES, settings(1e-3, 1e-10)
    )
    assert 5 < found.counts[2] < 30

    def last(y0=Y0, t0=0.1, t1=3.0, p=2.0, w=W):
        def f(t, y):
            return np.array([y[1], -p * y[0] + w[0] * np.cos(w[1] * t)])

        # the time that is wanted stays where it is when the end moves: what is there follows from the state there
        end = dormand_prince_along(f, np.asarray(y0, complex), t0, t1, found.places)
        return end + (3.0 - t1) * f(t1, end)

    def slope_of(**changed):
        return (last(**changed)[1] ** 2).imag / H

    units = np.eye(2) * 1j * H
    np.testing.assert_allclose(by_y0, [slope_of(y0=Y0 + each) for each in units], rtol=1e-11)
    np.testing.assert_allclose(by_w, [slope_of(w=W + each) for each in units], rtol=1e-11)
    assert by_p == pytest.approx(slope_of(p=2.0 + 1j * H), rel=1e-11)
    assert by_t0 == pytest.approx(slope_of(t0=0.1 + 1j * H), rel=1e-11)
    assert by_t1 == pytest.approx(slope_of(t1=3.0 + 1j * H), rel=1e-3, abs=1e-3)  # zero but for the error of a step
    assert by_times[-1] == pytest.approx(2.0 * last()[1].real * (-2.0 * last()[0] + 0.5 * np.cos(3.9)).real, rel=1e-11)


def test_forward_agrees_with_reverse(gradient):
    tangents = np.array([0.3, -0.2]), 0.2, -0.7, 0.4, np.array([1.1, 0.6]), np.array([0.1, -0.2, 0.3, 0.4])
    given = arguments()
    value, tangent = irad.jvp(with_all, given, (*tangents, None, None))
    assert value == with_all(*given)
    pulled = gradient(*given)
    assert tangent == pytest.approx(sum(np.sum(a * b) for a, b in zip(pulled, tangents, strict=True)), rel=1e-11)


def test_events_against_differences(gradient):
    """With tight tolerances the steps hardly matter."""
    given = [*arguments(1e-11, (0.0, 1.0, 0.7, 0.0))]
    given[5] = TIMES  # the end is free to move
    pulled = gradient(*given)
    for i in (1, 2, 3):
        sides = [with_all(*[x + side * 1e-4 if j == i else x for j, x in enumerate(given)]) for side in (1.0, -1.0)]
        assert pulled[i] == pytest.approx((sides[0] - sides[1]) / 2e-4, rel=1e-6, abs=1e-7)


@njit
def of_order_8(y0, p, tolerance):
    found = solve(slope, y0, (0.1, 3.3), (OSCILLATOR, p, W), (0.7, 2.9), "dop853", tolerance, 1e-12, snapshots=3)
    return found.y[1, 1] ** 2 + found.y[0, 0]


def test_a_method_with_further_slopes_within_a_step():
    """Few steps for forward against reverse mode, more for differences: what is read lies within them."""
    tangents, gradient = (np.array([0.3, -0.2]), 0.4), irad.grad(of_order_8, argnums=(0, 1))
    for tolerance in (1e-3, 1e-12):
        given = Y0, 2.0, tolerance
        _, tangent = irad.jvp(of_order_8, given, (*tangents, None))
        pulled = sum(np.sum(a * b) for a, b in zip(gradient(*given), tangents, strict=True))
        assert tangent == pytest.approx(pulled, rel=1e-11)
    sides = [of_order_8(Y0 + h * tangents[0], 2.0 + h * tangents[1], 1e-12) for h in (1e-4, -1e-4)]
    # other steps, and the derivative of the steps converges more slowly than they do
    assert tangent == pytest.approx((sides[0] - sides[1]) / 2e-4, rel=1e-5)


@njit
def falls(height, speed, gravity):
    """When and how fast something that is thrown lands."""

    def flight(t, y, gravity):
        return np.array([y[1], -gravity])

    def above(t, y, gravity):
        return y[0]

    found = solve(flight, np.array([height, speed]), (0.0, 100.0), (gravity,), event=above, snapshots=2)
    return found.t[0] + 0.5 * found.y[0, 1]


def test_the_time_of_a_terminal_event_in_closed_form():
    """t = (v + s)/g, the speed is -s; s = √(v² + 2gh)"""

    def closed(h, v, g):
        s = np.sqrt(v * v + 2.0 * g * h)
        return (v + s) / g - 0.5 * s

    given = (3.0, 1.5, 9.81)
    value, found = irad.value_and_grad(falls, argnums=(0, 1, 2))(*given)
    assert value == pytest.approx(closed(*given), rel=1e-9)
    for i in range(3):
        step = closed(*[x + (1j * H if j == i else 0.0) for j, x in enumerate(given)])
        assert found[i] == pytest.approx(step.imag / H, rel=1e-9)


@njit
def lorenz(y0, p, w, steps):
    return solve(slope, y0, (0.0, 5.0), (LORENZ, p, w), method="rk4", steps=steps, snapshots=30).y[0].sum()


def peak(run):
    """By how much the memory of this process grows at most while something runs, in bytes."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")

    def read(name):
        status = Path("/proc/self/status").read_text(encoding="ascii")
        return 1024 * int(re.search(rf"{name}:\s+(\d+)", status)[1])

    before = read("VmRSS")
    result = run()
    return result, read("VmHWM") - before


def test_lorenz_with_many_steps_in_bounded_memory():
    """10⁵ steps, of which plain reverse mode would save some 500 bytes each, with room for 30 states."""
    y0, w = np.array([1.0, 2.0, 20.0]), np.array([10.0, 8.0 / 3.0])
    derivative = irad.grad(lorenz, argnums=(0, 1, 2))
    for few in (10, 20):  # compiled at the first call, and for what that observed at the second
        derivative(y0, 28.0, w, few)
    (by_y0, by_p, by_w), memory = peak(lambda: derivative(y0, 28.0, w, 100_000))
    assert memory < 4e6
    tangents = np.array([0.3, -1.0, 0.2]), 0.7, np.array([0.1, -0.4])
    _, tangent = irad.jvp(lorenz, (y0, 28.0, w, 100_000), (*tangents, None))
    pulled = by_y0 @ tangents[0] + by_p * tangents[1] + by_w @ tangents[2]
    assert tangent == pytest.approx(pulled, rel=1e-9)


@njit
def stiff(y0, p, w):
    return solve(slope, y0, (0.0, 2.0), (STIFF, p, w), (1.0, 2.0), "rodas", 1e-8, 1e-10).y[:, 1].sum()


def test_stiff_against_the_closed_form():
    """With y = cos from the beginning, the second state is driven by a cosine, however stiff the first one is."""
    y0, w = np.array([1.0, 0.4]), W + 0j

    def closed(y1, a, b):
        def at(t):
            part = a * (b * np.cos(t) + np.sin(t)) / (1.0 + b * b)
            return part + (y1 - a * b / (1.0 + b * b)) * np.exp(-b * t)

        return at(1.0) + at(2.0)

    value, (by_y0, by_p, by_w) = irad.value_and_grad(stiff, argnums=(0, 1, 2))(y0, 1e5, W)
    assert value == pytest.approx(closed(0.4, *W), rel=1e-6)
    assert by_y0[1] == pytest.approx(closed(0.4 + 1j * H, *w).imag / H, rel=1e-6)
    assert by_y0[0] == pytest.approx(0.0, abs=1e-4)
    assert by_p == pytest.approx(0.0, abs=1e-8)
    truth = [closed(0.4, w[0] + 1j * H, w[1]).imag / H, closed(0.4, w[0], w[1] + 1j * H).imag / H]
    np.testing.assert_allclose(by_w, truth, rtol=1e-6)
    tangents = np.array([0.3, -0.2]), 10.0, np.array([0.5, 0.1])
    _, tangent = irad.jvp(stiff, (y0, 1e5, W), tangents)
    pulled = sum(np.sum(a * b) for a, b in zip((by_y0, by_p, by_w), tangents, strict=True))
    assert tangent == pytest.approx(pulled, rel=1e-9)


@njit
def by_adjoint(y0, t0, t1, p, w, times):
    found = solve(slope, y0, (t0, t1), (OSCILLATOR, p, w), times, "dopri5", 1e-10, 1e-12, adjoint="continuous")
    return found.y[0, 0] * found.y[1, 1] + found.y[2, 1] ** 2


def test_the_continuous_adjoint_agrees_with_differences():
    given = [Y0, 0.1, 3.0, 2.0, W, TIMES]
    found = irad.grad(by_adjoint, argnums=(0, 1, 2, 3, 4, 5))(*given)
    for i, each in enumerate(found):
        for j in range(np.size(each)):
            step = 1e-4 * np.eye(np.size(each))[j] if np.ndim(each) else 1e-4
            sides = [by_adjoint(*[x + s * step if k == i else x for k, x in enumerate(given)]) for s in (1.0, -1.0)]
            assert np.ravel(each)[j] == pytest.approx((sides[0] - sides[1]) / 2e-4, rel=1e-6, abs=1e-6)


@njit
def decayed(y0, rate, start, end):
    def decay(t, y, rate):
        return -rate * t * y

    return solve(decay, y0, (start, end), (rate,), method="rk4", steps=40, snapshots=5).y[0, 0]


def test_second_derivatives():
    """y = y0 exp(rate (start² - end²)/2)"""
    given = (np.array([2.0]), 0.7, 0.5, 1.5)
    by_rate = irad.grad(decayed, 1)
    half, y = -1.0, 2.0 * np.exp(-0.7)
    assert by_rate(*given) == pytest.approx(half * y, rel=1e-6)
    # by y0, rate, start, end
    truth = [half * y / 2.0, half**2 * y, (0.5 + half * 0.35) * y, (-1.5 + half * -1.05) * y]
    np.testing.assert_allclose(np.hstack(irad.grad(by_rate, (0, 1, 2, 3))(*given)), truth, rtol=1e-5)
    tangents = np.array([1.0]), 0.5, -0.3, 0.2
    mixed = irad.jvp(by_rate, given, tangents)[1]
    assert mixed == pytest.approx(np.dot(truth, np.hstack(tangents)), rel=1e-5)


def test_an_end_that_does_not_move_yet():
    """Over no time the solution still changes with the ends."""
    found = irad.grad(decayed, (2, 3))(np.array([2.0]), 0.7, 1.0, 1.0)
    np.testing.assert_allclose(found, (1.4, -1.4), rtol=1e-14)
