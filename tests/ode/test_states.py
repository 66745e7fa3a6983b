"""States of several axes and structures, complex and in single precision: `irad.ode.solve` against closed forms."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.integrate
from numba import njit

import irad
from irad.ode import solve

H = 1e-30


class Body(NamedTuple):
    """A state with a number, an array in single precision with two axes, and complex numbers."""

    angle: Any
    field: Any
    wave: Any


START = Body(0.3, np.array([[1.0, 2.0, 0.5], [0.1, -0.4, 0.7]], np.float32), np.array([1.0 + 0.5j]))


@njit
def motion(t, y, rate):
    return Body(-rate * y.angle, np.float32(-rate) * y.field, 1j * rate * y.wave)


@njit
def halfway(t, y, rate):
    return y.wave[0].real


def at(start, rate, t):
    """The state in closed form."""
    shrunk = np.exp(-rate * t)
    return Body(shrunk * start.angle, shrunk * start.field, start.wave * np.exp(1j * rate * t))


def test_a_structure():
    times = np.array([0.5, 3.0])
    tolerances = {"rtol": 1e-7, "atol": Body(1e-9, np.full((2, 3), 1e-3), 1e-9)}
    found = solve(motion, START, (0.0, 3.0), (0.7,), times, event=halfway, terminal=0, **tolerances)
    assert isinstance(found.y, Body)
    assert [each.dtype for each in found.y] == [np.float64, np.float32, np.complex128]
    assert [each.shape for each in found.y] == [(2,), (2, 2, 3), (2, 1)]
    for i, t in enumerate(times):
        for part, truth in zip(found.y, at(START, 0.7, t), strict=True):
            np.testing.assert_allclose(part[i], truth, rtol=2e-6)
    # the wave turns by rate · t; its real part is zero when this and the angle of its start are π/2 together
    assert found.t_events == pytest.approx([(np.pi / 2.0 - np.angle(START.wave[0])) / 0.7], rel=1e-6)
    for part, truth in zip(found.y_events, at(START, 0.7, found.t_events[0]), strict=True):
        np.testing.assert_allclose(part[0], truth, rtol=2e-6, atol=1e-6)


@njit
def total(start, rate, end):
    y = solve(motion, start, (0.0, end), (rate,), (0.5, end), "rk4", steps=60).y
    return y.angle.sum() + (y.field * y.field).sum() + 0.5 * y.wave[1, 0].imag


def closed(angle, squares, real, imaginary, rate, end):
    """The total, of numbers that may take a step in the imaginary direction; ``squares`` are those of the field."""
    shrunk = np.exp(-rate * 0.5), np.exp(-rate * end)
    turned = real * np.sin(rate * end) + imaginary * np.cos(rate * end)
    return angle * (shrunk[0] + shrunk[1]) + squares * (shrunk[0] ** 2 + shrunk[1] ** 2) + 0.5 * turned


def test_derivatives_with_respect_to_all_parts():
    given = START, 0.7, 2.0
    numbers = 0.3, (START.field.astype(float) ** 2).sum(), 1.0, 0.5, 0.7, 2.0
    value, (d_start, d_rate, d_end) = irad.value_and_grad(total, argnums=(0, 1, 2))(*given)
    assert value == pytest.approx(closed(*numbers), rel=1e-5)
    truth = [closed(*[x + (1j * H if j == i else 0.0) for j, x in enumerate(numbers)]).imag / H for i in range(6)]
    assert d_start.angle == pytest.approx(truth[0], rel=1e-6)
    assert d_start.field.dtype == np.float32
    np.testing.assert_allclose(d_start.field, 2.0 * truth[1] * START.field, rtol=1e-5)
    assert d_start.wave[0] == pytest.approx(truth[2] + 1j * truth[3], rel=1e-6)
    assert (d_rate, d_end) == pytest.approx(truth[4:], rel=1e-5)
    tangent = Body(0.2, np.float32(0.1) * START.field, np.array([0.2 - 0.4j]))
    _, pushed = irad.jvp(total, given, (tangent, 0.3, -0.2))
    pulled = sum(np.sum(np.real(np.conj(a) * b)) for a, b in zip(d_start, tangent, strict=True))
    assert pushed == pytest.approx(pulled + 0.3 * d_rate - 0.2 * d_end, rel=1e-4)  # single precision


def test_numbers():
    """An integer becomes a float; a part may have no numbers at all."""
    decay = njit(lambda t, y: (-y[0], -y[1], -y[2]))
    one, single, none = solve(decay, (2, np.float32(2.0), np.zeros((0, 3))), (0.0, 1.0)).y
    assert one == pytest.approx([2.0 / np.e], rel=1e-6)
    assert single == pytest.approx([2.0 / np.e], rel=1e-5)
    assert (one.dtype, single.dtype, none.shape) == (np.float64, np.float32, (1, 0, 3))


def test_a_stiff_method_with_complex_numbers():
    turning = njit(lambda t, y: 1.3j * y)
    truth = scipy.integrate.solve_ivp(turning.py_func, (0.0, 2.0), [1.0 + 0.5j], rtol=1e-10, atol=1e-12)
    found = solve(turning, 1.0 + 0.5j, (0.0, 2.0), method="rodas", rtol=1e-8)
    np.testing.assert_allclose(found.y, truth.y[:, -1], rtol=1e-6)


@pytest.mark.parametrize(
    ("f", "y0", "said"),
    [
        (njit(lambda t, y: (y[0], y[1], 1.0)), (1.0, np.ones(2)), "returns"),
        (njit(lambda t, y: (y[1], y[1])), (1.0, np.ones(2)), "return the structure of the state"),
        (njit(lambda t, y: 1j * y), np.ones((2, 2)), "complex128"),
        (njit(lambda t, y: y), "state", "the state of a differential equation is"),
        (njit(lambda t, y: y), (1.0, "state"), "the state of a differential equation is"),
        (njit(lambda t, y: y), np.array(["state"]), "the state of a differential equation is"),
        (njit(lambda t, y: y), (), "the state of a differential equation is"),
    ],
)
def test_refused(f, y0, said):
    with pytest.raises(irad.SignatureError, match=said):
        solve(f, y0, (0.0, 1.0))


def test_shapes_are_compared():
    transposed = njit(lambda t, y: y.T)
    with pytest.raises(ValueError, match="differ in shape"):
        solve(transposed, np.ones((2, 3)), (0.0, 1.0))
    with pytest.raises(ValueError, match="the shape of the state"):
        solve(transposed, np.ones((2, 2)), (0.0, 1.0), atol=np.ones((1, 2)))
    with pytest.raises(irad.SignatureError, match="rtol or atol of a differential equation is"):
        solve(transposed, np.ones((2, 2)), (0.0, 1.0), atol=(1.0, 2.0, 1.0))
